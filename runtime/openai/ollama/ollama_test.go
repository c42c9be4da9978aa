package ollama_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

const ollamaHello = `"model":"gpt-oss:20b","messages":[` + porttest.Hello + `]`

// linesOf reads lines of JSON.
func linesOf(t *testing.T, r porttest.Reply) (list []map[string]any) {
	t.Helper()
	if kind := r.Header.Get("Content-Type"); kind != "application/x-ndjson" {
		t.Errorf("content type %s", kind)
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(r.Body, "\n"), "\n") {
		list = append(list, porttest.Decode(t, line))
	}
	return list
}

func TestOllamaChat(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("Hello."))
	m := porttest.Decode(t, porttest.Post(t, srv, "/api/chat", `{`+ollamaHello+`,"stream":false,"tools":[],`+
		`"keep_alive":"10m","think":"high","options":{"temperature":0.5,"num_ctx":8192,"seed":7,`+
		`"num_predict":20,"stop":["END"],"repeat_penalty":1.5,"tfs_z":1}}`).Body)
	want := map[string]any{"role": "assistant", "content": "Hello.",
		"thinking": "They ask. I answer."}
	if !reflect.DeepEqual(m["message"], any(want)) || m["done"] != true ||
		m["done_reason"] != "stop" || m["prompt_eval_count"] != 40.0 || m["eval_count"] != 12.0 ||
		m["eval_duration"] != 110e6 || m["model"] != "gpt-oss:20b" {
		t.Errorf("answer %v", m)
	}
	q := f.Last(t)
	if q.Effort != "high" || q.Params.Temperature != 0.5 || q.Params.Seed != 7 ||
		q.MaxTokens != 20 || !reflect.DeepEqual(q.Stop, []string{"END"}) ||
		q.Params.RepetitionPenalty != 1.5 || sessiontest.History(q) != "user: hi" {
		t.Errorf("request %+v", q)
	}
	r := porttest.Post(t, srv, "/api/chat", `{`+ollamaHello+`,"think":false,"options":{"tfs_z":1}}`)
	var text strings.Builder
	list := linesOf(t, r)
	for i, m := range list {
		s, _ := porttest.At(m, "message", "content").(string)
		text.WriteString(s)
		if (m["done"] == true) != (i == len(list)-1) || porttest.At(m, "message", "thinking") != nil {
			t.Errorf("line %d: %v", i, m)
		}
	}
	if text.String() != "Hello." || list[len(list)-1]["eval_count"] != 12.0 || f.Last(t).Effort != "low" ||
		r.Header.Get("X-Ossrun-Ignored") != "options.tfs_z" {
		t.Errorf("stream %s, %v", r.Body, r.Header)
	}
}

// The bodies are those of Ollama's clients for Python and JavaScript 0.6.
func TestOllamaLogprobs(t *testing.T) {
	srv, f := porttest.Server(t, func(session.Request) ([]session.Event, error) {
		lp := func(s string, p float32) session.TokenLogprob {
			return session.TokenLogprob{Token: s, Bytes: []byte(s), Logprob: p}
		}
		he := lp("He", -0.5)
		he.Top = []session.TokenLogprob{lp("Oh", -1)}
		return []session.Event{session.Reasoning{Text: "Hm."},
			session.Answer{Text: "He", Logprobs: []session.TokenLogprob{he}},
			session.Answer{Text: "y", Logprobs: []session.TokenLogprob{lp("y", -0.25)}},
			sessiontest.Done(session.FinishStop)}, nil
	})
	const want = `[` + `{"bytes":[72,101],"logprob":-0.5,"token":"He","top_logprobs":[{"bytes":[79,104],` +
		`"logprob":-1,"token":"Oh"}]},{"bytes":[121],"logprob":-0.25,"token":"y","top_logprobs":[]}]`
	for _, c := range []struct {
		path, body string
		params     int
	}{
		{"/api/chat", ollamaHello + `,"tools":[],"stream":false,"logprobs":true,"top_logprobs":2`, 2},
		{"/api/chat", ollamaHello + `,"tools":[],"stream":true,"logprobs":true,"top_logprobs":2`, 2},
		{"/api/generate", `"model":"gpt-oss:20b","prompt":"hi","stream":false,"logprobs":true`, 0},
		{"/api/generate", `"model":"gpt-oss:20b","prompt":"hi","logprobs":true`, 0},
		{"/api/generate", `"model":"gpt-oss:20b","prompt":"hi","raw":true,"stream":false,` +
			`"logprobs":true`, 0},
	} {
		r := porttest.Post(t, srv, c.path, "{"+c.body+"}")
		var list []any // of all lines
		for line := range strings.Lines(r.Body) {
			more, _ := porttest.Decode(t, line)["logprobs"].([]any)
			list = append(list, more...)
		}
		if got, _ := json.Marshal(list); string(got) != want || r.Header.Get("X-Ossrun-Ignored") != "" {
			t.Errorf("%s %s\n got %s\nwant %s", c.path, c.body, got, want)
		}
		if n := f.Last(t).Params.Logprobs; n != c.params {
			t.Errorf("%s: %d alternatives", c.body, n)
		}
	}
	porttest.Post(t, srv, "/api/chat", `{`+ollamaHello+`,"top_logprobs":3}`)
	if n := f.Last(t).Params.Logprobs; n != -1 {
		t.Errorf("%d alternatives without logprobs", n)
	}
}

func TestOllamaCalls(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Agent)
	tools := `,"tools":[` + porttest.WeatherTool + `]`
	list := linesOf(t, porttest.Post(t, srv, "/api/chat", `{`+ollamaHello+tools+`}`))
	var call any
	for _, m := range list {
		if c := porttest.At(m, "message", "tool_calls", 0, "function"); c != nil {
			call = c
		}
	}
	if want := (map[string]any{"index": 0.0, "name": "get_weather",
		"arguments": map[string]any{"city": "Paris"}}); !reflect.DeepEqual(call, any(want)) {
		t.Errorf("call %v", call)
	}
	m := porttest.Decode(t, porttest.Post(t, srv, "/api/chat", `{`+ollamaHello+tools+`,"stream":false}`).Body)
	if porttest.At(m, "message", "tool_calls", 0, "id") != "call_1" {
		t.Errorf("whole: %v", m)
	}
	// ids are optional: a result finds its call by name, in order
	porttest.Post(t, srv, "/api/chat", `{"model":"gpt-oss:20b","messages":[`+porttest.Hello+
		`,{"role":"assistant","thinking":"Look.","content":"","tool_calls":[`+
		`{"function":{"name":"a","arguments":{"x":1}}},{"function":{"name":"b","arguments":{}}},`+
		`{"id":"mine","function":{"name":"c","arguments":{}}}]},`+
		`{"role":"tool","tool_name":"b","content":"of b"},{"role":"tool","content":"of a"},`+
		`{"role":"tool","tool_call_id":"mine","content":"of c"}]}`)
	want := `user: hi
assistant <analysis>: Look.
assistant <commentary> to functions.a #call_2: {"x":1}
assistant <commentary> to functions.b #call_3: {}
assistant <commentary> to functions.c #mine: {}
tool functions.b <commentary> to assistant #call_3: of b
tool functions.a <commentary> to assistant #call_2: of a
tool functions.c <commentary> to assistant #mine: of c`
	if got := sessiontest.History(f.Last(t)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestOllamaGenerate(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("Paris."))
	m := porttest.Decode(t, porttest.Post(t, srv, "/api/generate", `{"model":"gpt-oss:20b","stream":false,`+
		`"prompt":"The capital of France is","raw":true}`).Body)
	if m["response"] != "Paris." || m["message"] != nil || len(f.Last(t).Prompt) != 5 {
		t.Errorf("raw: %v, prompt %v", m, f.Last(t).Prompt)
	}
	list := linesOf(t, porttest.Post(t, srv, "/api/generate", `{"model":"gpt-oss:20b","prompt":"x",`+
		`"system":"Be brief.","format":{"type":"object","properties":{"a":{"type":"string"}}}}`))
	if list[0]["thinking"] != "They ask. I answer." && list[0]["thinking"] != "They ask. " ||
		list[len(list)-1]["done"] != true {
		t.Errorf("stream: %v", list)
	}
	q := f.Last(t)
	if sessiontest.History(q) != "user: x" || !strings.HasPrefix(q.Instructions, "Be brief.") ||
		q.Final == nil || !strings.Contains(q.Formats, "# Response Formats") {
		t.Errorf("request %+v", q)
	}
}

func TestOllamaModels(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	f.Stats = sched.Stats{}
	if m := porttest.Decode(t, porttest.Ask(t, "GET", srv.URL+"/api/version", "").Body); m["version"] != "0.13.4" {
		t.Errorf("version %v", m)
	}
	for _, path := range []string{"/api/tags", "/api/ps"} {
		m := porttest.Decode(t, porttest.Ask(t, "GET", srv.URL+path, "").Body)
		var names []string
		for _, v := range m["models"].([]any) {
			names = append(names, porttest.At(v, "name").(string))
		}
		all, _ := json.Marshal(names)
		if !strings.Contains(string(all), `"gpt-oss-20b"`) ||
			!strings.Contains(string(all), `"gpt-oss:20b"`) {
			t.Errorf("%s: %s", path, all)
		}
	}
	m := porttest.Decode(t, porttest.Post(t, srv, "/api/show", `{"name":"gpt-oss:20b"}`).Body)
	if porttest.At(m, "model_info", "gptoss.context_length") != 4096.0 || len(
		m["capabilities"].([]any)) != 3 {
		t.Errorf("show %v", m)
	}
	if r := porttest.Post(t, srv, "/api/pull", `{"model":"gpt-oss:20b","stream":false}`); r.Body !=
		`{"status":"success"}`+"\n" {
		t.Errorf("pull %s", r.Body)
	}
	list := linesOf(t, porttest.Post(t, srv, "/api/pull", `{"model":"gpt-oss:20b"}`))
	if list[len(list)-1]["status"] != "success" {
		t.Errorf("pull %v", list)
	}
}

func TestOllamaRefuses(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Agent)
	for _, c := range []struct {
		path, body string
		status     int
		message    string
	}{
		{"/api/chat", `{"messages":[` + porttest.Hello + `]}`, 400, "model"},
		{"/api/chat", `{"model":"llama3","messages":[` + porttest.Hello + `]}`, 404, "llama3"},
		{"/api/chat", `{` + ollamaHello + `,"options":{"temperature":9}}`, 400,
			"options.temperature"},
		{"/api/chat", `{` + ollamaHello + `,"format":"xml"}`, 400, "format"},
		{"/api/chat", `{` + ollamaHello + `,"top_logprobs":21}`, 400, "top_logprobs"},
		{"/api/chat", `{"model":"20b","messages":[{"role":"user","content":" ","images":["x"]}]}`,
			400, "text only"},
		{"/api/generate", `{"model":"gpt-oss:20b","prompt":"a","template":"x"}`, 400, "template"},
		{"/api/pull", `{"model":"llama3"}`, 404, "llama3"},
		{"/api/show", `{}`, 400, "model"},
		{"/api/embed", `{"model":"gpt-oss:20b","input":"a"}`, 404, "embeddings"},
	} {
		r := porttest.Ask(t, "POST", srv.URL+c.path, c.body)
		text, _ := porttest.Decode(t, r.Body)["error"].(string)
		if r.Status != c.status || !strings.Contains(text, c.message) {
			t.Errorf("%s %s: %d %s", c.path, c.body, r.Status, r.Body)
		}
	}
	srv, _ = porttest.Server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "a"},
			session.Done{Finish: session.FinishError, Err: errors.New("gone")}}, nil
	})
	list := linesOf(t, porttest.Post(t, srv, "/api/chat", `{`+ollamaHello+`}`))
	if last := list[len(list)-1]; last["error"] != "gone" {
		t.Errorf("the stream ends in %v", last)
	}
}

// TestOllamaLoads: a request without a prompt loads the model; with keep_alive 0 the answer says
// that the server decides. Both have the fields of typed clients, streamed or not.
func TestOllamaLoads(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	for _, c := range []struct{ path, body, reason string }{
		{"/api/chat", `"messages":[],"keep_alive":"10m"`, "load"},
		{"/api/chat", `"keep_alive":-1`, "load"},
		{"/api/chat", `"messages":[],"keep_alive":0`, "unload"},
		{"/api/chat", `"messages":null,"keep_alive":"0s"`, "unload"},
		{"/api/generate", `"stream":false`, "load"},
		{"/api/generate", `"prompt":"","keep_alive":"5m"`, "load"},
		{"/api/generate", `"stream":false,"keep_alive":0`, "unload"},
		{"/api/generate", `"prompt":"","keep_alive":"0"`, "unload"},
		{"/api/generate", `"prompt":"","keep_alive":0.0`, "unload"},
		{"/api/generate", `"prompt":"","keep_alive":0.5`, "load"},
	} {
		before := len(f.Requests)
		r := porttest.Post(t, srv, c.path, `{"model":"gpt-oss:20b",`+c.body+`}`)
		list := []map[string]any{nil}
		if strings.Contains(c.body, `"stream":false`) {
			list[0] = porttest.Decode(t, r.Body)
		} else {
			list = linesOf(t, r)
		}
		m := list[len(list)-1]
		text := m["response"]
		if c.path == "/api/chat" {
			text = porttest.At(m, "message", "content")
		}
		if len(list) != 1 || m["done"] != true || m["done_reason"] != c.reason || text != "" ||
			m["model"] != "gpt-oss:20b" || m["created_at"] == "" {
			t.Errorf("%s %s: %s", c.path, c.body, r.Body)
		}
		started := len(f.Requests) > before
		kept := r.Header.Get("X-Ossrun-Ignored") == "keep_alive"
		if started != (c.reason == "load") || kept != (c.reason == "unload") {
			t.Errorf("%s %s: started %v, kept %v", c.path, c.body, started, kept)
		}
	}
	for _, path := range []string{"/api/tags", "/api/ps"} {
		m := porttest.Decode(t, porttest.Ask(t, "GET", srv.URL+path, "").Body)
		for _, v := range m["models"].([]any) {
			if digest, _ := porttest.At(v, "digest").(string); len(digest) != 64 {
				t.Errorf("%s: digest %q", path, digest)
			}
			for _, name := range []string{"size", "modified_at", "details"} {
				if porttest.At(v, name) == nil {
					t.Errorf("%s: no %s", path, name)
				}
			}
			until, _ := porttest.At(v, "expires_at").(string) // a past one is "Stopping..."
			if path == "/api/ps" && (until < "2100" || porttest.At(v, "size_vram") == nil) {
				t.Errorf("%s: %v", path, v)
			}
		}
	}
}
