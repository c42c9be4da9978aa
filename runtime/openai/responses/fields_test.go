package responses_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/grammar"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// fieldCase shows what the table says of a field: seen for one that is honoured.
type fieldCase struct {
	body string // members of the request
	seen func(m map[string]any, r session.Request) bool
}

// echoed is seen in the response as it was sent.
func echoed(name string, want any) func(map[string]any, session.Request) bool {
	return func(m map[string]any, _ session.Request) bool {
		return reflect.DeepEqual(m[name], want)
	}
}

var fieldCases = map[string]fieldCase{
	"background": {`"background":true`, echoed("background", true)},
	"conversation": {`"conversation":"CONVERSATION"`, func(m map[string]any, r session.Request) bool {
		return strings.HasPrefix(sessiontest.History(r), "user: before")
	}},
	"include": {`"include":["message.output_text.logprobs"]`,
		func(_ map[string]any, r session.Request) bool { return r.Params.Logprobs == 0 }},
	"input": {`"input":"else"`, func(_ map[string]any, r session.Request) bool {
		return sessiontest.History(r) == "user: else"
	}},
	"instructions": {`"instructions":"Be brief."`, func(_ map[string]any, r session.Request) bool {
		return r.Instructions == "Be brief."
	}},
	"max_output_tokens": {`"max_output_tokens":7`, func(_ map[string]any, r session.Request) bool {
		return r.MaxTokens == 7
	}},
	"max_tool_calls": {`"max_tool_calls":1,"tools":[{"type":"code_interpreter","container":` +
		`{"type":"auto"}},{"type":"web_search"}]`, func(_ map[string]any, r session.Request) bool {
		return r.ToolChoice == grammar.None && strings.Count(sessiontest.History(r), "\ntool ") == 1
	}},
	"metadata": {`"metadata":{"k":"v"}`, echoed("metadata", map[string]any{"k": "v"})},
	"model":    {`"model":"gpt-oss:20b"`, echoed("model", "gpt-oss:20b")},
	"parallel_tool_calls": {`"parallel_tool_calls":false`,
		echoed("parallel_tool_calls", false)},
	"previous_response_id": {`"previous_response_id":"RESPONSE"`,
		func(_ map[string]any, r session.Request) bool {
			return strings.HasPrefix(sessiontest.History(r), "user: earlier\n")
		}},
	"prompt_cache_key": {`"prompt_cache_key":"k"`, echoed("prompt_cache_key", "k")},
	"reasoning": {`"reasoning":{"effort":"high"}`, func(_ map[string]any, r session.Request) bool {
		return r.Effort == "high"
	}},
	"safety_identifier": {`"safety_identifier":"s"`, echoed("safety_identifier", "s")},
	"store":             {`"store":false`, echoed("store", false)},
	"stream": {`"stream":true`, func(m map[string]any, _ session.Request) bool {
		return m == nil
	}},
	"temperature": {`"temperature":0.5`, func(_ map[string]any, r session.Request) bool {
		return r.Params.Temperature == 0.5
	}},
	"text": {`"text":{"format":{"type":"json_object"}}`,
		func(_ map[string]any, r session.Request) bool { return r.Final != nil }},
	"tool_choice": {`"tool_choice":"none"`, func(_ map[string]any, r session.Request) bool {
		return r.ToolChoice == grammar.None
	}},
	"tools": {`"tools":[` + porttest.WeatherFunction + `]`, func(_ map[string]any, r session.Request) bool {
		return len(r.Functions) == 1
	}},
	"top_logprobs": {`"top_logprobs":2`, func(_ map[string]any, r session.Request) bool {
		return r.Params.Logprobs == 2
	}},
	"top_p": {`"top_p":0.5`, func(_ map[string]any, r session.Request) bool {
		return r.Params.TopP == 0.5
	}},
	"truncation": {`"truncation":"auto"`, echoed("truncation", "auto")},
	"user":       {`"user":"u"`, echoed("user", "u")},

	"context_management": {body: `"context_management":[{"type":"compaction","compact_threshold":1000}],` +
		`"instructions":"` + strings.Repeat("word ", 1000) + `","input":[{"role":"user","content":"y"},` +
		`{"role":"assistant","content":"z"},{"role":"user","content":"x"}]`,
		seen: func(m map[string]any, _ session.Request) bool {
			return porttest.At(m, "output", 0, "type") == "compaction"
		}},
	"moderation":             {body: `"moderation":{"model":"m"}`},
	"prompt":                 {body: `"prompt":{"id":"p"}`},
	"prompt_cache_options":   {body: `"prompt_cache_options":{"ttl":"24h"}`},
	"prompt_cache_retention": {body: `"prompt_cache_retention":"24h"`},
	"service_tier":           {body: `"service_tier":"flex"`},
	"stream_options":         {body: `"stream_options":{"include_obfuscation":false}`},
}

// The table of docs/port.md has every field of OpenAI's CreateResponse and says what happens.
func TestFieldsOfResponses(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/port.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "\n### The fields of a response")
	table, _, _ = strings.Cut(table, "\n## ")
	says := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\w+)").FindAllStringSubmatch(
		table, -1) {
		says[row[1]] = row[2]
	}
	for _, name := range porttest.At(porttest.Schemas(), "CreateResponseFields", "enum").([]any) {
		name := name.(string)
		t.Run(name, func(t *testing.T) {
			c, ok := fieldCases[name]
			if !ok || says[name] == "" {
				t.Fatalf("the table says %q, the test has a case: %v", says[name], ok)
			}
			tryField(t, name, says[name], c)
		})
		delete(says, name)
	}
	if len(says) > 0 {
		t.Errorf("the table has fields that OpenAI's document has not: %v", says)
	}
}

func tryField(t *testing.T, name, says string, c fieldCase) {
	srv, f := porttest.ToolServer(t, porttest.ToolUser, nil)
	if c.seen == nil || says == "ignored" {
		srv, f = porttest.Server(t, sessiontest.Answers("ok"))
	}
	body := c.body
	if strings.Contains(body, "CONVERSATION") {
		m := porttest.Decode(t, porttest.Post(t, srv, "/v1/conversations",
			`{"items":[{"role":"user","content":"before"}]}`).Body)
		body = strings.Replace(body, "CONVERSATION", m["id"].(string), 1)
	}
	if strings.Contains(body, "RESPONSE") {
		m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses", `{"input":"earlier"}`).Body)
		body = strings.Replace(body, "RESPONSE", m["id"].(string), 1)
	}
	if name != "input" && name != "context_management" {
		body += `,"input":"x"`
	}
	r := porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{`+body+`}`)
	switch says {
	case "honoured":
		if r.Status != 200 {
			t.Fatalf("status %d: %s", r.Status, r.Body)
		}
		var m map[string]any
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
			m = porttest.Decode(t, r.Body)
			if m["background"] == true {
				porttest.Ended(t, srv, m["id"].(string))
			}
		}
		if c.seen == nil || !c.seen(m, f.Last(t)) {
			t.Errorf("nothing is seen of it: %s\n%+v", r.Body, f.Last(t))
		}
	case "ignored":
		if r.Status != 200 || c.seen != nil || sessiontest.History(f.Last(t)) != "user: x" {
			t.Errorf("status %d: %s", r.Status, r.Body)
		}
	case "400":
		porttest.WantFault(t, r, 400, fields.KindInvalid, name, "unsupported_parameter", name)
	default:
		t.Errorf("the table says %q", says)
	}
	named := slices.Contains(strings.Split(r.Header.Get("X-Ossrun-Ignored"), ", "), name)
	if wanted := name == "moderation"; named != wanted {
		t.Errorf("X-Ossrun-Ignored is %q", r.Header.Get("X-Ossrun-Ignored"))
	}
}
