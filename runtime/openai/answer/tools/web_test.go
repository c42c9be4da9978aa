package tools_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// limitable is a browser that keeps what it was limited to.
type limitable struct {
	*porttest.ScriptedTool
	limits *string
}

func (l limitable) Limit(offline bool, only, never []string, results int) {
	*l.limits = strings.TrimSuffix(fmt.Sprint(offline, only, never, results), " 0")
}

// What a client allows of the web reaches the browser; one that cannot be limited is not used.
func TestTheWebIsLimited(t *testing.T) {
	for search, want := range map[string]string{
		`{"type":"web_search"}`:                                   "false [] []",
		`{"type":"web_search","external_web_access":true}`:        "false [] []",
		`{"type":"web_search","external_web_access":false}`:       "true [] []",
		`{"type":"web_search","filters":null}`:                    "false [] []",
		`{"type":"web_search","search_context_size":"medium"}`:    "false [] []",
		`{"type":"web_search","filters":{"allowed_domains":[]}}`:  "false [] []",
		`{"type":"web_search","blocked_domains":["b.example"]}`:   "false [] [b.example]",
		`{"type":"web_search","allowed_domains":["a.example/x"]}`: "false [a.example/x] []",
		`{"type":"web_search_2025_08_26","filters":{"allowed_domains":["a.example","b.example"]}}`: "" +
			"false [a.example b.example] []",
	} {
		for path, input := range map[string]string{"/v1/responses": `"input":"x"`,
			"/v1/chat/completions": `"messages":[` + porttest.Hello + `]`} {
			for _, can := range []bool{true, false} {
				var open atomic.Int64
				limits := "none"
				srv, f := porttest.Server(t, sessiontest.Answers("ok"), func(o *openai.Options) {
					o.Tools = func(kind, _ string) ([]session.Tool, error) {
						open.Add(1)
						tool := &porttest.ScriptedTool{Kind: kind, Open: &open}
						if !can {
							return []session.Tool{tool}, nil
						}
						return []session.Tool{limitable{tool, &limits}}, nil
					}
				})
				r := porttest.Ask(t, "POST", srv.URL+path, `{`+input+`,"tools":[`+search+`]}`)
				limited := want != "false [] []"
				if refused := !can && limited; refused != (r.Status == 400) ||
					refused && !strings.Contains(r.Body, "limited tool") || can && limits != want {
					t.Errorf("%s %s, can %v: %d %.200s, limits %s", path, search, can, r.Status,
						r.Body, limits)
				}
				function := porttest.WeatherFunction
				if strings.HasPrefix(path, "/v1/chat") {
					function = porttest.WeatherTool
				}
				porttest.Post(t, srv, path, `{`+input+`,"tools":[`+function+`,`+search+`]}`)
				if got := f.Last(t).Browser; got != (can || !limited) {
					t.Errorf("%s %s beside a function, can %v: browser %v", path, search, can, got)
				}
				if n := open.Load(); n != 0 {
					t.Errorf("%d tools were not closed", n)
				}
			}
		}
	}
}

// search_context_size is how many results a search shows.
func TestSearchContextSize(t *testing.T) {
	for size, want := range map[string]string{"low": "false [] [] 5", "medium": "false [] []",
		"high": "false [] [] 20"} {
		if got := limitsOf(t, `{"type":"web_search_20250305","name":"web_search",`+
			`"search_context_size":"`+size+`"}`); got != want {
			t.Errorf("%s: %q", size, got)
		}
	}
}

// limitsOf are the limits of the one browser of a request with these tools.
func limitsOf(t *testing.T, list string) (limits string) {
	var open atomic.Int64
	opened := 0
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"), func(o *openai.Options) {
		o.Tools = func(kind, _ string) ([]session.Tool, error) {
			opened++
			open.Add(1)
			return []session.Tool{limitable{&porttest.ScriptedTool{Kind: kind, Open: &open},
				&limits}}, nil
		}
	})
	porttest.Post(t, srv, "/v1/messages", `{"max_tokens":9,"messages":[`+porttest.Hello+
		`],"tools":[`+list+`]}`)
	if opened != 1 {
		t.Errorf("%d browsers were opened", opened)
	}
	return limits
}
