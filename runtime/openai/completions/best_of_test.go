package completions_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session"
)

// The choices with the highest logprob per token are shown, the best first; all of them are paid
// for.
func TestBestOf(t *testing.T) {
	// by the seed: the sum of a long choice is low, its mean is not
	said := [][]float32{{-3}, {-1, -1, -1, -1}, {-2}, {}, {-0.5}, {-1.5, -1.5}}
	srv, f := porttest.Server(t, func(r session.Request) ([]session.Event, error) {
		a := session.Answer{Text: fmt.Sprint(r.Params.Seed)}
		for _, l := range said[r.Params.Seed] {
			if r.Params.Logprobs >= 0 {
				a.Logprobs = append(a.Logprobs, session.TokenLogprob{Token: "t", Logprob: l})
			}
		}
		return []session.Event{a, session.Done{Finish: session.FinishStop,
			Usage: session.Usage{Prompt: 2, Completion: 3}}}, nil
	})
	for _, c := range []struct {
		fields, texts string
		paid          float64
	}{
		{`"best_of":6`, "4", 18},
		{`"best_of":4,"n":2`, "1 2", 12},
		{`"best_of":4,"n":4`, "0 1 2 3", 12},
		{`"best_of":6,"n":6`, "0 1 2 3 4 5", 18},
		{`"best_of":6,"n":5`, "4 1 5 2 0", 18},
		{`"best_of":3,"logprobs":2`, "1", 9},
	} {
		m := porttest.Decode(t, porttest.Post(t, srv, "/v1/completions", `{"prompt":"x","seed":0,`+c.fields+
			`}`).Body)
		var texts []string
		for i, choice := range m["choices"].([]any) {
			if porttest.At(choice, "index") != float64(i) || (porttest.At(choice, "logprobs") != nil) !=
				strings.Contains(c.fields, "logprobs") {
				t.Errorf("%s: %v", c.fields, choice)
			}
			texts = append(texts, porttest.At(choice, "text").(string))
		}
		if got := strings.Join(texts, " "); got != c.texts ||
			porttest.At(m, "usage", "completion_tokens") != c.paid ||
			porttest.At(m, "usage", "prompt_tokens") != 2.0 {
			t.Errorf("%s: %s, %v", c.fields, got, m["usage"])
		}
	}
	// of several prompts, each its own
	m := porttest.Decode(t, porttest.Post(t, srv, "/v1/completions",
		`{"prompt":["x","y"],"seed":0,"best_of":3}`).Body)
	if porttest.At(m, "choices", 0, "text") != "1" || porttest.At(m, "choices", 1, "text") != "1" ||
		porttest.At(m, "choices", 1, "index") != 1.0 || len(m["choices"].([]any)) != 2 {
		t.Errorf("%v", m)
	}
	if n := f.Last(t).Params.Logprobs; n != 0 {
		t.Errorf("%d logprobs are asked for", n)
	}
	porttest.Post(t, srv, "/v1/completions", `{"prompt":"x","seed":0,"best_of":2,"n":2,"stream":true}`)
	if n := f.Last(t).Params.Logprobs; n != -1 {
		t.Errorf("%d logprobs are asked for where nothing is compared", n)
	}
}
