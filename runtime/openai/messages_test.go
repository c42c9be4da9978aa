package openai

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

const messagesRoute = "/v1/messages"

func TestMessagesWhole(t *testing.T) {
	srv, f := server(t, answers("Hello."))
	r := post(t, srv, messagesRoute, turnOf(`{"role":"user","content":"hi"}`,
		`,"stop_sequences":["END"],"temperature":0.5,"top_p":0.9,"top_k":40`))
	m := decode(t, r.body)
	if id, _ := m["id"].(string); !strings.HasPrefix(id, "msg_") {
		t.Errorf("id %v", m["id"])
	}
	delete(m, "id")
	want := decode(t, `{"type":"message","role":"assistant","model":"gpt-oss:20b","content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":32,"cache_creation_input_tokens":0,"cache_read_input_tokens":8,"output_tokens":12}}`)
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got  %v\nwant %v", m, want)
	}
	if h := r.header.Get("X-Ossrun-Ignored"); h != "" || r.header.Get("Request-Id") == "" {
		t.Errorf("ignored %q, headers %v", h, r.header)
	}
	req := f.last(t)
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
	for _, e := range events(t, body) {
		kind, _ := e.json["type"].(string)
		if kind != e.name {
			t.Errorf("event %q has the type %q", e.name, kind)
		}
		switch kind {
		case "content_block_start":
			kind += " " + at(e.json, "content_block", "type").(string)
		case "content_block_delta":
			kind = at(e.json, "delta", "type").(string)
			for _, key := range []string{"text", "thinking", "partial_json", "signature"} {
				s, _ := at(e.json, "delta", key).(string)
				text[kind] += s
			}
		case "message_delta":
			kind += " " + at(e.json, "delta", "stop_reason").(string)
		}
		if len(list) == 0 || list[len(list)-1] != kind {
			list = append(list, kind)
		}
	}
	return strings.Join(list, ", "), text
}

func TestMessagesAgent(t *testing.T) {
	srv, f := server(t, agent)
	think := `,"stream":true,"thinking":{"type":"adaptive"}`
	shape, text := shapeOf(t, post(t, srv, messagesRoute, turnOf(askFiles, think)).body)
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
		shape, _ = shapeOf(t, post(t, srv, messagesRoute, turnOf(askFiles+
			`,{"role":"system","content":"# Environment"},{"role":"assistant","content":[`+
			`{"type":"thinking","thinking":"`+thinking+`","signature":`+string(sealed)+`},`+
			`{"type":"text","text":"I look."},`+
			`{"type":"tool_use","id":"call_1","name":"Bash","input":{"command":"ls"}}]},`+
			`{"role":"user","content":[{"type":"tool_result",`+
			`"tool_use_id":"call_1","content":[{"type":"text","text":"README.md"}],"is_error":false}]}`,
			think)).body)
		if want := "message_start, ping, content_block_start thinking, thinking_delta, " +
			"signature_delta, content_block_stop, content_block_start text, text_delta, " +
			"content_block_stop, message_delta end_turn, message_stop"; shape != want {
			t.Errorf("got  %s\nwant %s", shape, want)
		}
		want := "user: Context.\n\nList the files.\ndeveloper: # Environment\n" +
			"assistant <analysis>: A tool knows.\nassistant <commentary>: I look.\n" +
			"assistant <commentary> to functions.Bash #call_1: {\"command\":\"ls\"}\n" +
			"tool functions.Bash <commentary> to assistant #call_1: README.md"
		if got := history(f.last(t)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	post(t, srv, messagesRoute, turnOf(askFiles+`,{"role":"assistant","content":[{"type":`+
		`"tool_use","id":"c","name":"Bash","input":{}}]},{"role":"user","content":[{"type":"text",`+
		`"text":"Go on."},{"type":"tool_result","tool_use_id":"c","content":"x"}]}`, ""))
	if got := history(f.last(t)); !strings.HasSuffix(got, "#c: x\nuser: Go on.") {
		t.Errorf("words before a result: %s", got)
	}
	// without its text, only the signature
	body := post(t, srv, messagesRoute, turnOf(askFiles,
		`,"stream":true,"thinking":{"type":"adaptive","display":"omitted"}`)).body
	if shape, text = shapeOf(t, body); strings.Contains(shape, "thinking_delta") ||
		unseal(text["signature_delta"]) != "A tool knows." {
		t.Errorf("omitted: %s %v", shape, text)
	}
	m := decode(t, post(t, srv, messagesRoute, turnOf(askFiles,
		`,"thinking":{"type":"enabled","budget_tokens":1024}`)).body)
	if at(m, "content", 0, "thinking") != "A tool knows." ||
		unseal(at(m, "content", 0, "signature").(string)) != "A tool knows." ||
		!reflect.DeepEqual(at(m, "content", 1, "input"), map[string]any{"city": "Paris"}) ||
		m["stop_reason"] != "tool_use" || f.last(t).MaxReasoning != 1024 {
		t.Errorf("whole: %v", m)
	}
	// a system text renders the same in both forms
	var lead []string
	for _, content := range []string{`"# Env"`, `[{"type":"text","text":"# Env"}]`} {
		post(t, srv, messagesRoute, turnOf(askFiles+`,{"role":"system","content":`+content+`}`, ""))
		lead = append(lead, history(f.last(t)))
	}
	if lead[0] != lead[1] {
		t.Errorf("%q and %q", lead[0], lead[1])
	}
}

func TestMessagesEnds(t *testing.T) {
	stopped := session.Done{Finish: session.FinishStop, StopString: "END", Usage: usage}
	for _, c := range []struct {
		events         []session.Event
		reason, blocks string
	}{
		{[]session.Event{session.Answer{Text: "a"}, stopped}, "stop_sequence", "text"},
		{[]session.Event{session.Answer{Text: "a"}, done(session.FinishLength)}, "max_tokens",
			"text"},
		{[]session.Event{done(session.FinishStop)}, "end_turn", ""},
		{[]session.Event{session.Commentary{Text: "a"}, session.Answer{Text: "b"},
			done(session.FinishStop)}, "end_turn", "text text"},
		{[]session.Event{session.CallStart{ID: "c", Name: "Bash"}, session.CallArguments{Text: "{"},
			done(session.FinishLength)}, "max_tokens", ""},
		{[]session.Event{session.CallStart{ID: "c", Name: "Bash"}, session.CallEnd{},
			done(session.FinishToolCalls)}, "tool_use", "tool_use"},
	} {
		srv, _ := server(t, func(session.Request) ([]session.Event, error) {
			return c.events, nil
		})
		m := decode(t, post(t, srv, messagesRoute, turnOf(askFiles, "")).body)
		var kinds []string
		for _, b := range m["content"].([]any) {
			kinds = append(kinds, at(b, "type").(string))
		}
		if m["stop_reason"] != c.reason || strings.Join(kinds, " ") != c.blocks ||
			(c.reason == "stop_sequence") != (m["stop_sequence"] == "END") {
			t.Errorf("%v: %v", c.events, m)
		}
		body := post(t, srv, messagesRoute, turnOf(askFiles, `,"stream":true`)).body
		shape, _ := shapeOf(t, body)
		if !strings.HasSuffix(shape, "message_delta "+c.reason+", message_stop") ||
			strings.Count(body, "event: content_block_start") != strings.Count(body,
				"event: content_block_stop") {
			t.Errorf("%v: %s", c.events, shape)
		}
	}
}

func TestMessagesToolChoice(t *testing.T) {
	srv, f := server(t, agent)
	for choice, want := range map[string]grammar.ToolChoice{`{"type":"auto"}`: grammar.Auto,
		`{"type":"any","disable_parallel_tool_use":true}`: grammar.Required,
		`{"type":"tool","name":"Bash"}`:                   grammar.Named,
		`{"type":"none"}`:                                 grammar.None} {
		post(t, srv, messagesRoute, turnOf(askFiles, `,"tool_choice":`+choice))
		if got := f.last(t); got.ToolChoice != want {
			t.Errorf("%s: %v", choice, got.ToolChoice)
		}
	}
}

// wantAnthropic checks an error's body.
func wantAnthropic(t *testing.T, r reply, status int, kind, message string) {
	t.Helper()
	m := decode(t, r.body)
	text, _ := at(m, "error", "message").(string)
	if r.status != status || m["type"] != "error" || at(m, "error", "type") != kind ||
		!strings.Contains(text, message) || m["request_id"] != r.header.Get("Request-Id") {
		t.Errorf("%d %s, want %d %s %q", r.status, r.body, status, kind, message)
	}
}

func TestMessagesRefuses(t *testing.T) {
	srv, _ := server(t, agent)
	use := `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{}}]}`
	for _, c := range []struct{ body, message string }{
		{`{"messages":[` + hello + `]}`, "max_tokens"},
		{turnOf(``, ""), "messages is empty"},
		{turnOf(`{"role":"bot","content":"x"}`, ""), "messages[0].role"},
		{turnOf(`{"role":"user"}`, ""), "messages[0].content"},
		{turnOf(`{"role":"user","content":[]}`, ""), "messages[0].content"},
		{turnOf(`{"role":"user","content":[{"type":"image","source":{}}]}`, ""), "text only"},
		{turnOf(hello+`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1"}]}`,
			""), `no tool_use with the id "c1"`},
		{turnOf(hello+`,`+use+`,`+hello, ""), "none was found for c1"},
		{turnOf(hello+`,{"role":"assistant","content":"I say"}`, ""), "the last message"},
		{turnOf(hello, `,"thinking":{"type":"often"}`), "thinking.type"},
		{turnOf(hello, `,"tool_choice":{"type":"tool","name":"ls"}`), `"ls"`},
		{turnOf(hello, `,"tool_choice":{"type":"often"}`), "auto, any, tool or none"},
		{turnOf(hello, `,"temperature":7`), "temperature"},
	} {
		r := ask(t, "POST", srv.URL+messagesRoute, c.body)
		wantAnthropic(t, r, 400, "invalid_request_error", c.message)
	}
	wantAnthropic(t, ask(t, "POST", srv.URL+messagesRoute, strings.Replace(turnOf(hello, ""),
		"gpt-oss:20b", "claude", 1)), 404, "not_found_error", "claude")
	wantAnthropic(t, ask(t, "GET", srv.URL+messagesRoute, ""), 405, "invalid_request_error", "POST")
}

func TestMessagesFailures(t *testing.T) {
	tooLong := &sched.ContextLengthError{Max: 4096, Asked: 5000}
	for _, c := range []struct {
		err     error
		status  int
		kind    string
		message string
	}{
		{tooLong, 400, "invalid_request_error", "prompt is too long: 5000 tokens > 4096 maximum"},
		{&session.BusyError{After: 1e9}, 429, "rate_limit_error", "queue"},
		{sched.ErrClosed, 503, "overloaded_error", "shutting down"},
		{errors.New("broken"), 500, "api_error", "broken"},
	} {
		srv, _ := server(t, fails(c.err))
		r := ask(t, "POST", srv.URL+messagesRoute, turnOf(hello, ""))
		wantAnthropic(t, r, c.status, c.kind, c.message)
	}
	srv, _ := server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "a"},
			session.Done{Finish: session.FinishError, Err: errors.New("gone")}}, nil
	})
	list := events(t, post(t, srv, messagesRoute, turnOf(hello, `,"stream":true`)).body)
	if last := list[len(list)-1]; last.name != "error" || at(last.json, "error", "type") !=
		"api_error" {
		t.Errorf("the stream ends in %v", last)
	}
	srv, _ = server(t, answers("ok"), func(o *Options) { o.APIKey = "secret" })
	wantAnthropic(t, ask(t, "POST", srv.URL+messagesRoute, turnOf(hello, "")), 401,
		"authentication_error", "API key")
	if r := ask(t, "POST", srv.URL+messagesRoute, turnOf(hello, ""), "X-Api-Key",
		"secret"); r.status != 200 {
		t.Errorf("x-api-key: %d", r.status)
	}
}

func TestCountTokens(t *testing.T) {
	srv, _ := server(t, fails(errors.New("no turn may be started")))
	count := func(body string) float64 {
		m := decode(t, post(t, srv, messagesRoute+"/count_tokens", body).body)
		n, _ := m["input_tokens"].(float64)
		return n
	}
	short, long := count(`{"messages":[`+hello+`]}`), count(turnOf(hello, ""))
	if short < 30 || long < short+20 {
		t.Errorf("%v and %v tokens", short, long)
	}
	wantAnthropic(t, ask(t, "POST", srv.URL+messagesRoute+"/count_tokens", `{}`), 400,
		"invalid_request_error", "messages")
}
