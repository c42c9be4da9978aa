package responses_test

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// A request without tools that continues a conversation gets the prompt that is cached: the same
// tools, none of them callable. Any other request gets none.
func TestCompactionHasTheToolsOfItsConversation(t *testing.T) {
	const first = `{"role":"user","content":"a"}`
	const next = first + `,{"role":"assistant","content":"b"},{"role":"user","content":"Sum up."}`
	for body, same := range map[string]bool{
		`{"instructions":"I","prompt_cache_key":"k","input":[` + next + `]}`:                                   true,
		`{"instructions":"I","prompt_cache_key":"k","input":[` + next + `],"tools":[]}`:                        true,
		`{"instructions":"I","prompt_cache_key":"l","input":[` + next + `]}`:                                   false,
		`{"instructions":"I","input":[` + next + `]}`:                                                          false,
		`{"instructions":"J","prompt_cache_key":"k","input":[` + next + `]}`:                                   false,
		`{"instructions":"I","prompt_cache_key":"k","input":"other"}`:                                          false,
		`{"instructions":"I","prompt_cache_key":"k","input":[` + next + `],"tool_choice":"none"}`:              false,
		`{"instructions":"I","prompt_cache_key":"k","input":[` + strings.Replace(next, `"a"`, `"x"`, 1) + `]}`: false,
	} {
		srv, f := porttest.Server(t, sessiontest.Answers("b"))
		porttest.Post(t, srv, "/v1/responses", `{"instructions":"I","prompt_cache_key":"k","input":[`+
			first+`],"tools":[`+porttest.WeatherFunction+`,{"type":"shell"}]}`)
		r := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", body).Body)
		got := f.Last(t)
		if n := len(got.Functions); n != map[bool]int{true: 2}[same] ||
			same && got.ToolChoice != grammar.None || len(r["tools"].([]any)) != 0 {
			t.Errorf("%s: %d functions, choice %v", body, n, got.ToolChoice)
		}
	}
}

// Where the tools make it too long, the request is answered as it was sent.
func TestCompactionThatFitsOnlyWithoutTools(t *testing.T) {
	srv, f := porttest.Server(t, func(r session.Request) ([]session.Event, error) {
		if len(r.Functions) > 0 && len(r.Messages) > 1 {
			return nil, &sched.ContextLengthError{Max: 10, Needed: 11}
		}
		return sessiontest.Answers("b")(r)
	})
	for _, body := range []string{`"input":"a","tools":[` + porttest.WeatherFunction + `]`,
		`"input":[{"role":"user","content":"a"},{"role":"user","content":"Sum up."}]`} {
		r := porttest.Post(t, srv, "/v1/responses", `{"prompt_cache_key":"k",`+body+`}`)
		if r.Status != 200 {
			t.Errorf("%d %s", r.Status, r.Body)
		}
	}
	if n := len(f.Last(t).Functions); n != 0 {
		t.Errorf("the answer has %d functions", n)
	}
}
