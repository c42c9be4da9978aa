package responses_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func TestResponse(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("Hello."))
	r := porttest.Post(t, srv, "/v1/responses",
		`{"model":"gpt-oss:20b","input":"hi","instructions":"Be brief.","max_output_tokens":200,"temperature":0.5,"metadata":{"k":"v"},"user":"u",`+
			`"reasoning":{"effort":"xhigh"},"service_tier":"auto","client_metadata":{"x":"y"},"text":{"verbosity":"low"},"parallel_tool_calls":false,"max_reasoning_tokens":7}`)
	m := porttest.Decode(t, r.Body)
	porttest.Conform(t, "Response", m)
	for key, want := range map[string]any{
		"object": "response", "status": "completed", "model": "gpt-oss:20b",
		"instructions": "Be brief.", "max_output_tokens": 200.0, "temperature": 0.5,
		"top_p": 1.0,
		"user":  "u", "metadata": map[string]any{"k": "v"},
		"reasoning":           map[string]any{"effort": "xhigh", "summary": nil},
		"parallel_tool_calls": false, "store": true,
		"tools": []any{}, "tool_choice": "auto", "error": nil, "incomplete_details": nil,
		"previous_response_id": nil,
		"usage": map[string]any{"input_tokens": 40.0,
			"input_tokens_details": map[string]any{"cached_tokens": 8.0,
				"cache_write_tokens": 0.0},
			"output_tokens":         12.0,
			"output_tokens_details": map[string]any{"reasoning_tokens": 5.0},
			"total_tokens":          52.0},
	} {
		if got, ok := m[key]; !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
	reasoning := porttest.At(m, "output", 0).(map[string]any)
	id := reasoning["id"]
	delete(reasoning, "id")
	want := map[string]any{"type": "reasoning", "summary": []any{}, "status": "completed",
		"encrypted_content": request.Seal("They ask. I answer."),
		"content": []any{map[string]any{"type": "reasoning_text",
			"text": "They ask. I answer."}}}
	if !reflect.DeepEqual(reasoning, want) || !strings.HasPrefix(id.(string), "rs_") {
		t.Errorf("reasoning %v %v", id, reasoning)
	}
	message := porttest.At(m, "output", 1).(map[string]any)
	delete(message, "id")
	want = map[string]any{"type": "message", "role": "assistant", "phase": "final_answer",
		"status": "completed",
		"content": []any{map[string]any{"type": "output_text", "text": "Hello.",
			"annotations": []any{}, "logprobs": []any{}}}}
	if !reflect.DeepEqual(message, want) {
		t.Errorf("message %v", message)
	}
	req := f.Last(t)
	if !strings.HasPrefix(req.Instructions, "Be brief.\n\nVerbosity: low.") || req.Effort != "high" || req.MaxTokens != 200 ||
		req.MaxReasoning != 7 || sessiontest.History(req) != "user: hi" {
		t.Errorf("request %+v", req)
	}
}

// The whole sequence of a stream, event by event.
func TestResponsesStream(t *testing.T) {
	gate := make(chan struct{})
	srv, _ := porttest.Server(t, func(session.Request) ([]session.Event, error) {
		close(gate)
		return append([]session.Event{session.Reasoning{Text: "Think."},
				session.Commentary{Text: "I will look."}}, sessiontest.CallEvents("get_weather",
				`{"a":1}`)[1:]...),
			nil
	})
	list := porttest.Events(t, porttest.Post(t, srv, "/v1/responses",
		`{"input":"hi","stream":true,"tools":[`+porttest.WeatherFunction+`]}`).Body)
	<-gate
	porttest.ConformResponses(t, list)
	var got []string
	for _, e := range list {
		var line strings.Builder
		line.WriteString(strings.TrimPrefix(e.Name, "response."))
		if i, ok := e.Json["output_index"]; ok {
			line.WriteString(fmt.Sprint(" ", i))
		}
		if i, ok := e.Json["content_index"]; ok {
			line.WriteString(fmt.Sprint(".", i))
		}
		for _, k := range []string{"delta", "text", "arguments"} {
			if s, ok := e.Json[k].(string); ok {
				line.WriteString(" " + k + "=" + s)
			}
		}
		if s, ok := porttest.At(e.Json, "item", "status").(string); ok {
			line.WriteString(" " + s)
		}
		if n := len(got); n > 0 && strings.HasPrefix(line.String(), "function_call_arguments.delta") &&
			strings.HasPrefix(got[n-1], "function_call_arguments.delta") {
			// how many pieces there are depends on who is faster
			got[n-1] += e.Json["delta"].(string)
			continue
		}
		got = append(got, line.String())
	}
	want := []string{"created", "in_progress",
		"output_item.added 0 in_progress", "content_part.added 0.0",
		"reasoning_text.delta 0.0 delta=Think.", "reasoning_text.done 0.0 text=Think.",
		"content_part.done 0.0", "output_item.done 0 completed",
		"output_item.added 1 in_progress", "content_part.added 1.0",
		"output_text.delta 1.0 delta=I will look.", "output_text.done 1.0 text=I will look.",
		"content_part.done 1.0", "output_item.done 1 completed",
		"output_item.added 2 in_progress", `function_call_arguments.delta 2 delta={"a":1}`,
		`function_call_arguments.done 2 arguments={"a":1}`, "output_item.done 2 completed",
		"completed"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if phase := porttest.At(list[8].Json, "item", "phase"); phase != "commentary" {
		t.Errorf("the preamble has the phase %v", phase)
	}
	last := list[len(list)-1].Json
	if porttest.At(last, "response", "output", 2, "call_id") != "call_1" || porttest.At(last, "response", "usage",
		"total_tokens") != 52.0 {
		t.Errorf("completed: %v", last)
	}
}

func TestResponsesInput(t *testing.T) {
	for _, c := range []struct{ name, fields, instructions, want string }{
		{"warm-up", `"input":"","max_output_tokens":1`, "", ""},
		{"no items", `"input":[]`, "", ""},
		{"easy messages", `"input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":[{"type":"input_text","text":"c"}]}]`, "", "user: a\nassistant <final>: b\nuser: c"},
		{"instructions come first",
			`"instructions":"One.","input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"Two."}]},{"role":"system","content":"Three."},{"role":"user","content":"a"}]`,
			"One.\n\nTwo.\n\nThree.", "user: a"},
		{"a loop", `"input":[{"role":"user","content":"a"},{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"Look."}]},{"type":"function_call","call_id":"c1","name":"ls","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"x"}]`,
			"", "user: a\nassistant <analysis>: Look.\nassistant <commentary> to functions.ls " +
				"#c1: {}\ntool functions.ls <commentary> to assistant #c1: x"},
		{"sealed reasoning",
			`"input":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"S"}],"content":[],"status":"in_progress","encrypted_content":"` + request.Seal("Look — closely.") + `"}]`, "", "assistant <analysis>: Look — closely."},
		{"reasoning of others",
			`"input":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"S"}],"content":null,"encrypted_content":"gAAAA-mock"}]`, "", "assistant <analysis>: S"},
		{"empty reasoning", `"input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":null},{"role":"user","content":"a"}]`, "", "user: a"},
		{"phases", `"input":[{"role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"a"}]},{"role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"b"}]}]`, "", "assistant <commentary>: a\nassistant <final>: b"},
		{"text before a call",
			`"input":[{"role":"assistant","content":"I look."},{"type":"reasoning","summary":[]},{"type":"function_call","call_id":"c1","name":"ls","arguments":"{}"}]`, "", "assistant <commentary>: I look.\nassistant <commentary> to functions.ls #c1: {}"},
		{"text after a call", `"input":[{"type":"function_call","call_id":"c1","name":"ls","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"x"},{"type":"input_image","image_url":"data:"}]},{"role":"assistant","content":"Done."}]`, "",
			"assistant <commentary> to functions.ls #c1: {}\ntool functions.ls <commentary> to " +
				"assistant #c1: x\n[an image is attached; this model reads text only]\nassistant " +
				"<final>: Done."},
		{"items of other servers",
			`"input":[{"type":"web_search_call","id":"ws_1"},{"role":"user","content":"a"}]`, "",
			"user: a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv, f := porttest.Server(t, sessiontest.Answers("ok"))
			porttest.Post(t, srv, "/v1/responses", `{`+c.fields+`}`)
			if got := sessiontest.History(f.Last(t)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if got := f.Last(t).Instructions; got != c.instructions {
				t.Errorf("instructions %q, want %q", got, c.instructions)
			}
		})
	}
}

func TestResponsesTools(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Calls("get_weather", `{"city":"Paris"}`))
	r := porttest.Post(t, srv, "/v1/responses",
		`{"input":"hi","tool_choice":"auto","tools":[`+porttest.WeatherFunction+
			`,{"type":"web_search","external_web_access":true},{"type":"namespace","name":"n","description":"d","tools":[{"type":"custom","name":"x"}]},{"type":"custom","name":"c"}]}`)
	m := porttest.Decode(t, r.Body)
	porttest.Conform(t, "Response", m)
	if got := r.Header.Get("X-Ossrun-Ignored"); got != "web_search" {
		t.Errorf("X-Ossrun-Ignored: %q", got)
	}
	if n := len(f.Last(t).Functions); n != 3 || len(m["tools"].([]any)) != 3 {
		t.Errorf("%d tools offered, %v echoed", n, m["tools"])
	}
	call := porttest.At(m, "output", 1).(map[string]any)
	delete(call, "id")
	want := map[string]any{"type": "function_call", "status": "completed", "call_id": "call_1",
		"name": "get_weather", "arguments": `{"city":"Paris"}`}
	if !reflect.DeepEqual(call, want) {
		t.Errorf("call %v", call)
	}
}

func TestResponsesEnds(t *testing.T) {
	for _, c := range []struct {
		name, status string
		events       []session.Event
		items        []string
	}{
		{"length in the answer", "incomplete", []session.Event{session.Answer{Text: "Hel"},
			sessiontest.Done(session.FinishLength)}, []string{"message incomplete"}},
		{"length in a call", "incomplete", []session.Event{session.Reasoning{Text: "T"},
			session.CallStart{ID: "c", Name: "f"}, session.CallArguments{Text: `{"a`},
			sessiontest.Done(session.FinishLength)}, []string{"reasoning completed"}},
		{"length before a call's arguments", "incomplete", []session.Event{session.CallStart{
			ID: "c", Name: "f"}, sessiontest.Done(session.FinishLength)}, nil},
		{"length at once", "incomplete", []session.Event{sessiontest.Done(session.FinishLength)}, nil},
		{"nothing", "completed", []session.Event{sessiontest.Done(session.FinishStop)},
			[]string{"message completed"}},
		{"a call without arguments", "completed", []session.Event{session.CallStart{ID: "c",
			Name: "f"}, session.CallEnd{}, sessiontest.Done(session.FinishToolCalls)},
			[]string{"function_call completed"}},
		{"two calls", "completed", []session.Event{session.CallStart{ID: "c", Name: "f"},
			session.CallEnd{Arguments: "{}"}, session.CallStart{Index: 1, ID: "d", Name: "g"},
			session.CallEnd{Index: 1, Arguments: "{}"}, sessiontest.Done(session.FinishToolCalls)},
			[]string{"function_call completed", "function_call completed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv, _ := porttest.Server(t, func(session.Request) ([]session.Event, error) {
				return c.events,
					nil
			})
			m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"hi"}`).Body)
			porttest.Conform(t, "Response", m)
			list := porttest.Events(t, porttest.Post(t, srv, "/v1/responses", `{"input":"hi","stream":true}`).Body)
			porttest.ConformResponses(t, list)
			last := list[len(list)-1]
			if last.Name != "response."+c.status {
				t.Errorf("last event %s", last.Name)
			}
			for _, r := range []any{m, last.Json["response"]} {
				var items []string
				output, _ := porttest.At(r, "output").([]any)
				for _, i := range output {
					items = append(items, fmt.Sprint(porttest.At(i, "type"), " ", porttest.At(i, "status")))
					if arguments, ok := porttest.At(i, "arguments").(string); ok &&
						c.status == "completed" && arguments != "{}" {
						t.Errorf("arguments %q", arguments)
					}
				}
				if porttest.At(r, "status") != c.status || !reflect.DeepEqual(items, c.items) {
					t.Errorf("status %v, items %v, want %s %v", porttest.At(r, "status"), items, c.status,
						c.items)
				}
				if c.status == "incomplete" && porttest.At(r, "incomplete_details",
					"reason") != "max_output_tokens" {
					t.Errorf("incomplete_details %v", porttest.At(r, "incomplete_details"))
				}
			}
		})
	}
}

func TestResponsesFail(t *testing.T) {
	srv, _ := porttest.Server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "Hel"},
			session.Done{Finish: session.FinishError, Err: errors.New("the device is gone")}}, nil
	})
	porttest.WantFault(t, porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{"input":"hi"}`), 500,
		fields.KindServer, "", fields.KindServer, "the device is gone")
	list := porttest.Events(t, porttest.Post(t, srv, "/v1/responses", `{"input":"hi","stream":true}`).Body)
	porttest.ConformResponses(t, list)
	last := list[len(list)-1]
	if last.Name != "response.failed" || porttest.At(last.Json, "response", "error",
		"message") != "the device is gone" || porttest.At(last.Json, "response", "error",
		"code") != "server_error" {
		t.Errorf("last event %s", last.Data)
	}
}

func TestResponsesKeepSilentStreamsAlive(t *testing.T) {
	wait := make(chan struct{})
	srv, _ := porttest.Server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{sessiontest.Pause{Until: wait}, session.Answer{Text: "Late."},
			sessiontest.Done(session.FinishStop)}, nil
	}, func(o *openai.Options) { o.Silence = 5 * time.Millisecond })
	body := porttest.ReadUntil(t, srv.URL+"/v1/responses", `{"input":"hi","stream":true}`,
		"event: response.in_progress\n", 4, func() { close(wait) })
	porttest.ConformResponses(t, porttest.Events(t, body))
}

func TestResponsesLogprobs(t *testing.T) {
	srv, f := porttest.Server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "He",
			Logprobs: []session.TokenLogprob{{Token: "He", Bytes: []byte("He"), Logprob: -1}}},
			sessiontest.Done(session.FinishStop)}, nil
	})
	body := `"input":"hi","include":["message.output_text.logprobs"],"top_logprobs":3}`
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{`+body).Body)
	porttest.Conform(t, "Response", m)
	if porttest.At(m, "output", 0, "content", 0, "logprobs", 0, "logprob") != -1.0 ||
		f.Last(t).Params.Logprobs != 3 {
		t.Errorf("%v", m)
	}
	list := porttest.Events(t, porttest.Post(t, srv, "/v1/responses", `{"stream":true,`+body).Body)
	porttest.ConformResponses(t, list)
}

func TestResponsesRefuseWhatTheyCannotRead(t *testing.T) {
	for _, c := range []struct{ body, param, code, message string }{
		{`{`, "", "", "not valid JSON"},
		{`{}`, "input", "missing_required_parameter", "missing"},
		{`{"input":7}`, "input", "invalid_type", "a string or an array of items"},
		{`{"input":[7]}`, "input[0]", "invalid_type", "an object"},
		{`{"input":[{"content":"x"}]}`, "input[0].role", "missing_required_parameter", "missing"},
		{`{"input":[{"role":"bot","content":"x"}]}`, "input[0].role", "", "bot"},
		{`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:"}]}]}`,
			"input[0].content[0].type", "unsupported_parameter", "text only"},
		{`{"input":[{"type":"function_call","call_id":"x","name":"f","arguments":{}}]}`,
			"input[0].arguments", "invalid_type", "a string, but got an object"},
		{`{"input":"x","text":{"format":{"type":"json_schema","name":"a","strict":true,"schema":` +
			porttest.Beyond + `}}}`, "text.format.schema", "invalid_json_schema", `"#/properties/a": $ref`},
		{`{"input":"x","text":{"format":{"type":"json_schema","name":"a"}}}`, "text.format.schema",
			"missing_required_parameter", "missing"},
		{`{"input":"x","tools":[{"type":"function","name":"f","strict":true,"parameters":` +
			porttest.Beyond + `}]}`, "tools[0].parameters", "invalid_function_parameters",
			`"#/properties/a": $ref`},
		{`{"input":"x","text":{"format":{"type":"yaml"}}}`, "text.format.type", "", "yaml"},
		{`{"input":"x","guided_structural_tag":"x"}`, "guided_structural_tag",
			"unsupported_parameter", "not supported"},
		{`{"input":"x","text":"y"}`, "text", "invalid_type", "an object"},
		{`{"input":"x","reasoning":{"effort":"huge"}}`, "reasoning.effort", "", "huge"},
		{`{"input":"x","reasoning":"high"}`, "reasoning", "invalid_type", "an object"},
		{`{"input":"x","background":true,"store":false}`, "background", "", "needs store"},
		{`{"input":"x","conversation":"conv_1","previous_response_id":"resp_1"}`,
			"conversation", "", "cannot both"},
		{`{"input":"x","prompt":{"id":"p"}}`, "prompt", "unsupported_parameter", "instructions"},
		{`{"input":"x","tools":[{"name":"f"}]}`, "tools[0].type", "missing_required_parameter",
			"missing"},
		{`{"input":"x","tool_choice":"required"}`, "tool_choice", "", "offers no function"},
		{`{"input":"x","tools":[` + porttest.WeatherFunction +
			`],"tool_choice":{"type":"function","name":"f"}}`, "tool_choice", "",
			"not among the tools"},
		{`{"input":"x","max_output_tokens":0}`, "max_output_tokens", "", "at least 1"},
		{`{"input":"x","top_logprobs":21}`, "top_logprobs", "", "between 0 and 20"},
		{`{"input":"x","metadata":[]}`, "metadata", "invalid_type", "an object"},
		{`{"input":"x","include":[1]}`, "include[0]", "invalid_type", "a string"},
		{`{"input":"x","include":["everything"]}`, "include[0]", "", "everything"},
		{`{"input":"x","truncation":"middle"}`, "truncation", "", "auto or disabled"},
		{`{"input":"x","max_tool_calls":0}`, "max_tool_calls", "", "between 1 and"},
	} {
		t.Run(c.body, func(t *testing.T) {
			srv, f := porttest.Server(t, sessiontest.Answers("ok"))
			porttest.WantFault(t, porttest.Ask(t, "POST", srv.URL+"/v1/responses", c.body), 400,
				fields.KindInvalid, c.param,
				c.code, c.message)
			if len(f.Requests) != 0 {
				t.Error("a turn was started")
			}
		})
	}
}

func TestSeal(t *testing.T) {
	for _, text := range []string{"", "Think.", "ünïcödé\n\x00 \U0001F600", strings.Repeat("long ",
		1000)} {
		if got := request.Unseal(request.Seal(text)); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	for _, foreign := range []string{"", "gAAAA-mock", "ossrun1.!!!", "ossrun2.aGk", "ossrun1"} {
		if got := request.Unseal(foreign); got != "" {
			t.Errorf("%q is read as %q", foreign, got)
		}
	}
}
