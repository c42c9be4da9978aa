package openai_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/fields"
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

// vLLM's and llama.cpp's clients bound reasoning, turn it off and name its form in their own words;
// llama.cpp's page offers efforts if the template that it asks for has such a word.
func TestReasoningInOtherWords(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	const off = `"chat_template_kwargs":{"enable_thinking":false}`
	for _, c := range []struct {
		sent  string
		bound int
		at    string // the member with the reasoning
	}{
		{`"n":1`, 0, "reasoning"}, {off, -1, "reasoning"},
		{`"chat_template_kwargs":{"enable_thinking":true}`, 0, "reasoning"},
		{off + `,"reasoning_effort":"high"`, 0, "reasoning"},
		{`"thinking_token_budget":7`, 7, "reasoning"}, {`"thinking_budget_tokens":7`, 7, "reasoning"},
		{`"thinking_budget_tokens":0`, -1, "reasoning"}, {`"reasoning_budget_tokens":5`, 5, "reasoning"},
		{`"thinking_budget_tokens":-1`, 0, "reasoning"},
		{`"reasoning_format":"auto"`, 0, "reasoning_content"},
		{`"reasoning_format":"deepseek"`, 0, "reasoning_content"},
		{`"reasoning_format":"parsed"`, 0, "reasoning"}, {`"reasoning_format":"hidden"`, 0, ""},
	} {
		r := porttest.Post(t, srv, chatRoute, porttest.ChatWith(c.sent))
		m := porttest.At(porttest.Decode(t, r.Body), "choices", 0, "message").(map[string]any)
		if q := f.Last(t); q.MaxReasoning != c.bound || r.Header.Get("X-Ossrun-Ignored") != "" {
			t.Errorf("%s: %d, %v", c.sent, q.MaxReasoning, r.Header)
		}
		for _, name := range []string{"reasoning", "reasoning_content"} {
			if is := m[name] == "They ask. I answer."; is != (name == c.at) {
				t.Errorf("%s: %v", c.sent, m)
			}
		}
	}
	porttest.WantFault(t, porttest.Ask(t, "POST", srv.URL+chatRoute,
		porttest.ChatWith(`"reasoning_format":"none"`)), 400, fields.KindInvalid,
		"reasoning_format", "unsupported_parameter", "apart")
	porttest.Post(t, srv, chatRoute, porttest.ChatWith(`"repeat_penalty":1.25,"n_predict":6`))
	if q := f.Last(t); q.Params.RepetitionPenalty != 1.25 || q.MaxTokens != 6 {
		t.Errorf("repeat_penalty %v, n_predict %d", q.Params.RepetitionPenalty, q.MaxTokens)
	}
	for path, status := range map[string]int{"/props": 200, "/props?model=gpt-oss:20b": 200,
		"/props?model=none": 404} {
		r := porttest.Ask(t, "GET", srv.URL+path, "")
		m := porttest.Decode(t, r.Body)
		if n, _ := porttest.At(m, "default_generation_settings", "n_ctx").(float64); r.Status != status ||
			(n > 0) != (status == 200) {
			t.Errorf("%s: %d %s", path, r.Status, r.Body)
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
