package messages_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer/answertest"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/openai/request"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

const messagesRoute = "/v1/messages"

func TestMessagesWhole(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("Hello."))
	r := porttest.Post(t, srv, messagesRoute, answertest.TurnOf(`{"role":"user","content":"hi"}`,
		`,"stop_sequences":["END"],"temperature":0.5,"top_p":0.9,"top_k":40`))
	m := porttest.Decode(t, r.Body)
	if id, _ := m["id"].(string); !strings.HasPrefix(id, "msg_") {
		t.Errorf("id %v", m["id"])
	}
	delete(m, "id")
	want := porttest.Decode(t, `{"type":"message","role":"assistant","model":"gpt-oss:20b","content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":32,"cache_creation_input_tokens":0,"cache_read_input_tokens":8,"output_tokens":12}}`)
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got  %v\nwant %v", m, want)
	}
	if h := r.Header.Get("X-Ossrun-Ignored"); h != "" || r.Header.Get("Request-Id") == "" {
		t.Errorf("ignored %q, headers %v", h, r.Header)
	}
	req := f.Last(t)
	if req.Effort != "high" || req.MaxTokens != 32000 || req.Params.Temperature != 0.5 ||
		req.Params.TopK != 40 || !reflect.DeepEqual(req.Stop, []string{"END"}) ||
		!strings.HasSuffix(req.Instructions, "\n\nYou are an agent.") ||
		len(req.Functions) != 1 || !strings.Contains(string(req.Functions[0].Parameters),
		`"required":["command"]`) {
		t.Errorf("request %+v", req)
	}
}

// shape is a stream without its texts: types, indexes and stop reason.
func shapeOf(t *testing.T, body string) (shape string, text map[string]string) {
	t.Helper()
	text = map[string]string{}
	var list []string
	for _, e := range porttest.Events(t, body) {
		kind, _ := e.Json["type"].(string)
		if kind != e.Name {
			t.Errorf("event %q has the type %q", e.Name, kind)
		}
		switch kind {
		case "content_block_start":
			kind += " " + porttest.At(e.Json, "content_block", "type").(string)
		case "content_block_delta":
			kind = porttest.At(e.Json, "delta", "type").(string)
			for _, key := range []string{"text", "thinking", "partial_json", "signature"} {
				s, _ := porttest.At(e.Json, "delta", key).(string)
				text[kind] += s
			}
		case "message_delta":
			kind += " " + porttest.At(e.Json, "delta", "stop_reason").(string)
		}
		if len(list) == 0 || list[len(list)-1] != kind {
			list = append(list, kind)
		}
	}
	return strings.Join(list, ", "), text
}

func TestMessagesAgent(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Agent)
	think := `,"stream":true,"thinking":{"type":"adaptive"}`
	shape, text := shapeOf(t, porttest.Post(t, srv, messagesRoute,
		answertest.TurnOf(answertest.AskFiles, think)).Body)
	if want := "message_start, ping, content_block_start thinking, thinking_delta, " +
		"signature_delta, content_block_stop, content_block_start tool_use, input_json_delta, " +
		"content_block_stop, message_delta tool_use, message_stop"; shape != want {
		t.Errorf("got  %s\nwant %s", shape, want)
	}
	if text["input_json_delta"] != `{"city": "Paris"}` || text["thinking_delta"] !=
		"A tool knows." {
		t.Errorf("texts %v", text)
	}
	sealed, _ := json.Marshal(text["signature_delta"])
	// the thinking comes back by its signature, where the text was left out too
	for _, thinking := range []string{"A tool knows.", ""} {
		shape, _ = shapeOf(t, porttest.Post(t, srv, messagesRoute,
			answertest.TurnOf(answertest.AskFiles+
				`,{"role":"system","content":"# Environment"},{"role":"assistant","content":[`+
				`{"type":"thinking","thinking":"`+thinking+`","signature":`+string(sealed)+`},`+
				`{"type":"text","text":"I look."},`+
				`{"type":"tool_use","id":"call_1","name":"Bash","input":{"command":"ls"}}]},`+
				`{"role":"user","content":[{"type":"tool_result",`+
				`"tool_use_id":"call_1","content":[{"type":"text","text":"README.md"}],"is_error":false}]}`,
				think)).Body)
		if want := "message_start, ping, content_block_start thinking, thinking_delta, " +
			"signature_delta, content_block_stop, content_block_start text, text_delta, " +
			"content_block_stop, message_delta end_turn, message_stop"; shape != want {
			t.Errorf("got  %s\nwant %s", shape, want)
		}
		want := "user: Context.\n\nList the files.\ndeveloper: # Environment\n" +
			"assistant <analysis>: A tool knows.\nassistant <commentary>: I look.\n" +
			"assistant <commentary> to functions.Bash #call_1: {\"command\":\"ls\"}\n" +
			"tool functions.Bash <commentary> to assistant #call_1: README.md"
		if got := sessiontest.History(f.Last(t)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	porttest.Post(t, srv, messagesRoute, answertest.TurnOf(answertest.AskFiles+`,{"role":"assistant","content":[{"type":`+
		`"tool_use","id":"c","name":"Bash","input":{}}]},{"role":"user","content":[{"type":"text",`+
		`"text":"Go on."},{"type":"tool_result","tool_use_id":"c","content":"x"}]}`, ""))
	if got := sessiontest.History(f.Last(t)); !strings.HasSuffix(got, "#c: x\nuser: Go on.") {
		t.Errorf("words before a result: %s", got)
	}
	// without its text, only the signature
	body := porttest.Post(t, srv, messagesRoute, answertest.TurnOf(answertest.AskFiles,
		`,"stream":true,"thinking":{"type":"adaptive","display":"omitted"}`)).Body
	if shape, text = shapeOf(t, body); strings.Contains(shape, "thinking_delta") ||
		request.Unseal(text["signature_delta"]) != "A tool knows." {
		t.Errorf("omitted: %s %v", shape, text)
	}
	m := porttest.Decode(t, porttest.Post(t, srv, messagesRoute,
		answertest.TurnOf(answertest.AskFiles,
			`,"thinking":{"type":"enabled","budget_tokens":1024}`)).Body)
	if porttest.At(m, "content", 0, "thinking") != "A tool knows." ||
		request.Unseal(porttest.At(m, "content", 0, "signature").(string)) != "A tool knows." ||
		!reflect.DeepEqual(porttest.At(m, "content", 1, "input"), map[string]any{"city": "Paris"}) ||
		m["stop_reason"] != "tool_use" || f.Last(t).MaxReasoning != 1024 {
		t.Errorf("whole: %v", m)
	}
	// a system text renders the same in both forms
	var lead []string
	for _, content := range []string{`"# Env"`, `[{"type":"text","text":"# Env"}]`} {
		porttest.Post(t, srv, messagesRoute, answertest.TurnOf(answertest.AskFiles+`,{"role":"system","content":`+content+`}`, ""))
		lead = append(lead, sessiontest.History(f.Last(t)))
	}
	if lead[0] != lead[1] {
		t.Errorf("%q and %q", lead[0], lead[1])
	}
}

func TestMessagesEnds(t *testing.T) {
	stopped := session.Done{Finish: session.FinishStop, StopString: "END", Usage: sessiontest.Usage}
	for _, c := range []struct {
		events         []session.Event
		reason, blocks string
	}{
		{[]session.Event{session.Answer{Text: "a"}, stopped}, "stop_sequence", "text"},
		{[]session.Event{session.Answer{Text: "a"}, sessiontest.Done(session.FinishLength)}, "max_tokens",
			"text"},
		{[]session.Event{sessiontest.Done(session.FinishStop)}, "end_turn", ""},
		{[]session.Event{session.Commentary{Text: "a"}, session.Answer{Text: "b"},
			sessiontest.Done(session.FinishStop)}, "end_turn", "text text"},
		{[]session.Event{session.CallStart{ID: "c", Name: "Bash"}, session.CallArguments{Text: "{"},
			sessiontest.Done(session.FinishLength)}, "max_tokens", ""},
		{[]session.Event{session.CallStart{ID: "c", Name: "Bash"}, session.CallEnd{},
			sessiontest.Done(session.FinishToolCalls)}, "tool_use", "tool_use"},
	} {
		srv, _ := porttest.Server(t, func(session.Request) ([]session.Event, error) {
			return c.events, nil
		})
		m := porttest.Decode(t, porttest.Post(t, srv, messagesRoute,
			answertest.TurnOf(answertest.AskFiles, "")).Body)
		var kinds []string
		for _, b := range m["content"].([]any) {
			kinds = append(kinds, porttest.At(b, "type").(string))
		}
		if m["stop_reason"] != c.reason || strings.Join(kinds, " ") != c.blocks ||
			(c.reason == "stop_sequence") != (m["stop_sequence"] == "END") {
			t.Errorf("%v: %v", c.events, m)
		}
		body := porttest.Post(t, srv, messagesRoute, answertest.TurnOf(answertest.AskFiles, `,"stream":true`)).Body
		shape, _ := shapeOf(t, body)
		if !strings.HasSuffix(shape, "message_delta "+c.reason+", message_stop") ||
			strings.Count(body, "event: content_block_start") != strings.Count(body,
				"event: content_block_stop") {
			t.Errorf("%v: %s", c.events, shape)
		}
	}
}

func TestMessagesToolChoice(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Agent)
	for choice, want := range map[string]grammar.ToolChoice{`{"type":"auto"}`: grammar.Auto,
		`{"type":"any","disable_parallel_tool_use":true}`: grammar.Required,
		`{"type":"tool","name":"Bash"}`:                   grammar.Named,
		`{"type":"none"}`:                                 grammar.None} {
		porttest.Post(t, srv, messagesRoute, answertest.TurnOf(answertest.AskFiles, `,"tool_choice":`+choice))
		if got := f.Last(t); got.ToolChoice != want {
			t.Errorf("%s: %v", choice, got.ToolChoice)
		}
	}
}

// wantAnthropic checks an error's body.
func wantAnthropic(t *testing.T, r porttest.Reply, status int, kind, message string) {
	t.Helper()
	m := porttest.Decode(t, r.Body)
	text, _ := porttest.At(m, "error", "message").(string)
	if r.Status != status || m["type"] != "error" || porttest.At(m, "error", "type") != kind ||
		!strings.Contains(text, message) || m["request_id"] != r.Header.Get("Request-Id") {
		t.Errorf("%d %s, want %d %s %q", r.Status, r.Body, status, kind, message)
	}
}

func TestMessagesRefuses(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Agent)
	for _, c := range []struct{ body, message string }{
		{`{"messages":[` + porttest.Hello + `]}`, "max_tokens"},
		{answertest.TurnOf(``, ""), "messages is empty"},
		{answertest.TurnOf(`{"role":"bot","content":"x"}`, ""), "messages[0].role"},
		{answertest.TurnOf(`{"role":"user"}`, ""), "messages[0].content"},
		{answertest.TurnOf(`{"role":"user","content":[]}`, ""), "messages[0].content"},
		{answertest.TurnOf(`{"role":"user","content":[{"type":"image","source":{}}]}`, ""), "text only"},
		{answertest.TurnOf(porttest.Hello+`,{"role":"assistant","content":"I say"}`, ""), "the last message"},
		{answertest.TurnOf(porttest.Hello, `,"thinking":{"type":"often"}`), "thinking.type"},
		{answertest.TurnOf(porttest.Hello, `,"tool_choice":{"type":"tool","name":"ls"}`), `"ls"`},
		{answertest.TurnOf(porttest.Hello, `,"tool_choice":{"type":"often"}`), "auto, any, tool or none"},
		{answertest.TurnOf(porttest.Hello, `,"temperature":7`), "temperature"},
	} {
		r := porttest.Ask(t, "POST", srv.URL+messagesRoute, c.body)
		wantAnthropic(t, r, 400, "invalid_request_error", c.message)
	}
	wantAnthropic(t, porttest.Ask(t, "POST", srv.URL+messagesRoute,
		strings.Replace(answertest.TurnOf(porttest.Hello, ""),
			"gpt-oss:20b", "claude", 1)), 404, "not_found_error", "claude")
	wantAnthropic(t, porttest.Ask(t, "GET", srv.URL+messagesRoute, ""), 405, "invalid_request_error", "POST")
}

func TestMessagesFailures(t *testing.T) {
	tooLong := &sched.ContextLengthError{Max: 4096, Needed: 5000}
	for _, c := range []struct {
		err     error
		status  int
		kind    string
		message string
	}{
		{tooLong, 400, "invalid_request_error", "prompt is too long: 5000 tokens > 4096 maximum"},
		{&session.BusyError{RetryAfter: 1e9}, 429, "rate_limit_error", "queue"},
		{sched.ErrClosed, 503, "overloaded_error", "shutting down"},
		{errors.New("broken"), 500, "api_error", "broken"},
	} {
		srv, _ := porttest.Server(t, sessiontest.Fails(c.err))
		r := porttest.Ask(t, "POST", srv.URL+messagesRoute, answertest.TurnOf(porttest.Hello, ""))
		wantAnthropic(t, r, c.status, c.kind, c.message)
	}
	srv, _ := porttest.Server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "a"},
			session.Done{Finish: session.FinishError, Err: errors.New("gone")}}, nil
	})
	list := porttest.Events(t, porttest.Post(t, srv, messagesRoute, answertest.TurnOf(porttest.Hello, `,"stream":true`)).Body)
	if last := list[len(list)-1]; last.Name != "error" || porttest.At(last.Json, "error", "type") !=
		"api_error" {
		t.Errorf("the stream ends in %v", last)
	}
	srv, _ = porttest.Server(t, sessiontest.Answers("ok"), func(o *openai.Options) { o.APIKey = "secret" })
	wantAnthropic(t, porttest.Ask(t, "POST", srv.URL+messagesRoute,
		answertest.TurnOf(porttest.Hello, "")), 401,
		"authentication_error", "API key")
	if r := porttest.Ask(t, "POST", srv.URL+messagesRoute, answertest.TurnOf(porttest.Hello, ""), "X-Api-Key",
		"secret"); r.Status != 200 {
		t.Errorf("x-api-key: %d", r.Status)
	}
}

func TestCountTokens(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Fails(errors.New("no turn may be started")))
	count := func(body string) float64 {
		m := porttest.Decode(t, porttest.Post(t, srv, messagesRoute+"/count_tokens", body).Body)
		n, _ := m["input_tokens"].(float64)
		return n
	}
	short, long := count(`{"messages":[`+porttest.Hello+`]}`), count(answertest.TurnOf(porttest.Hello, ""))
	if short < 30 || long < short+20 {
		t.Errorf("%v and %v tokens", short, long)
	}
	wantAnthropic(t, porttest.Ask(t, "POST", srv.URL+messagesRoute+"/count_tokens", `{}`), 400,
		"invalid_request_error", "messages")
}

// Without a back end typed tools are not answered from memory: a search next to functions is
// skipped, the others are refused.
func TestMessagesTypedTools(t *testing.T) {
	const function = `{"name":"f","input_schema":{"type":"object"}}`
	for tools, want := range map[string]string{
		`{"type":"web_search_20250305","name":"web_search","max_uses":8}`: "web_search_20250305",
		`{"type":"web_fetch_20250910","name":"web_fetch"}`:                "web_fetch_20250910",
		`{"type":"shell"},` + function:                                    "ask /v1/responses",
		`{"type":"mcp","server_label":"s"},` + function:                   "ask /v1/responses",
		`{"type":"new_20300101","name":"n"},` + function:                  "new_20300101",
		`{"type":"function_20250101","name":"n"}`:                         "as a function",
		`{"type":"function","name":"n"}`:                                  "as a function",
		`{"type":"bash_20250124","name":"b h"},` + function:               "letters",
		function + `,{"type":"code_execution_20250825","name":"c"}`:       "",
	} {
		srv, f := porttest.Server(t, sessiontest.Answers("ok"))
		r := porttest.Ask(t, "POST", srv.URL+"/v1/messages", `{"max_tokens":9,"messages":[`+
			porttest.Hello+`],"tools":[`+tools+`]}`)
		if want == "" {
			if r.Status != 200 || len(f.Last(t).Functions) != 1 ||
				r.Header.Get("X-Ossrun-Ignored") != "code_execution_20250825" {
				t.Errorf("%s: %d %v %s", tools, r.Status, r.Header, r.Body)
			}
		} else if r.Status != 400 || !strings.Contains(r.Body, want) || len(f.Requests) != 0 {
			t.Errorf("%s: %d %s", tools, r.Status, r.Body)
		}
	}
}

// A tool that fails is a result with an error, and the text that the model read of it comes back.
func TestMessagesServerToolsFail(t *testing.T) {
	srv, f := porttest.ToolServer(t, porttest.ToolUser, errors.New("no such thing"))
	r := porttest.Post(t, srv, messagesRoute, `{"max_tokens":900,"messages":[`+porttest.Hello+
		`],"tools":[{"type":"code_execution_20250825","name":"code_execution"},`+
		`{"type":"web_search_20250305","name":"web_search"}]}`)
	content, _ := json.Marshal(porttest.Decode(t, r.Body)["content"])
	for _, want := range []string{`"error_code":"unavailable"`, `"return_code":1`,
		`"stderr":"Error: no such thing"`, `"stdout":"42\n"`} {
		if !strings.Contains(string(content), want) {
			t.Errorf("%s is not in %s", want, content)
		}
	}
	seen := sessiontest.History(f.Last(t))
	porttest.Post(t, srv, messagesRoute, `{"max_tokens":900,"messages":[`+porttest.Hello+
		`,{"role":"assistant","content":`+string(content)+`},`+porttest.Hello+
		`],"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"none"}}`)
	if again, want := sessiontest.History(f.Last(t)), "to assistant #call_1: 42\n"+
		"Error: no such thing"; !strings.Contains(again, want) ||
		!strings.Contains(seen, want) {
		t.Errorf("read %s\nagain %s", seen, again)
	}
}

// A search that is forced by its name is the model's first call; unknown names are refused.
func TestMessagesForcesServerTools(t *testing.T) {
	srv, f := porttest.ToolServer(t, porttest.ToolUser, nil)
	ask := func(choice, tool string) porttest.Reply {
		return porttest.Ask(t, "POST", srv.URL+messagesRoute, `{"max_tokens":900,"messages":[`+
			porttest.Hello+`],"tools":[`+tool+`],"tool_choice":`+choice+`}`)
	}
	const search = `{"type":"web_search_20250305","name":"web_search"}`
	if r := ask(`{"type":"tool","name":"web_search"}`, search); r.Status != 200 ||
		!reflect.DeepEqual(f.Requests[0].Only, []string{"browser.search"}) ||
		f.Requests[0].ToolChoice != grammar.Required {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	wantAnthropic(t, ask(`{"type":"tool","name":"other"}`, search), 400, "invalid_request_error",
		"other")
	wantAnthropic(t, ask(`{"type":"auto"}`, `{"type":"web_search_20250305","max_uses":0}`), 400,
		"invalid_request_error", "max_uses")
}
