package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// none is an answer without reasoning, minimal one with at most 64 tokens of it, on every API; a
// lower bound of the request holds, and a response echoes what was asked for.
func TestLowestEfforts(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"messages":[` + porttest.Hello + `],"reasoning_effort":%q%s}`,
		"/v1/responses":        `{"input":"a","reasoning":{"effort":%q}%s}`,
		"/v1/messages": `{"max_tokens":9,"messages":[` + porttest.Hello +
			`],"output_config":{"effort":%q}%s}`,
	} {
		for _, c := range []struct {
			effort, more string
			most         int
		}{{"none", "", -1}, {"minimal", "", 64}, {"low", "", 0}, {"high", "", 0},
			{"minimal", `,"max_reasoning_tokens":9`, 9},
			{"minimal", `,"max_reasoning_tokens":900`, 64}} {
			if c.more != "" && path == "/v1/messages" {
				continue
			}
			r := porttest.Post(t, srv, path, fmt.Sprintf(body, c.effort, c.more))
			if q := f.Last(t); q.MaxReasoning != c.most {
				t.Errorf("%s %s%s: %d", path, c.effort, c.more, q.MaxReasoning)
			}
			if echo := porttest.At(porttest.Decode(t, r.Body), "reasoning", "effort"); path ==
				"/v1/responses" && echo != c.effort {
				t.Errorf("%s is echoed as %v", c.effort, echo)
			}
		}
	}
}

// A line of a system message sets the effort, as the models' card writes it, on every API; the
// line is no instruction then, and a parameter of the request wins.
func TestEffortInASystemMessage(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	type api struct{ path, body, low string }
	system := `{"model":"gpt-oss:20b","messages":[{"role":"%s","content":%%q},` + porttest.Hello + `]%%s}`
	for _, a := range []api{
		{"/v1/chat/completions", fmt.Sprintf(system, "system"), `,"reasoning_effort":"low"`},
		{"/v1/chat/completions", fmt.Sprintf(system, "developer"), `,"reasoning":{"effort":"low"}`},
		{"/v1/responses", `{"instructions":%q,"input":"hi"%s}`, `,"reasoning":{"effort":"low"}`},
		{"/v1/responses", `{"input":[{"role":"system","content":%q},` + porttest.Hello + `]%s}`,
			`,"reasoning":{"effort":"minimal"}`},
		{"/v1/messages", `{"max_tokens":9,"system":%q,"messages":[` + porttest.Hello + `]%s}`,
			`,"output_config":{"effort":"low"}`},
		{"/v1/messages", `{"max_tokens":9,"system":[{"type":"text","text":%q}],"messages":[` +
			porttest.Hello + `]%s}`, `,"thinking":{"type":"enabled","budget_tokens":1024}`},
		{"/api/chat", fmt.Sprintf(system, "system"), `,"think":"low"`},
		{"/api/generate", `{"model":"gpt-oss:20b","system":%q,"prompt":"hi"%s}`, `,"think":false`},
	} {
		for text, want := range map[string][2]string{
			"Reasoning: high": {"high", ""}, "Be brief.\n\nReasoning: high": {"high", "Be brief."},
			"reasoning:low\nBe brief.":           {"low", "Be brief."},
			"Be brief.\r\n Reasoning: HIGH \r\n": {"high", "Be brief."},
			"Say: Reasoning: high":               {"medium", "Say: Reasoning: high"},
			"Reasoning: high or low?":            {"medium", "Reasoning: high or low?"},
			"Reasoning: none":                    {"medium", "Reasoning: none"},
			"Be brief.":                          {"medium", "Be brief."},
		} {
			for further, effort := range map[string]string{"": want[0], a.low: "low"} {
				porttest.Post(t, srv, a.path, fmt.Sprintf(a.body, text, further))
				q := f.Last(t)
				if q.Effort != effort || strings.TrimSpace(q.Instructions) != want[1] {
					t.Errorf("%s, %q%s: %s, %q", a.path, text, further, q.Effort, q.Instructions)
				}
			}
		}
	}
}
