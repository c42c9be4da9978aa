package openai_test

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// Calls without results and results without calls, on both of OpenAI's routes.

func TestResponsesRefuseAUserWhileACallWaits(t *testing.T) {
	const call = `{"type":"function_call","call_id":"c1","name":"weather","arguments":"{}"}`
	const output = `{"type":"function_call_output","call_id":"c1","output":"rain"}`
	const custom = `{"type":"custom_tool_call","call_id":"c2","name":"patch","input":"x"}`
	const user = `{"role":"user","content":"And now?"}`
	for _, c := range []struct{ items, param, code, message string }{
		{call + "," + user, "input", "", "No tool output found for function call c1."},
		{user + "," + custom + "," + user, "input", "",
			"No tool output found for function call c2."},
		{call + "," + output + "," + custom + "," + user, "input", "", "function call c2."},
		{`{"role":"user"}`, "input[0].content", "missing_required_parameter", "missing"},
		{`{"role":"user","content":null}`, "input[0].content", "missing_required_parameter",
			"missing"},
		{user + `,{"type":"message","role":"user","content":[]}`, "input[1].content",
			"missing_required_parameter", "missing"},
		{`{"type":"function_call","name":"weather","arguments":"{}"}`, "input[0].call_id",
			"missing_required_parameter", "missing"},
	} {
		t.Run(c.items, func(t *testing.T) {
			srv, f := porttest.Server(t, sessiontest.Answers("ok"))
			r := porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{"input":[`+c.items+`]}`)
			porttest.WantFault(t, r, 400, fields.KindInvalid, c.param, c.code, c.message)
			if len(f.Requests) != 0 {
				t.Error("a turn was started")
			}
		})
	}
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	for _, items := range []string{call, call + "," + output + "," + user,
		call + "," + user + "," + output, // as agents do that let their user speak at any time
		call + "," + custom + "," + output +
			`,{"type":"custom_tool_call_output","call_id":"c2","output":"done"},` + user,
		`{"role":"user","content":""}`, `{"role":"assistant","content":null},` + user} {
		porttest.Post(t, srv, "/v1/responses", `{"input":[`+items+`]}`)
	}
}

// What the server keeps of a conversation counts like what the client sends.
func TestResponsesRefuseAUserWhileAKeptCallWaits(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Agent)
	create := func(more string) string {
		m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"tools":[`+porttest.WeatherFunction+`],`+more+`}`).Body)
		return porttest.At(m, "id").(string)
	}
	refused := func(body string) {
		t.Helper()
		r := porttest.Ask(t, "POST", srv.URL+"/v1/responses", body)
		porttest.WantFault(t, r, 400, fields.KindInvalid, "input", "",
			"No tool output found for function call call_1.")
	}
	const output = `{"type":"function_call_output","call_id":"call_1","output":"rain"}`
	first := create(`"input":"Rain?"`)
	refused(`{"previous_response_id":"` + first + `","input":"Well?"}`)
	porttest.Post(t, srv, "/v1/responses", `{"previous_response_id":"`+first+`","input":[`+output+
		`,{"role":"user","content":"Well?"}]}`)

	talk := porttest.At(porttest.Decode(t, porttest.Post(t, srv, "/v1/conversations", `{}`).Body), "id").(string)
	create(`"input":"Rain?","conversation":"` + talk + `"`)
	refused(`{"conversation":"` + talk + `","input":"Well?"}`)
	porttest.Post(t, srv, "/v1/conversations/"+talk+"/items", `{"items":[`+output+`]}`)
	porttest.Post(t, srv, "/v1/responses", `{"conversation":"`+talk+`","input":"Well?"}`)

	item := porttest.At(porttest.Decode(t, porttest.Ask(t, "GET", srv.URL+"/v1/responses/"+first,
		"").Body), "output", 1, "id").(string)
	reference := `{"type":"item_reference","id":"` + item + `"}`
	refused(`{"input":[` + reference + `,{"role":"user","content":"Well?"}]}`)
	porttest.Post(t, srv, "/v1/responses", `{"input":[`+reference+`,`+output+
		`,{"role":"user","content":"Well?"}]}`)
}

func TestChatReadsTheDeprecatedPair(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`,{"role":"assistant","content":null,
		"function_call":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}},
		{"role":"function","name":"weather","content":"rain"},`+porttest.Hello+`]}`)
	got := f.Last(t).Messages
	call := session.FunctionCall("messages[1].function_call", "weather", `{"city":"Paris"}`)
	result := session.FunctionResult("messages[1].function_call", "weather", "rain")
	if len(got) != 4 || got[1].Recipient != call.Recipient || got[1].Text() != call.Text() ||
		got[1].CallID != call.CallID || got[2].CallID != result.CallID ||
		got[2].Name != result.Name || got[2].Text() != "rain" {
		t.Errorf("%+v", got)
	}
	const called = `{"role":"assistant","function_call":{"name":"weather","arguments":"{}"}}`
	for _, c := range []struct{ messages, param, code, message string }{
		{`{"role":"function","name":"weather","content":"rain"}`, "messages[1]", "",
			"no function_call of the assistant waits"},
		{called + `,{"role":"function","content":"rain"}`, "messages[2].name",
			"missing_required_parameter", "missing"},
		{called + `,{"role":"function","name":"time","content":"rain"}`, "messages[2].name", "",
			`the function_call before it is of "weather"`},
		{called + `,` + porttest.Hello, "messages[2]", "", "none was found for messages[1].function_call"},
		{called + `,{"role":"function","name":"weather","content":"rain"},` +
			`{"role":"function","name":"weather","content":"rain"}`, "messages[3]", "",
			"no function_call of the assistant waits"},
		{`{"role":"assistant","function_call":{"name":"a b"}}`, "messages[1].function_call.name",
			"", "not a tool name"},
		{`{"role":"assistant","function_call":"x"}`, "messages[1].function_call", "invalid_type",
			"an object"},
	} {
		r := porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions",
			`{"messages":[`+porttest.Hello+`,`+c.messages+`]}`)
		porttest.WantFault(t, r, 400, fields.KindInvalid, c.param, c.code, c.message)
	}
}

// The deprecated parameters are answered in the deprecated form.
func TestChatAnswersDeprecatedFunctions(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Agent)
	const offered = `"functions":[{"name":"weather","description":"Tells.",` +
		`"parameters":{"type":"object"}}],"messages":[` + porttest.Hello + `]`
	for _, choice := range []string{``, `"function_call":"auto",`,
		`"function_call":{"name":"weather"},`} {
		m := porttest.Decode(t, porttest.Post(t, srv, "/v1/chat/completions", `{`+choice+offered+`}`).Body)
		porttest.Conform(t, "CreateChatCompletionResponse", m)
		message := porttest.At(m, "choices", 0, "message").(map[string]any)
		if porttest.At(m, "choices", 0, "finish_reason") != "function_call" ||
			porttest.At(message, "function_call", "name") != "weather" ||
			porttest.At(message, "function_call", "arguments") != `{"city": "Paris"}` ||
			message["tool_calls"] != nil || message["content"] != nil {
			t.Errorf("%v", m)
		}
		name := ""
		if strings.Contains(choice, "name") {
			name = "weather"
		}
		if r := f.Last(t); len(r.Functions) != 1 || r.Functions[0].Description != "Tells." ||
			r.ToolName != name {
			t.Errorf("%+v", r)
		}
		list := porttest.Events(t, porttest.Post(t, srv, "/v1/chat/completions", `{"stream":true,`+choice+offered+
			`}`).Body)
		arguments, called, reason := "", "", any(nil)
		for _, e := range list[:len(list)-1] {
			porttest.Conform(t, "CreateChatCompletionStreamResponse", e.Json)
			delta := porttest.At(e.Json, "choices", 0, "delta").(map[string]any)
			if delta["tool_calls"] != nil {
				t.Errorf("%s", e.Data)
			}
			if call, ok := delta["function_call"].(map[string]any); ok {
				s, _ := call["name"].(string)
				called += s
				s, _ = call["arguments"].(string)
				arguments += s
			}
			reason = porttest.At(e.Json, "choices", 0, "finish_reason")
		}
		if called != "weather" || arguments != `{"city": "Paris"}` || reason != "function_call" {
			t.Errorf("%s %s %v", called, arguments, reason)
		}
	}
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/chat/completions", `{"function_call":"none",`+offered+
		`}`).Body)
	if porttest.At(m, "choices", 0, "finish_reason") != "stop" || len(f.Last(t).Functions) != 0 {
		t.Errorf("%v", m)
	}
	for body, param := range map[string]string{
		offered + `,"tools":[` + porttest.WeatherTool + `]`:    "functions",
		offered + `,"function_call":{"name":"other"}`:          "function_call",
		offered + `,"function_call":"required"`:                "function_call",
		offered + `,"function_call":7`:                         "function_call",
		`"functions":[{}],"messages":[` + porttest.Hello + `]`: "functions[0].name",
	} {
		r := porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions", `{`+body+`}`)
		if m := porttest.Decode(t, r.Body); r.Status != 400 || porttest.At(m, "error", "param") != param {
			t.Errorf("%s: %d %s", body, r.Status, r.Body)
		}
	}
}
