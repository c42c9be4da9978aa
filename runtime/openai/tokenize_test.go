package openai

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
)

func TestTokenize(t *testing.T) {
	srv, _ := server(t, answers("ok"))
	ids := token.Get().Encode(nil, "Hello world")
	m := decode(t, post(t, srv, "/tokenize",
		`{"model":"gpt-oss:20b","prompt":"Hello world","return_token_strs":true}`).body)
	list, _ := json.Marshal(m["tokens"])
	want, _ := json.Marshal(ids)
	if string(list) != string(want) || m["count"] != float64(len(ids)) ||
		m["max_model_len"] != 4096.0 ||
		!reflect.DeepEqual(m["token_strs"], []any{"Hello", " world"}) {
		t.Errorf("tokens %v, want %s", m, want)
	}
	m = decode(t, post(t, srv, "/detokenize", `{"tokens":`+string(want)+`}`).body)
	if m["prompt"] != "Hello world" {
		t.Errorf("prompt %v", m)
	}
	m = decode(t, post(t, srv, "/tokenize", chatWith(`"tools":[`+weatherTool+`]`)).body)
	list, _ = json.Marshal(m["tokens"])
	m = decode(t, post(t, srv, "/detokenize", `{"tokens":`+string(list)+`}`).body)
	text, _ := m["prompt"].(string)
	if !strings.HasPrefix(text, "<|start|>system<|message|>") || !strings.HasSuffix(text,
		"<|start|>user<|message|>hi<|end|><|start|>assistant") ||
		!strings.Contains(text, "type get_weather = (_:") {
		t.Errorf("conversation: %s", text)
	}
	odd := strings.Repeat("a \"quoted\" \\ \u6f22\U0001f642\n\x01<|end|>", 5_000)
	ids = token.Get().EncodeBytes(token.Get().Encode(nil, odd), []byte("\xf0\x9f")) // half a letter
	list, _ = json.Marshal(ids)
	m = decode(t, post(t, srv, "/detokenize", `{"tokens":`+string(list)+`}`).body)
	if m["prompt"] != odd+"\ufffd" {
		t.Errorf("of %d tokens: %.200v", len(ids), m["prompt"])
	}
	for _, c := range []struct{ path, body, param string }{
		{"/tokenize", `{}`, "prompt"}, {"/detokenize", `{}`, "tokens"},
		{"/detokenize", `{"tokens":[-1]}`, "tokens[0]"},
		{"/tokenize", `{"messages":[]}`, "messages"},
	} {
		r := ask(t, "POST", srv.URL+c.path, c.body)
		if r.status != 400 || at(decode(t, r.body), "error", "param") != c.param {
			t.Errorf("%s: %d %s", c.body, r.status, r.body)
		}
	}
	if r := ask(t, "POST", srv.URL+"/tokenize", `{"model":"x","prompt":"a"}`); r.status != 404 {
		t.Errorf("another model: %d %s", r.status, r.body)
	}
}
