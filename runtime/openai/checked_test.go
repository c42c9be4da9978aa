// Every answer that a test's server gives is held to its API's document: bodies and events to
// OpenAI's schemas, streams to the order that clients rely on, usage to its sums.
//
// The check sits between the port and the network, so no test can leave it out:
// TestEveryServerIsChecked finds a handler that was made past it. Answers whose client has left are
// cut off, and only they are not looked at.

package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// checked is a Handler whose answers are looked at.
type checked struct {
	*Handler
	t *testing.T
}

// newChecked is NewHandler for tests.
func newChecked(t *testing.T, o Options) *checked { return &checked{NewHandler(o), t} }

func (c *checked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kept := &keptAnswer{ResponseWriter: w, status: http.StatusOK}
	c.Handler.ServeHTTP(kept, r)
	if r.Context().Err() != nil || kept.cut {
		return
	}
	for _, wrong := range faultsOf(r.Method, r.URL.Path, kept) {
		c.t.Errorf("%s %s: %s\nin %.3000s", r.Method, r.URL, wrong, kept.body.String())
	}
}

// keptAnswer keeps what is written.
type keptAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
	cut    bool // the client does not take it
}

func (k *keptAnswer) Unwrap() http.ResponseWriter { return k.ResponseWriter }

func (k *keptAnswer) WriteHeader(status int) {
	k.status = status
	k.ResponseWriter.WriteHeader(status)
}

func (k *keptAnswer) Write(b []byte) (int, error) {
	n, err := k.ResponseWriter.Write(b)
	k.body.Write(b[:n])
	k.cut = k.cut || err != nil
	return n, err
}

// faultsOf are the ways in which an answer is not what its API says.
func faultsOf(method, path string, a *keptAnswer) (list []string) {
	kind, _, _ := strings.Cut(a.Header().Get("Content-Type"), ";")
	add := func(err error) {
		if err != nil {
			list = append(list, err.Error())
		}
	}
	switch {
	case method == http.MethodHead || a.status == http.StatusNoContent || kind == "text/html" ||
		path == "/metrics":
		return nil
	case kind == "text/event-stream":
		events, err := parseEvents(a.body.String())
		if add(err); err != nil {
			return list
		}
		switch path {
		case "/v1/chat/completions":
			return append(list, chatStreamFaults(events)...)
		case "/v1/messages":
			return append(list, messageStreamFaults(events)...)
		}
		if strings.HasPrefix(path, "/v1/responses") {
			return append(list, responseStreamFaults(events)...)
		}
		return list
	case kind == "application/x-ndjson":
		return lineFaults(a.body.String())
	}
	var m map[string]any
	if err := json.Unmarshal(a.body.Bytes(), &m); err != nil {
		return []string{err.Error()}
	}
	if a.status >= 400 {
		add(faultBody(path, m))
		return list
	}
	if name := schemaOf(method, path, m); name != "" {
		withoutForeign(m)
		add(fits(schemas()[name], m, name))
	}
	add(usageSums(m["usage"]))
	return list
}

// withoutForeign takes out what a client asked for that is no part of the schemas, and is echoed.
func withoutForeign(response map[string]any) {
	tools, ok := response["tools"].([]any)
	if !ok {
		return
	}
	response["tools"] = slices.DeleteFunc(tools, func(tool any) bool {
		kind, _ := at(tool, "type").(string)
		return !slices.Contains([]string{"function", "custom", "namespace", "mcp", "local_shell",
			"code_interpreter"}, kind) && !strings.HasPrefix(kind, "web_search")
	})
}

var onePart = regexp.MustCompile(`^/v1/responses/[^/]+(/cancel|/input_items)?$`)

// schemaOf is the name of the schema of a whole answer.
func schemaOf(method, path string, m map[string]any) string {
	switch {
	case path == "/v1/chat/completions":
		return "CreateChatCompletionResponse"
	case path == "/v1/models":
		return "ListModelsResponse"
	case strings.HasPrefix(path, "/v1/models/"):
		return "Model"
	case path == "/v1/responses/input_tokens":
		return "TokenCountsResource"
	case path == "/v1/responses/compact":
		return "CompactResource"
	case strings.HasSuffix(path, "/input_items"):
		return "ResponseItemList"
	case path == "/v1/responses", onePart.MatchString(path) && method != http.MethodDelete:
		return "Response"
	}
	return ""
}

// faultBody checks the body of a refusal.
func faultBody(path string, m map[string]any) error {
	switch {
	case strings.HasPrefix(path, "/v1/messages"):
		_, kind := at(m, "error", "type").(string)
		_, text := at(m, "error", "message").(string)
		if m["type"] != "error" || !kind || !text || m["request_id"] == nil {
			return fmt.Errorf("not a fault of Anthropic's API")
		}
	case strings.HasPrefix(path, "/api/"):
		if _, ok := m["error"].(string); !ok && at(m, "error", "message") == nil {
			return fmt.Errorf("not a fault of Ollama's API")
		}
	case path == "/health" || path == "/ready":
	default:
		return fits(schemas()["ErrorResponse"], m, "ErrorResponse")
	}
	return nil
}

// usageSums checks a usage of chat completions, completions or responses.
func usageSums(v any) error {
	u, ok := v.(map[string]any)
	if !ok || u["total_tokens"] == nil {
		return nil
	}
	number := func(path ...any) float64 { f, _ := at(u, path...).(float64); return f }
	in, out := number("prompt_tokens")+number("input_tokens"),
		number("completion_tokens")+number("output_tokens")
	cached := number("prompt_tokens_details", "cached_tokens") +
		number("input_tokens_details", "cached_tokens")
	reasoning := number("completion_tokens_details", "reasoning_tokens") +
		number("output_tokens_details", "reasoning_tokens")
	if number("total_tokens") != in+out || cached > in || reasoning > out {
		return fmt.Errorf("the usage does not add up: %v", u)
	}
	return nil
}

func chatStreamFaults(list []event) (wrong []string) {
	if len(list) == 0 || list[len(list)-1].data != "[DONE]" {
		return []string{"the stream does not end in [DONE]"}
	}
	id, open, failed := any(nil), map[float64]bool{}, false
	for i, e := range list[:len(list)-1] {
		if e.json["error"] != nil {
			failed = true
			continue
		}
		choices, _ := e.json["choices"].([]any)
		for _, c := range choices { // the document has no custom tools in streams, the SDKs do
			if delta, ok := at(c, "delta").(map[string]any); ok && at(delta, "tool_calls", 0,
				"custom") != nil {
				delete(delta, "tool_calls")
			}
		}
		name := "CreateChatCompletionStreamResponse"
		if err := fits(schemas()[name], e.json, name); err != nil {
			wrong = append(wrong, err.Error())
		}
		if err := usageSums(e.json["usage"]); err != nil {
			wrong = append(wrong, err.Error())
		}
		if i == 0 {
			id = e.json["id"]
		} else if e.json["id"] != id {
			wrong = append(wrong, "the id changes")
		}
		for _, c := range choices {
			n, _ := at(c, "index").(float64)
			if ended, seen := open[n]; seen && !ended {
				wrong = append(wrong, fmt.Sprintf("choice %v goes on after its end", n))
			}
			open[n] = at(c, "finish_reason") == nil
		}
	}
	for n, unfinished := range open {
		if unfinished && !failed {
			wrong = append(wrong, fmt.Sprintf("choice %v has no end", n))
		}
	}
	return wrong
}

func messageStreamFaults(list []event) (wrong []string) {
	open, next, ended := -1.0, 0.0, false
	for i, e := range list {
		kind, index := e.json["type"], e.json["index"]
		if e.name != kind {
			wrong = append(wrong, fmt.Sprintf("event line %q, type %q", e.name, kind))
		}
		if (i == 0) != (kind == "message_start") && kind != "error" {
			wrong = append(wrong, fmt.Sprintf("event %d is %v", i, kind))
		}
		switch kind {
		case "content_block_start":
			if open >= 0 || index != next {
				wrong = append(wrong, fmt.Sprintf("block %v begins while %v is open", index, open))
			}
			open = next
			next++
		case "content_block_delta", "content_block_stop":
			if index != open {
				wrong = append(wrong, fmt.Sprintf("%v of block %v, %v is open", kind, index, open))
			}
			if kind == "content_block_stop" {
				open = -1
			}
		case "message_stop", "error":
			ended = true
		}
	}
	if !ended {
		wrong = append(wrong, "the stream has no end")
	}
	return wrong
}

// responseStreamFaults checks what holds of a stream from any event on; conformResponses checks a
// whole one.
func responseStreamFaults(list []event) (wrong []string) {
	for i, e := range list {
		kind, _ := e.json["type"].(string)
		if e.name != kind {
			wrong = append(wrong, fmt.Sprintf("event line %q, type %q", e.name, kind))
		}
		if kind == "keepalive" { // what Codex takes for a sign of life
			continue
		}
		name := eventSchemas[kind]
		if err := fits(schemas()[name], e.json, name); err != nil {
			wrong = append(wrong, kind+": "+err.Error())
		}
		if i > 0 && list[i-1].json["sequence_number"] == e.json["sequence_number"] {
			wrong = append(wrong, fmt.Sprintf("two events have number %v",
				e.json["sequence_number"]))
		}
		if err := usageSums(at(e.json, "response", "usage")); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	if len(list) == 0 {
		return wrong
	}
	switch last := list[len(list)-1].name; last {
	case "response.completed", "response.incomplete", "response.failed":
	default:
		wrong = append(wrong, "the last event is "+last)
	}
	return wrong
}

func lineFaults(body string) (wrong []string) {
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	for i, line := range lines {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			return []string{err.Error()}
		}
		last := i == len(lines)-1
		if done, ok := m["done"].(bool); ok && done != last && m["error"] == nil {
			wrong = append(wrong, fmt.Sprintf("line %d of %d has done %v", i+1, len(lines), done))
		}
	}
	return wrong
}

func TestEveryServerIsChecked(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if file != "checked_test.go" && file != "fuzz_routes_test.go" && // has checks of its own
			bytes.Contains(text, []byte(" NewHandler(")) {
			t.Errorf("%s makes a handler whose answers nobody checks: newChecked", file)
		}
	}
}

func TestCheckFindsFaults(t *testing.T) {
	stream := func(events ...string) string { return strings.Join(events, "\n\n") + "\n\n" }
	for _, c := range []struct{ path, kind, body string }{
		{"/v1/models", "application/json", `{"object":"list"}`},
		{"/v1/chat/completions", "text/event-stream", stream(`data: {"id":"x"}`)},
		{"/v1/messages", "text/event-stream", stream("event: message_stop\ndata: {}")},
		{"/v1/responses", "text/event-stream", stream("event: response.created\ndata: {}")},
		{"/api/chat", "application/x-ndjson", `{"done":true}` + "\n" + `{"done":false}` + "\n"},
		{"/v1/completions", "application/json",
			`{"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":3}}`},
		{"/v1/completions", "application/json", `{"usage":{"prompt_tokens":1,` +
			`"completion_tokens":1,"total_tokens":2,"prompt_tokens_details":{"cached_tokens":2}}}`},
	} {
		w := &headerOnly{h: http.Header{"Content-Type": {c.kind}}}
		a := &keptAnswer{ResponseWriter: w, status: http.StatusOK}
		a.body.WriteString(c.body)
		if faultsOf("POST", c.path, a) == nil {
			t.Errorf("%s %s passes", c.path, c.body)
		}
	}
}

type headerOnly struct{ h http.Header }

func (w *headerOnly) Header() http.Header         { return w.h }
func (w *headerOnly) Write(b []byte) (int, error) { return len(b), nil }
func (w *headerOnly) WriteHeader(int)             {}
