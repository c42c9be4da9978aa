package openai_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func TestTokenize(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	ids := token.Get().Encode(nil, "Hello world")
	m := porttest.Decode(t, porttest.Post(t, srv, "/tokenize",
		`{"model":"gpt-oss:20b","prompt":"Hello world","return_token_strs":true}`).Body)
	list, _ := json.Marshal(m["tokens"])
	want, _ := json.Marshal(ids)
	if string(list) != string(want) || m["count"] != float64(len(ids)) ||
		m["max_model_len"] != 4096.0 ||
		!reflect.DeepEqual(m["token_strs"], []any{"Hello", " world"}) {
		t.Errorf("tokens %v, want %s", m, want)
	}
	m = porttest.Decode(t, porttest.Post(t, srv, "/detokenize", `{"tokens":`+string(want)+`}`).Body)
	if m["prompt"] != "Hello world" {
		t.Errorf("prompt %v", m)
	}
	m = porttest.Decode(t, porttest.Post(t, srv, "/tokenize", porttest.ChatWith(`"tools":[`+porttest.WeatherTool+`]`)).Body)
	list, _ = json.Marshal(m["tokens"])
	m = porttest.Decode(t, porttest.Post(t, srv, "/detokenize", `{"tokens":`+string(list)+`}`).Body)
	text, _ := m["prompt"].(string)
	if !strings.HasPrefix(text, "<|start|>system<|message|>") || !strings.HasSuffix(text,
		"<|start|>user<|message|>hi<|end|><|start|>assistant") ||
		!strings.Contains(text, "type get_weather = (_:") {
		t.Errorf("conversation: %s", text)
	}
	odd := strings.Repeat("a \"quoted\" \\ \u6f22\U0001f642\n\x01<|end|>", 5_000)
	ids = token.Get().EncodeBytes(token.Get().Encode(nil, odd), []byte("\xf0\x9f")) // half a letter
	list, _ = json.Marshal(ids)
	m = porttest.Decode(t, porttest.Post(t, srv, "/detokenize", `{"tokens":`+string(list)+`}`).Body)
	if m["prompt"] != odd+"\ufffd" {
		t.Errorf("of %d tokens: %.200v", len(ids), m["prompt"])
	}
	for _, c := range []struct{ path, body, param string }{
		{"/tokenize", `{}`, "prompt"}, {"/detokenize", `{}`, "tokens"},
		{"/detokenize", `{"tokens":[-1]}`, "tokens[0]"},
		{"/tokenize", `{"messages":[]}`, "messages"},
	} {
		r := porttest.Ask(t, "POST", srv.URL+c.path, c.body)
		if r.Status != 400 || porttest.At(porttest.Decode(t, r.Body), "error", "param") != c.param {
			t.Errorf("%s: %d %s", c.body, r.Status, r.Body)
		}
	}
	if r := porttest.Ask(t, "POST", srv.URL+"/tokenize", `{"model":"x","prompt":"a"}`); r.Status != 404 {
		t.Errorf("another model: %d %s", r.Status, r.Body)
	}
}
