// Turns of a complete model, with scheduler and grammar, are checked as closely as the single
// events of the other tests: the scripted model runs under the check of every body and stream
// (porttest).

package openai_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/openai/scripttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
)

const parameters = `"parameters":{"type":"object","properties":{"city":{"type":"string"}},` +
	`"required":["city"],"additionalProperties":false}`

const sums = `{"type":"mcp","server_label":"sums","server_url":"https://example.org/",` +
	`"require_approval":`

// scriptedBodies are what each route is asked for besides the script.
var scriptedBodies = map[string][]string{
	"/v1/chat/completions": {``, `,"n":3,"logprobs":true,"top_logprobs":2`, `,"max_tokens":9`,
		`,"return_token_ids":true`, `,"ignore_eos":true,"max_tokens":40`,
		`,"tools":[{"type":"function","function":{"name":"weather",` + parameters + `}}]`,
		`,"tools":[{"type":"custom","custom":{"name":"weather"}}]`},
	"/v1/completions": {``, `,"n":2,"logprobs":2`, `,"echo":true,"logprobs":1`,
		`,"return_token_ids":true`, `,"best_of":2`},
	"/v1/responses": {``, `,"max_output_tokens":9`, `,"background":true`, `,"store":false`,
		`,"include":["message.output_text.logprobs","reasoning.encrypted_content"],"top_logprobs":2`,
		`,"tools":[{"type":"function","name":"weather",` + parameters + `}]`,
		`,"tools":[{"type":"custom","name":"weather"}]`,
		`,"tools":[{"type":"web_search"},{"type":"code_interpreter","container":{"type":"auto"}}]`,
		`,"tools":[` + sums + `"never"}]`, `,"tools":[` + sums + `"always"}]`},
	"/v1/messages": {`,"max_tokens":100`, `,"max_tokens":9`,
		`,"max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":1024}`,
		`,"max_tokens":100,"tools":[{"name":"weather","input_schema":{"type":"object"}}]`},
	"/api/chat": {``, `,"tools":[{"type":"function","function":{"name":"weather",` + parameters +
		`}}]`},
}

// scripted serves the scripted model under the check of every body and stream.
func scripted(t *testing.T) *httptest.Server {
	m := scripttest.New(0, records.NewStore())
	handler := porttest.NewChecked(t, openai.Options{Options: answer.Options{
		Models: scripttest.Models(m), Store: records.NewStore()}, Tools: scripttest.Tools})
	srv := httptest.NewServer(handler)
	t.Cleanup(func() {
		srv.Close()
		handler.Close()
		http.DefaultClient.CloseIdleConnections()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

func TestScriptedAnswersAreChecked(t *testing.T) {
	srv := scripted(t)
	for _, script := range []string{"Hi", "[[think Hm.]] [[note I look.]] [[say Yes, it is so.]]",
		`[[think Hm.]] [[call weather {"city":"Bonn"}]]`, "[[loop again]]", "[[fail]]",
		`[[call python 6*7]] [[call browser.search {"query":"x"}]] [[say 42【1】.]]`,
		`[[call sums_add {"a":2,"b":3}]] [[say Five.]]`, "[[call weather in\n\"Bonn\"]]",
		"[[loop again]] [[say Out of it.]]", loopInCall, "[[think Hm.]] [[fail]]", "[[say äöü 🙂 — 日本]]"} {
		text := hosttest.Must(json.Marshal(script))(t)
		for path, bodies := range scriptedBodies {
			prompt := `"messages":[{"role":"user","content":` + string(text) + `}]`
			switch path {
			case "/v1/completions":
				prompt = `"max_tokens":20,"prompt":` + string(text)
			case "/v1/responses":
				prompt = `"input":` + string(text)
			}
			for _, more := range bodies {
				for _, stream := range []string{`,"stream":false`, `,"stream":true`,
					`,"stream":true,"stream_options":{"include_usage":true}`} {
					if strings.Contains(more, "best_of") && strings.Contains(stream, "true") {
						continue // is refused
					}
					ask(t, srv.URL+path, `{"model":"gpt-oss:20b",`+prompt+more+stream+`}`,
						strings.Contains(script, "fail"))
				}
			}
		}
	}
}

// loopInCall is a call whose arguments repeat themselves without end.
var loopInCall = `[[call weather {"city":"` + strings.Repeat("again ", 900) + `"}]]`

// A call that is cut since it repeats itself is nowhere taken for one that can be run.
func TestLoopInACall(t *testing.T) {
	srv := scripted(t)
	const function = `"name":"weather",` + parameters
	prompt, _ := json.Marshal(loopInCall)
	chat := `"messages":[{"role":"user","content":` + string(prompt) + `}],"tools":[`
	for _, c := range []struct{ path, body, ending, never string }{
		{"/v1/chat/completions", chat + `{"type":"function","function":{` + function + `}}]`,
			`"finish_reason":"length"`, `"finish_reason":"tool_calls"`},
		{"/v1/responses", `"input":` + string(prompt) + `,"tools":[{"type":"function",` + function +
			`}]`, `"status":"failed"`, `function_call_arguments.done`},
		{"/v1/messages", `"max_tokens":4000,` + chat + `{"name":"weather","input_schema":` +
			strings.TrimPrefix(parameters, `"parameters":`) + `}]`,
			`"stop_reason":"max_tokens"`, `"stop_reason":"tool_use"`},
		{"/api/chat", chat + `{"type":"function","function":{` + function + `}}]`,
			`"done_reason":"length"`, `"tool_calls"`},
	} {
		for _, stream := range []string{"false", "true"} {
			text := ask(t, srv.URL+c.path, `{"model":"gpt-oss:20b","stream":`+stream+`,`+c.body+`}`,
				false)
			if !strings.Contains(text, c.ending) || strings.Contains(text, c.never) ||
				stream == "false" && strings.Contains(text, "again") {
				t.Errorf("%s, stream %s: %.300s ... %s", c.path, stream, text,
					text[max(0, len(text)-600):])
			}
		}
	}
}

// ask reads an answer; what it says is checked by the server's handler.
func ask(t *testing.T, address, body string, mayFail bool) string {
	t.Helper()
	resp := hosttest.Must(http.Post(address, "application/json", strings.NewReader(body)))(t)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("%s: %v", body, err)
	}
	if resp.StatusCode != 200 && (!mayFail || resp.StatusCode != 500) {
		t.Errorf("%s\n%s: %d %.500s", address, body, resp.StatusCode, text)
	}
	return string(text)
}
