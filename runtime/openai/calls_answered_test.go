package openai_test

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// Calls without results and results without calls.

// TestUserSpeaksWhileACallWaits: the user's message is read, and a later result finds its call.
func TestUserSpeaksWhileACallWaits(t *testing.T) {
	const call = `{"type":"function_call","call_id":"c1","name":"weather","arguments":"{}"}`
	const output = `{"type":"function_call_output","call_id":"c1","output":"rain"}`
	const custom = `{"type":"custom_tool_call","call_id":"c2","name":"patch","input":"x"}`
	const user = `{"role":"user","content":"And now?"}`
	const calls = `{"role":"assistant","tool_calls":[{"id":"c1","function":{"name":"weather",` +
		`"arguments":"{}"}}]}`
	const use = `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"weather",` +
		`"input":{}}]}`
	const called = "assistant <commentary> to functions.weather #c1: {}"
	const rain = "tool functions.weather <commentary> to assistant #c1: rain"
	const now = "user: And now?"
	for _, c := range []struct{ path, messages, want string }{
		{"/v1/responses", call + "," + user, called + "\n" + now},
		{"/v1/responses", call + "," + user + "," + output, called + "\n" + now + "\n" + rain},
		{"/v1/responses", call + "," + output + "," + custom + "," + user, called + "\n" + rain +
			"\nassistant <commentary> to functions.patch #c2: x\n" + now},
		{"/v1/responses", user + "," + output, now +
			"\nassistant <commentary> to functions.unknown #c1: {}\n" +
			"tool functions.unknown <commentary> to assistant #c1: rain"},
		{"/v1/chat/completions", calls + "," + user, called + "\n" + now},
		{"/v1/chat/completions", calls + "," + user +
			`,{"role":"tool","tool_call_id":"c1","content":"rain"}`, called + "\n" + now + "\n" + rain},
		{"/v1/chat/completions", calls + `,{"role":"tool","content":"rain"}`, called + "\n" + rain},
		{"/v1/chat/completions", calls + `,{"role":"tool","tool_call_id":"c1","content":"rain"},` +
			`{"role":"tool","tool_call_id":"c1","content":"rain"}`,
			called + "\n" + rain + "\n" + rain},
		{"/v1/messages", use + "," + user, called + "\n" + now},
		{"/v1/messages", use + "," + user + `,{"role":"user","content":[{"type":"tool_result",` +
			`"tool_use_id":"c1","content":"rain"}]}`, called + "\n" + now + "\n" + rain},
		{"/api/chat", strings.ReplaceAll(calls, `"{}"`, `{}`) + "," + user, called + "\n" + now},
	} {
		srv, f := porttest.Server(t, sessiontest.Answers("ok"))
		porttest.Post(t, srv, c.path, historyBody(c.path, c.messages))
		if got := sessiontest.History(f.Last(t)); got != c.want {
			t.Errorf("%s %s:\n%s\nwant\n%s", c.path, c.messages, got, c.want)
		}
	}
}

// What the server keeps of a conversation counts like what the client sends.
func TestUserSpeaksWhileAKeptCallWaits(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Agent)
	create := func(more string) string {
		m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"tools":[`+porttest.WeatherFunction+`],`+more+`}`).Body)
		return porttest.At(m, "id").(string)
	}
	const output = `{"type":"function_call_output","call_id":"call_1","output":"rain"}`
	read := func(body, want string) {
		t.Helper()
		porttest.Post(t, srv, "/v1/responses", body)
		got := sessiontest.History(f.Last(t))
		if _, got, _ = strings.Cut(got, "#call_1: "); got != `{"city": "Paris"}`+want {
			t.Errorf("%s: the model reads %q", body, got)
		}
	}
	const well = "\nuser: Well?"
	const rain = "\ntool functions.get_weather <commentary> to assistant #call_1: rain"
	first := create(`"input":"Rain?"`)
	read(`{"previous_response_id":"`+first+`","input":"Well?"}`, well)
	read(`{"previous_response_id":"`+first+`","input":[`+output+`,{"role":"user","content":"Well?"}]}`,
		rain+well)

	talk := porttest.At(porttest.Decode(t, porttest.Post(t, srv, "/v1/conversations", `{}`).Body), "id").(string)
	create(`"input":"Rain?","conversation":"` + talk + `"`)
	porttest.Post(t, srv, "/v1/conversations/"+talk+"/items", `{"items":[`+output+`]}`)
	read(`{"conversation":"`+talk+`","input":"Well?"}`, rain+well)

	item := porttest.At(porttest.Decode(t, porttest.Ask(t, "GET", srv.URL+"/v1/responses/"+first,
		"").Body), "output", 1, "id").(string)
	reference := `{"type":"item_reference","id":"` + item + `"}`
	read(`{"input":[`+reference+`,{"role":"user","content":"Well?"}]}`, well)
	read(`{"input":[`+reference+`,`+output+`,{"role":"user","content":"Well?"}]}`, rain+well)
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
	const call0 = "assistant <commentary> to functions.weather #messages[1].function_call: {}\n"
	for messages, want := range map[string]string{
		`{"role":"function","name":"weather","content":"rain"}`: "assistant <commentary> to " +
			"functions.weather #call_1: {}\ntool functions.weather <commentary> to assistant #call_1: rain",
		called + `,{"role":"function","content":"rain"}`: call0 +
			"tool functions.weather <commentary> to assistant #messages[1].function_call: rain",
		called + `,{"role":"function","name":"time","content":"noon"}`: call0 +
			"assistant <commentary> to functions.time #call_2: {}\n" +
			"tool functions.time <commentary> to assistant #call_2: noon",
		`{"role":"assistant","function_call":{"name":"a b"}}`: "assistant <commentary> to " +
			"functions.unknown #messages[1].function_call: {}",
		`{"role":"assistant","function_call":"x"}`: "",
	} {
		porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`,`+messages+`]}`)
		if _, got, _ := strings.Cut(sessiontest.History(f.Last(t)), "user: hi\n"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", messages, got, want)
		}
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
