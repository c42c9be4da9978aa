package openai

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

const ollamaHello = `"model":"gpt-oss:20b","messages":[` + hello + `]`

// linesOf reads lines of JSON.
func linesOf(t *testing.T, r reply) (list []map[string]any) {
	t.Helper()
	if kind := r.header.Get("Content-Type"); kind != "application/x-ndjson" {
		t.Errorf("content type %s", kind)
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(r.body, "\n"), "\n") {
		list = append(list, decode(t, line))
	}
	return list
}

func TestOllamaChat(t *testing.T) {
	srv, f := server(t, answers("Hello."))
	m := decode(t, post(t, srv, "/api/chat", `{`+ollamaHello+`,"stream":false,"tools":[],`+
		`"keep_alive":"10m","think":"high","options":{"temperature":0.5,"num_ctx":8192,"seed":7,`+
		`"num_predict":20,"stop":["END"],"repeat_penalty":1.5,"tfs_z":1}}`).body)
	want := map[string]any{"role": "assistant", "content": "Hello.",
		"thinking": "They ask. I answer."}
	if !reflect.DeepEqual(m["message"], any(want)) || m["done"] != true ||
		m["done_reason"] != "stop" || m["prompt_eval_count"] != 40.0 || m["eval_count"] != 12.0 ||
		m["eval_duration"] != 110e6 || m["model"] != "gpt-oss:20b" {
		t.Errorf("answer %v", m)
	}
	q := f.last(t)
	if q.Effort != "high" || q.Params.Temperature != 0.5 || q.Params.Seed != 7 ||
		q.MaxTokens != 20 || !reflect.DeepEqual(q.Stop, []string{"END"}) ||
		q.Params.RepetitionPenalty != 1.5 || history(q) != "user: hi" {
		t.Errorf("request %+v", q)
	}
	r := post(t, srv, "/api/chat", `{`+ollamaHello+`,"think":false,"options":{"tfs_z":1}}`)
	var text strings.Builder
	list := linesOf(t, r)
	for i, m := range list {
		s, _ := at(m, "message", "content").(string)
		text.WriteString(s)
		if (m["done"] == true) != (i == len(list)-1) || at(m, "message", "thinking") != nil {
			t.Errorf("line %d: %v", i, m)
		}
	}
	if text.String() != "Hello." || list[len(list)-1]["eval_count"] != 12.0 || f.last(t).Effort != "low" ||
		r.header.Get("X-Ossrun-Ignored") != "options.tfs_z" {
		t.Errorf("stream %s, %v", r.body, r.header)
	}
}

func TestOllamaCalls(t *testing.T) {
	srv, f := server(t, agent)
	tools := `,"tools":[` + weatherTool + `]`
	list := linesOf(t, post(t, srv, "/api/chat", `{`+ollamaHello+tools+`}`))
	var call any
	for _, m := range list {
		if c := at(m, "message", "tool_calls", 0, "function"); c != nil {
			call = c
		}
	}
	if want := (map[string]any{"index": 0.0, "name": "get_weather",
		"arguments": map[string]any{"city": "Paris"}}); !reflect.DeepEqual(call, any(want)) {
		t.Errorf("call %v", call)
	}
	m := decode(t, post(t, srv, "/api/chat", `{`+ollamaHello+tools+`,"stream":false}`).body)
	if at(m, "message", "tool_calls", 0, "id") != "call_1" {
		t.Errorf("whole: %v", m)
	}
	// ids are optional: a result finds its call by name, in order
	post(t, srv, "/api/chat", `{"model":"gpt-oss:20b","messages":[`+hello+
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
	if got := history(f.last(t)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestOllamaGenerate(t *testing.T) {
	srv, f := server(t, answers("Paris."))
	m := decode(t, post(t, srv, "/api/generate", `{"model":"gpt-oss:20b","stream":false,`+
		`"prompt":"The capital of France is","raw":true}`).body)
	if m["response"] != "Paris." || m["message"] != nil || len(f.last(t).Prompt) != 5 {
		t.Errorf("raw: %v, prompt %v", m, f.last(t).Prompt)
	}
	list := linesOf(t, post(t, srv, "/api/generate", `{"model":"gpt-oss:20b","prompt":"x",`+
		`"system":"Be brief.","format":{"type":"object","properties":{"a":{"type":"string"}}}}`))
	if list[0]["thinking"] != "They ask. I answer." && list[0]["thinking"] != "They ask. " ||
		list[len(list)-1]["done"] != true {
		t.Errorf("stream: %v", list)
	}
	q := f.last(t)
	if history(q) != "user: x" || !strings.HasPrefix(q.Instructions, "Be brief.") ||
		q.Final == nil || !strings.Contains(q.Instructions, "# Response Formats") {
		t.Errorf("request %+v", q)
	}
}

func TestOllamaModels(t *testing.T) {
	srv, f := server(t, answers("ok"))
	f.stats = sched.Stats{}
	if m := decode(t, ask(t, "GET", srv.URL+"/api/version", "").body); m["version"] != "0.13.4" {
		t.Errorf("version %v", m)
	}
	for _, path := range []string{"/api/tags", "/api/ps"} {
		m := decode(t, ask(t, "GET", srv.URL+path, "").body)
		var names []string
		for _, v := range m["models"].([]any) {
			names = append(names, at(v, "name").(string))
		}
		all, _ := json.Marshal(names)
		if !strings.Contains(string(all), `"gpt-oss-20b"`) ||
			!strings.Contains(string(all), `"gpt-oss:20b"`) {
			t.Errorf("%s: %s", path, all)
		}
	}
	m := decode(t, post(t, srv, "/api/show", `{"name":"gpt-oss:20b"}`).body)
	if at(m, "model_info", "gptoss.context_length") != 4096.0 || len(
		m["capabilities"].([]any)) != 3 {
		t.Errorf("show %v", m)
	}
	if r := post(t, srv, "/api/pull", `{"model":"gpt-oss:20b","stream":false}`); r.body !=
		`{"status":"success"}`+"\n" {
		t.Errorf("pull %s", r.body)
	}
	list := linesOf(t, post(t, srv, "/api/pull", `{"model":"gpt-oss:20b"}`))
	if list[len(list)-1]["status"] != "success" {
		t.Errorf("pull %v", list)
	}
}

func TestOllamaRefuses(t *testing.T) {
	srv, _ := server(t, agent)
	for _, c := range []struct {
		path, body string
		status     int
		message    string
	}{
		{"/api/chat", `{"messages":[` + hello + `]}`, 400, "model"},
		{"/api/chat", `{"model":"gpt-oss:20b","messages":[]}`, 400, "messages"},
		{"/api/chat", `{"model":"llama3","messages":[` + hello + `]}`, 404, "llama3"},
		{"/api/chat", `{` + ollamaHello + `,"options":{"temperature":9}}`, 400,
			"options.temperature"},
		{"/api/chat", `{` + ollamaHello + `,"format":"xml"}`, 400, "format"},
		{"/api/chat", `{"model":"20b","messages":[{"role":"user","content":"a","images":["x"]}]}`,
			400, "text only"},
		{"/api/chat", `{"model":"20b","messages":[{"role":"tool","content":"a"}]}`, 400,
			"no call"},
		{"/api/generate", `{"model":"gpt-oss:20b"}`, 400, "prompt is empty"},
		{"/api/generate", `{"model":"gpt-oss:20b","prompt":"a","template":"x"}`, 400, "template"},
		{"/api/pull", `{"model":"llama3"}`, 404, "llama3"},
		{"/api/show", `{}`, 400, "model"},
		{"/api/embed", `{"model":"gpt-oss:20b","input":"a"}`, 404, "embeddings"},
	} {
		r := ask(t, "POST", srv.URL+c.path, c.body)
		text, _ := decode(t, r.body)["error"].(string)
		if r.status != c.status || !strings.Contains(text, c.message) {
			t.Errorf("%s %s: %d %s", c.path, c.body, r.status, r.body)
		}
	}
	srv, _ = server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "a"},
			session.Done{Finish: session.FinishError, Err: errors.New("gone")}}, nil
	})
	list := linesOf(t, post(t, srv, "/api/chat", `{`+ollamaHello+`}`))
	if last := list[len(list)-1]; last["error"] != "gone" {
		t.Errorf("the stream ends in %v", last)
	}
}
