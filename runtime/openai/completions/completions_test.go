package completions_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// continues says text after any prompt, token by token where logprobs are asked for.
func continues(text string) sessiontest.Script {
	return func(r session.Request) ([]session.Event, error) {
		a := session.Answer{Text: text}
		if r.Params.Logprobs >= 0 {
			for _, id := range token.Get().Encode(nil, text) {
				b := token.Get().TokenBytes(id)
				a.Logprobs = append(a.Logprobs, session.TokenLogprob{Token: string(b), Bytes: b,
					Logprob: -0.5, Top: []session.TokenLogprob{{Token: "x", Bytes: []byte("x"),
						Logprob: -2}}})
			}
		}
		return []session.Event{a, session.Done{Finish: session.FinishStop,
			Usage: session.Usage{Prompt: len(r.Prompt), Completion: 3}}}, nil
	}
}

func TestCompletionPrompts(t *testing.T) {
	world := token.Get().Encode(nil, "world")
	ids, _ := json.Marshal(world)
	for _, c := range []struct {
		prompt string
		want   [][]int32
	}{
		{`"world"`, [][]int32{world}},
		{`""`, [][]int32{{token.EndOfText}}},
		{`"<|start|>user<|message|>"`, [][]int32{token.Get().EncodeSpecial(nil,
			"<|start|>user<|message|>", nil)}},
		{`["world",""]`, [][]int32{world, {token.EndOfText}}},
		{string(ids), [][]int32{world}},
		{"[" + string(ids) + "," + "[200006]]", [][]int32{world, {token.Start}}},
	} {
		srv, f := porttest.Server(t, continues(" peace"))
		m := porttest.Decode(t, porttest.Post(t, srv, "/v1/completions", `{"prompt":`+c.prompt+`}`).Body)
		if n := len(m["choices"].([]any)); n != len(c.want) {
			t.Errorf("%s: %d choices", c.prompt, n)
		}
		for i, r := range f.Requests {
			if !reflect.DeepEqual(r.Prompt, c.want[i]) || r.MaxTokens != 16 ||
				r.Params.Logprobs != -1 || r.Final != nil {
				t.Errorf("%s: request %d has the prompt %v and %d tokens, want %v", c.prompt, i,
					r.Prompt, r.MaxTokens, c.want[i])
			}
		}
	}
}

func TestCompletion(t *testing.T) {
	srv, f := porttest.Server(t, continues("größe, peace"))
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/completions",
		`{"prompt":["hello","war and"],"n":2,"echo":true,"seed":7,"stop":["."],"max_tokens":5}`).Body)
	for i, want := range []string{"hellogröße, peace", "hellogröße, peace", "war andgröße, peace",
		"war andgröße, peace"} {
		if got := porttest.At(m, "choices", i); porttest.At(got, "text") != want ||
			porttest.At(got, "index") != float64(i) ||
			porttest.At(got, "finish_reason") != "stop" || porttest.At(got, "logprobs") != nil {
			t.Errorf("choice %d: %v", i, got)
		}
		if r := f.Requests[i]; r.Params.Seed != 7+uint64(i%2) || !reflect.DeepEqual(r.Stop,
			[]string{"."}) || r.MaxTokens != 5 {
			t.Errorf("request %d: %+v", i, r)
		}
	}
	if got := porttest.At(m, "usage", "prompt_tokens"); got != 3.0 || porttest.At(m, "usage",
		"completion_tokens") != 12.0 {
		t.Errorf("usage %v", m["usage"])
	}
	// Only the echo.
	before := len(f.Requests)
	m = porttest.Decode(t, porttest.Post(t, srv, "/v1/completions",
		`{"prompt":"hello","echo":true,"max_tokens":0}`).Body)
	if porttest.At(m, "choices", 0, "text") != "hello" || porttest.At(m, "choices", 0, "finish_reason") != "length" ||
		len(f.Requests) != before {
		t.Errorf("%v", m)
	}
	// A form.
	porttest.Post(t, srv, "/v1/completions",
		`{"prompt":"hello","guided_grammar":"root ::= \"yes\" | \"no\""}`)
	if g := f.Last(t).Final; g == nil || !porttest.Holds(g, "no") || porttest.Holds(g, "maybe") {
		t.Error("the grammar is not kept")
	}
}

func TestCompletionLogprobs(t *testing.T) {
	srv, f := porttest.Server(t, continues("größe, peace"))
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/completions", `{"prompt":"hello","logprobs":1}`).Body)
	l := porttest.At(m, "choices", 0, "logprobs").(map[string]any)
	joined, offset := "", 0
	for i, text := range l["tokens"].([]any) {
		if porttest.At(l, "text_offset", i) != float64(offset) || porttest.At(l, "token_logprobs", i) != -0.5 ||
			porttest.At(l, "top_logprobs", i, "x") != -2.0 || porttest.At(l, "top_logprobs", i,
			text.(string)) != -0.5 {
			t.Errorf("entry %d of %v", i, l)
		}
		joined += text.(string)
		offset += len([]rune(text.(string)))
	}
	if joined != "größe, peace" || f.Last(t).Params.Logprobs != 1 {
		t.Errorf("%q", joined)
	}
}

func TestCompletionStream(t *testing.T) {
	srv, _ := porttest.Server(t, continues("peace"))
	body := porttest.Post(t, srv, "/v1/completions",
		`{"prompt":["hello","bye"],"stream":true,"echo":true,"stream_options":{"include_usage":true}}`).Body
	texts, reasons, usages := map[float64]string{}, 0, 0
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		m := porttest.Decode(t, data)
		if m["object"] != "text_completion" {
			t.Errorf("%s", data)
		}
		if m["usage"] != nil {
			usages++
		}
		for _, c := range m["choices"].([]any) {
			texts[porttest.At(c, "index").(float64)] += porttest.At(c, "text").(string)
			if porttest.At(c, "finish_reason") != nil {
				reasons++
			}
		}
	}
	if texts[0] != "hellopeace" || texts[1] != "byepeace" || reasons != 2 || usages != 1 ||
		!strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Errorf("%v, %d reasons, %d usages of\n%s", texts, reasons, usages, body)
	}
}

func TestCompletionsThatAreRefused(t *testing.T) {
	srv, _ := porttest.Server(t, continues("x"))
	for _, c := range []struct{ body, param string }{
		{`{"n":1}`, "prompt"},
		{`{"prompt":[]}`, "prompt"},
		{`{"prompt":5}`, "prompt"},
		{`{"prompt":[[]]}`, "prompt[0]"},
		{`{"prompt":[201088]}`, "prompt[0]"},
		{`{"prompt":[1,"x"]}`, "prompt[1]"},
		{`{"prompt":[-1]}`, "prompt[0]"},
		{`{"prompt":"x","suffix":"y"}`, "suffix"},
		{`{"prompt":"x","best_of":3,"stream":true}`, "best_of"},
		{`{"prompt":"x","best_of":2,"n":3}`, "best_of"},
		{`{"prompt":"x","best_of":0}`, "best_of"},
		{`{"prompt":"x","stream":true,"prompt_logprobs":1}`, "prompt_logprobs"},
		{`{"prompt":"x","max_tokens":0}`, "max_tokens"},
		{`{"prompt":"x","guided_structural_tag":"y"}`, "guided_structural_tag"},
		{`{"prompt":"x","guided_grammar":"root ::= other"}`, "guided_grammar"},
		{fmt.Sprintf(`{"prompt":[%s"x"],"n":4}`, strings.Repeat(`"x",`, 64)), "prompt"},
	} {
		r := porttest.Ask(t, "POST", srv.URL+"/v1/completions", c.body)
		if got := porttest.At(porttest.Decode(t, r.Body), "error", "param"); r.Status != 400 ||
			got != c.param {
			t.Errorf("%s: %d %v", c.body, r.Status, got)
		}
	}
}
