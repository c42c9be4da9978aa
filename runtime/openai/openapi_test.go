// The document of the port against the port: routes in both directions, and each field of a body.

package openai_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func TestDocumentHasTheRoutes(t *testing.T) {
	var have, want []string
	for _, o := range openai.Document() {
		have = append(have, o.Route)
	}
	// answered with what there is instead, and the page's own
	notOffered := []string{"POST /v1/embeddings", "POST /api/embed", "POST /api/embeddings",
		"GET /v1/responses", "GET /v1/sessions", "POST /v1/sessions/{id}",
		"DELETE /v1/sessions/{id}"}
	for path, m := range openai.Routes() {
		path = strings.NewReplacer("...", "", "{$}", "").Replace(path)
		for _, method := range m {
			if route := method + " " + path; method != "" && !slices.Contains(notOffered, route) {
				want = append(want, route)
			}
		}
	}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("the document has %q\nthe port %q", have, want)
	}
}

// bodyFor is a request that is answered with 200, to which a field is added.
func bodyFor(t *testing.T, o openai.Documented) map[string]any {
	t.Helper()
	base := map[string]string{
		"POST /v1/chat/completions":         `{"messages":[{"role":"user","content":"a"}]}`,
		"POST /v1/completions":              `{"prompt":"a"}`,
		"POST /v1/responses":                `{"input":"a"}`,
		"POST /v1/responses/input_tokens":   `{"input":"a"}`,
		"POST /v1/responses/compact":        `{"model":"gpt-oss:20b","input":"a"}`,
		"POST /v1/messages":                 `{"max_tokens":9,"messages":[{"role":"user","content":"a"}]}`,
		"POST /v1/messages/count_tokens":    `{"messages":[{"role":"user","content":"a"}]}`,
		"POST /api/chat":                    `{"model":"20b","messages":[{"role":"user","content":"a"}]}`,
		"POST /api/generate":                `{"model":"20b","prompt":"a"}`,
		"POST /tokenize":                    `{"prompt":"a"}`,
		"POST /detokenize":                  `{"tokens":[1]}`,
		"POST /v1/conversations/{id}/items": `{"items":[{"role":"user","content":"a"}]}`,
		"POST /v1/conversations/{id}":       `{"metadata":{"a":"b"}}`,
		"POST /v1/chat/completions/{id}":    `{"metadata":{"a":"b"}}`,
		"POST /api/show":                    `{"model":"gpt-oss:20b"}`,
		"POST /api/pull":                    `{"model":"gpt-oss:20b"}`,
		"POST /v1/conversations":            `{}`,
		"POST /v1/messages/batches":         `{"requests":[{"custom_id":"a","params":{}}]}`,
		"POST /v1/batches":                  `{"completion_window":"24h","endpoint":"/v1/responses"}`,
	}[o.Route]
	if base == "" {
		t.Fatalf("there is no request for %s", o.Route)
	}
	m := porttest.Decode(t, base)
	if m["model"] == "20b" {
		m["model"] = "gpt-oss:20b"
	}
	return m
}

// right is a valid value of each field; by its type if it is not listed.
func right(p openai.Parameter) any {
	named := map[string]any{"input_file_id": nil, "endpoint": nil, "completion_window": nil,
		"messages": nil, "requests": nil, "tokens": nil, "items": nil, "prompt": nil,
		"input": nil, "conversation": nil, "previous_response_id": nil, "model": "gpt-oss:20b",
		"tools": []any{}, "stop_token_ids": []any{5}, "allowed_token_ids": []any{5},
		"modalities": []any{"text"},
		"include":    []any{}, "bad_words": []any{"a"}, "guided_choice": []any{"a"},
		"guided_regex": "a+", "guided_grammar": `root ::= "a"`, "format": "json", "think": true,
		"tool_choice": nil, "function_call": nil, "functions": nil,
		"guided_json": map[string]any{"type": "object"}, "keep_alive": "5m",
		"metadata": map[string]any{"a": "b"}, "best_of": 1, "raw": false, "background": false,
		"context_management":      []any{map[string]any{"type": "compaction"}},
		"previous_input_messages": []any{map[string]any{"role": "user", "content": "a"}},
		"logprobs":                nil, "top_logprobs": nil, "truncate_prompt_tokens": nil,
		"structured_outputs": map[string]any{"choice": []any{"a"}}, "system": "a"}
	if v, ok := named[p.Name]; ok {
		return v
	}
	kind, _, _ := strings.Cut(p.Type, " ")
	switch kind {
	case "string", "text-or-strings":
		return "a"
	case "boolean":
		return true
	case "number", "integer":
		return 1
	case "object":
		return map[string]any{}
	case "strings":
		return []any{"a"}
	case "effort":
		return "low"
	}
	word, _, _ := strings.Cut(kind, "|")
	return word
}

// wrong is a value that no field of the type takes.
func wrong(p openai.Parameter) any {
	kind, _, _ := strings.Cut(p.Type, " ")
	switch {
	case kind == "any":
		return nil
	case kind == "boolean", kind == "number", kind == "integer", strings.Contains(kind, "|"),
		kind == "effort":
		return "bogus"
	}
	return 7
}

func TestDocumentHasTheFields(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	talk := porttest.At(porttest.Decode(t, porttest.Post(t, srv, "/v1/conversations", `{}`).Body), "id").(string)
	file := idIn(t, upload(t, srv, "batch", "in.jsonl", ""))
	completion := storedCompletion(t, srv)
	send := func(o openai.Documented, p openai.Parameter, v any) porttest.Reply {
		body := bodyFor(t, o)
		if o.Route == "POST /v1/batches" {
			body["input_file_id"] = file
		}
		if v != nil {
			body[p.Name] = v
		}
		if p.Name == "stream_options" {
			body["stream"] = true
		}
		text, _ := json.Marshal(body)
		method, path, _ := strings.Cut(o.Route, " ")
		return porttest.Ask(t, method, srv.URL+strings.NewReplacer(
			"completions/{id}", "completions/"+completion, "{id}", talk).Replace(path), string(text))
	}
	for _, o := range openai.Document() {
		for _, p := range o.Body {
			if r := send(o, p, right(p)); r.Status != 200 {
				t.Errorf("%s %s: %d %s", o.Route, p.Name, r.Status, r.Body)
			} else if strings.Contains(r.Header.Get("X-Ossrun-Ignored"), p.Name) {
				t.Errorf("%s ignores %s", o.Route, p.Name)
			}
			bad := wrong(p)
			if bad == nil {
				continue
			}
			if r := send(o, p, bad); r.Status != 400 && r.Status != 404 ||
				!strings.Contains(r.Body, p.Name) {
				t.Errorf("%s %s: %v gets %d %s", o.Route, p.Name, bad, r.Status, r.Body)
			}
		}
	}
}

// What a route reads of a body has a row in its table, from which the document is made.
func TestWhatIsReadHasARow(t *testing.T) {
	tables := openai.Tables()
	for route, read := range openai.Readers() {
		text, _ := json.Marshal(bodyFor(t, openai.Documented{Route: route}))
		body, f := fields.ParseObject(text)
		if f != nil {
			t.Fatal(f)
		}
		read(body)
		if len(body.Seen()) < 8 {
			t.Errorf("%s reads only %v", route, body.Seen())
		}
		for name := range body.Seen() {
			if !slices.ContainsFunc(tables[route],
				func(p fields.Parameter) bool { return p.Name == name }) {
				t.Errorf("%s reads %s, which has no row", route, name)
			}
		}
	}
}

func TestDocument(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"), func(o *openai.Options) { o.APIKey = "secret" })
	m := porttest.Decode(t, porttest.Ask(t, "GET", srv.URL+"/openapi.json", "").Body)
	if m["openapi"] != "3.1.0" || porttest.At(m, "info", "version") != "1.2.3" {
		t.Errorf("%v", m["info"])
	}
	if porttest.At(m, "paths", "/v1/chat/completions", "post", "requestBody", "content",
		"application/json", "schema", "properties", "temperature", "maximum") != 2.0 {
		t.Error("the document has no bound of temperature")
	}
	r := porttest.Ask(t, "GET", srv.URL+"/docs", "")
	for _, o := range openai.Document() {
		_, path, _ := strings.Cut(o.Route, " ")
		if !strings.Contains(r.Body, "<code>"+path+"</code>") {
			t.Errorf("the page lacks %s", path)
		}
	}
	if strings.Contains(r.Body, "<script") || strings.Contains(r.Body, "src=") ||
		strings.Contains(r.Body, `href="http`) {
		t.Error("the page has a script or fetches from another place")
	}
}
