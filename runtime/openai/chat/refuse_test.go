package chat_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// What chat completions refuse, and how they fail.

func TestChatRefusesWhatItCannotRead(t *testing.T) {
	for _, c := range []struct{ body, param, code, message string }{
		{``, "", "", "not valid JSON: it ends"},
		{"{\n \"a\": nope}", "", "", "at line 2, column 8 (byte 10)"},
		{"{\n \"ä\": \"\xe4\"}", "", "", "it is not UTF-8: 0xe4 at line 2, column 9 (byte 11)"},
		{"{}\xe2\x82", "", "", "it is not UTF-8: 0xe2 at line 1, column 3 (byte 3)"},
		{"\xff{\x00}\x00", "", "", "it is not UTF-8: 0xff at line 1, column 1"},
		{`[]`, "", "invalid_type", "the request body: expected an object, but got an array"},
		{`{}`, "messages", "missing_required_parameter", "missing"},
		{`{"messages":null}`, "messages", "missing_required_parameter", "missing"},
		{`{"messages":[]}`, "messages", "", "empty"},
		{`{"messages":"hi"}`, "messages", "invalid_type", "expected an array, but got a string"},
		{`{"messages":[1]}`, "messages[0]", "invalid_type", "expected an object, but got a number"},
		{`{"messages":[{"content":"x"}]}`, "messages[0].role", "missing_required_parameter",
			"missing"},
		{`{"messages":[{"role":"bot","content":"x"}]}`, "messages[0].role", "", `"bot"`},
		{`{"messages":[{"role":"user","content":7}]}`, "messages[0].content", "invalid_type",
			"a string or an array of content parts"},
		{`{"messages":[{"role":"user","content":[{"type":"text","text":7}]}]}`,
			"messages[0].content[0].text", "invalid_type", "expected a string"},
		{`{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`,
			"messages[0].content[0].type", "unsupported_parameter", "text only"},
		{`{"messages":[{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"a b","arguments":"{}"}}]}]}`, "messages[0].tool_calls[0].function.name", "", "not a tool name"},
		{`{"messages":[` + porttest.Hello + `],"temperature":"hot"}`, "temperature", "invalid_type",
			"expected a number, but got a string"},
		{`{"messages":[` + porttest.Hello + `],"temperature":2.5}`, "temperature", "", "between 0 and 2"},
		{`{"messages":[` + porttest.Hello + `],"top_p":-1}`, "top_p", "", "between 0 and 1"},
		{`{"messages":[` + porttest.Hello + `],"n":0}`, "n", "", "between 1 and"},
		{`{"messages":[` + porttest.Hello + `],"n":1.5}`, "n", "invalid_type", "an integer"},
		{`{"messages":[` + porttest.Hello + `],"stream":"yes"}`, "stream", "invalid_type", "a boolean"},
		{`{"messages":[` + porttest.Hello + `],"seed":"x"}`, "seed", "invalid_type", "integer"},
		{`{"messages":[` + porttest.Hello + `],"stop":7}`, "stop", "invalid_type", "a string or an array"},
		{`{"messages":[` + porttest.Hello + `],"stop":["a",7]}`, "stop[1]", "invalid_type", "a string"},
		{`{"messages":[` + porttest.Hello + `],"logit_bias":{"x":1}}`, "logit_bias.x", "", "not a token id"},
		{`{"messages":[` + porttest.Hello + `],"logit_bias":{"5":200}}`, "logit_bias.5", "",
			"between -100 and 100"},
		{`{"messages":[` + porttest.Hello + `],"top_logprobs":2}`, "top_logprobs", "", "needs logprobs"},
		{`{"messages":[` + porttest.Hello + `],"logprobs":true,"top_logprobs":21}`, "top_logprobs", "",
			"between 0 and 20"},
		{`{"messages":[` + porttest.Hello + `],"max_tokens":0}`, "max_tokens", "", "at least 1"},
		{`{"messages":[` + porttest.Hello + `],"reasoning_effort":"huge"}`, "reasoning_effort", "",
			"none, minimal, low"},
		{`{"messages":[` + porttest.Hello + `],"tools":{}}`, "tools", "invalid_type", "an array"},
		{`{"messages":[` + porttest.Hello + `],"tools":[{"type":"function","function":{"name":"a b"}}]}`,
			"tools[0].function.name", "", "letters"},
		{`{"messages":[` + porttest.Hello +
			`],"tools":[{"type":"function","function":{"name":"f","parameters":"x"}}]}`,
			"tools[0].function.parameters", "invalid_type", "an object"},
		{`{"messages":[` + porttest.Hello + `],"tool_choice":"required"}`, "tool_choice", "",
			"offers no function"},
		{`{"messages":[` + porttest.Hello + `],"tool_choice":"required","tools":[{"type":"web_search"}]}`,
			"tools", "unsupported_parameter", "--tools browser"},
		{`{"messages":[` + porttest.Hello + `],"tools":[` + porttest.WeatherTool +
			`],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[]}}}`, "tool_choice", "", "offers no function"},
		{`{"messages":[` + porttest.Hello + `],"tool_choice":"maybe"}`, "tool_choice", "", "auto"},
		{`{"messages":[` + porttest.Hello + `],"tools":[` + porttest.WeatherTool +
			`],"tool_choice":{"type":"function","function":{"name":"f"}}}`, "tool_choice", "",
			"\"f\", which is not among the tools"},
		{`{"messages":[` + porttest.Hello + `],"tools":[` + porttest.WeatherTool +
			`],"tool_choice":{"type":"custom","custom":{"name":"f"}}}`, "tool_choice",
			"", "not among the tools"},
		{`{"messages":[` + porttest.Hello + `],"tools":[` + porttest.WeatherTool +
			`],"tool_choice":{"type":"robot"}}`, "tool_choice", "", "not among the tools"},
		{`{"messages":[` + porttest.Hello + `],"response_format":{"type":"yaml"}}`, "response_format.type",
			"", "yaml"},
		{`{"messages":[` + porttest.Hello + `],"response_format":"json_object"}`, "response_format",
			"invalid_type", "an object"},
		{`{"messages":[` + porttest.Hello + `],"response_format":{"type":"json_schema"}}`,
			"response_format.json_schema", "missing_required_parameter", "missing"},
		{`{"messages":[` + porttest.Hello +
			`],"response_format":{"type":"json_schema","json_schema":{"name":"a"}}}`,
			"response_format.json_schema.schema", "missing_required_parameter", "missing"},
		{`{"messages":[` + porttest.Hello +
			`],"response_format":{"type":"json_schema","json_schema":{"name":"a b","schema":{}}}}`,
			"response_format.json_schema.name", "", "letters"},
		{`{"messages":[` + porttest.Hello +
			`],"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":7}}}`,
			"response_format.json_schema.schema", "invalid_type", "an object"},
		{`{"messages":[` + porttest.Hello +
			`],"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":` + porttest.Beyond + `}}}`, "response_format.json_schema.schema", "invalid_json_schema", `"#/properties/a": $ref`},
		{`{"messages":[` + porttest.Hello +
			`],"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":{"type":"thing"}}}}`, "response_format.json_schema.schema", "invalid_json_schema", "thing"},
		{`{"messages":[` + porttest.Hello + `],"tools":[` + porttest.WeatherTool +
			`,{"type":"function","function":{"name":"f","strict":true,"parameters":` + porttest.Beyond +
			`}}]}`, "tools[1].function.parameters", "invalid_function_parameters",
			`"#/properties/a": $ref`},
		{`{"messages":[` + porttest.Hello + `],"guided_json":` + porttest.Beyond + `}`, "guided_json",
			"invalid_json_schema", `"#/properties/a": $ref`},
		{`{"messages":[` + porttest.Hello + `],"guided_json":"{"}`, "guided_json", "invalid_json_schema",
			"guided_json is not supported"},
		{`{"messages":[` + porttest.Hello + `],"guided_regex":"("}`, "guided_regex", "",
			"regular expression"},
		{`{"messages":[` + porttest.Hello + `],"guided_regex":7}`, "guided_regex", "invalid_type",
			"a string"},
		{`{"messages":[` + porttest.Hello + `],"guided_choice":[]}`, "guided_choice", "",
			"nothing to choose"},
		{`{"messages":[` + porttest.Hello + `],"guided_choice":["a",7]}`, "guided_choice[1]", "invalid_type",
			"a string"},
		{`{"messages":[` + porttest.Hello + `],"guided_grammar":"root ::= x"}`, "guided_grammar", "",
			"the rule x is used but not written"},
		{`{"messages":[` + porttest.Hello + `],"structured_outputs":{"structural_tag":"{}"}}`,
			"structured_outputs.structural_tag", "unsupported_parameter", "not supported"},
		{`{"messages":[` + porttest.Hello +
			`],"guided_choice":["a"],"response_format":{"type":"json_object"}}`, "guided_choice",
			"", "one format only"},
		{`{"messages":[` + porttest.Hello + `],"max_reasoning_tokens":-2}`, "max_reasoning_tokens", "",
			"between -1"},
	} {
		t.Run(c.body, func(t *testing.T) {
			srv, f := porttest.Server(t, sessiontest.Answers("ok"))
			r := porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions", c.body)
			porttest.WantFault(t, r, 400, fields.KindInvalid, c.param, c.code, c.message)
			if len(f.Requests) != 0 {
				t.Error("a turn was started")
			}
		})
	}
}

func TestStartErrors(t *testing.T) {
	for _, c := range []struct {
		err                        error
		status                     int
		kind, param, code, message string
	}{
		{fmt.Errorf("turn: %w", sample.ErrNonFinite), 500, fields.KindServer, "",
			"non_finite_logits", "NaN or infinite"},
		{&sched.EngineError{Fault: errors.New("gone")}, 500, fields.KindServer, "", "engine_fault",
			"send it again"},
		{fmt.Errorf("submit: %w", &session.BusyError{RetryAfter: 7 * time.Second}), 429,
			"rate_limit_error", "", "rate_limit_exceeded", "queue"},
		{&sched.ContextLengthError{Max: 4096, Needed: 5000}, 400, fields.KindInvalid, "messages",
			fields.CodeContextLength,
			"This model's maximum context length is 4096 tokens. However, you requested 5000 " +
				"tokens."},
		{&session.RequestError{Param: "effort", Msg: "must be low"}, 400, fields.KindInvalid,
			"reasoning_effort", "", "must be low"},
		{sched.ErrClosed, 503, fields.KindServer, "", fields.KindServer, "shutting down"},
		{fmt.Errorf("%w: no server answers", session.ErrUnavailable), 503, fields.KindServer, "",
			"model_unavailable", "no server answers"},
		{errors.New("the device is gone"), 500, fields.KindServer, "", fields.KindServer,
			"the device is gone"},
	} {
		t.Run(c.message, func(t *testing.T) {
			srv, _ := porttest.Server(t, sessiontest.Fails(c.err))
			for _, stream := range []string{"true", "false"} {
				r := porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions",
					`{"messages":[`+porttest.Hello+`],"stream":`+stream+`}`)
				porttest.WantFault(t, r, c.status, c.kind, c.param, c.code, c.message)
				want := map[int]string{http.StatusTooManyRequests: "7",
					http.StatusServiceUnavailable: "2"}[c.status]
				if r.Header.Get("Retry-After") != want {
					t.Errorf("Retry-After: %q", r.Header.Get("Retry-After"))
				}
			}
			if c.param == "messages" {
				c.param = "input"
			}
			r := porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{"input":"hi","stream":true}`)
			porttest.WantFault(t, r, c.status, c.kind, c.param, c.code, c.message)
		})
	}
}

// One of several turns cannot start: the ones before it are ended.
func TestChatSecondChoiceCannotStart(t *testing.T) {
	n := 0
	srv, _ := porttest.Server(t, func(r session.Request) ([]session.Event, error) {
		if n++; n == 2 {
			return nil, &session.BusyError{RetryAfter: time.Second}
		}
		return sessiontest.Answers("ok")(r)
	})
	r := porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions", `{"messages":[`+porttest.Hello+`],"n":3}`)
	porttest.WantFault(t, r, 429, "rate_limit_error", "", "rate_limit_exceeded", "queue")
}

func TestChatFailsInTheMiddle(t *testing.T) {
	srv, _ := porttest.Server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "Hel"},
			session.Done{Finish: session.FinishError, Err: errors.New("the device is gone")}}, nil
	})
	r := porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions", `{"messages":[`+porttest.Hello+`]}`)
	porttest.WantFault(t, r, 500, fields.KindServer, "", fields.KindServer, "the device is gone")
	r = porttest.Post(t, srv, "/v1/chat/completions", `{"stream":true,"messages":[`+porttest.Hello+`]}`)
	list := porttest.Events(t, r.Body)
	if n := len(list); n < 2 || porttest.At(list[n-2].Json, "error", "message") != "the device is gone" ||
		list[n-1].Data != "[DONE]" {
		t.Errorf("stream: %s", r.Body)
	}
	porttest.Conform(t, "ErrorResponse", list[len(list)-2].Json)
	if strings.Contains(r.Body, `"finish_reason":"`) {
		t.Error("a failed stream has a finish reason")
	}
}
