// Every answer of a test's server is checked against its API's document: bodies and events against
// OpenAI's schemas, streams against the order that clients rely on, usage against its sums.
//
// The check is between the port and the network, so no test can leave it out:
// TestEveryServerIsChecked finds a handler without it. Answers are not checked only if their client
// has disconnected.

package porttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/records"
)

// Checked is a Handler whose answers are checked.
type Checked struct {
	*openai.Handler
	t     *testing.T
	Store records.Store // the given one, or a new one
}

// NewChecked is NewHandler for tests.
func NewChecked(t *testing.T, o openai.Options) *Checked {
	if o.Store == nil {
		o.Store = records.NewStore()
	}
	return &Checked{openai.NewHandler(o), t, o.Store}
}

// ServeHTTP answers, and checks the answer.
func (c *Checked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kept := &keptAnswer{ResponseWriter: w, status: http.StatusOK}
	c.Handler.ServeHTTP(kept, r)
	if r.Context().Err() != nil || kept.cut {
		return
	}
	for _, wrong := range faultsOf(r.Method, r.URL.Path, kept) {
		c.t.Errorf("%s %s: %s\nin %.3000s", r.Method, r.URL, wrong, kept.body.String())
	}
}

// keptAnswer records the answer.
type keptAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
	cut    bool // the client has disconnected
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

// faultsOf lists an answer's deviations from its API.
func faultsOf(method, path string, a *keptAnswer) (list []string) {
	kind, _, _ := strings.Cut(a.Header().Get("Content-Type"), ";")
	add := func(err error) {
		if err != nil {
			list = append(list, err.Error())
		}
	}
	switch {
	case method == http.MethodHead || a.status == http.StatusNoContent || kind == "text/html" ||
		path == "/metrics" || a.status == http.StatusSwitchingProtocols: // checked by its test
		return nil
	case kind == "text/event-stream":
		events, err := ParseEvents(a.body.String())
		if add(err); err != nil {
			return list
		}
		switch path {
		case "/v1/chat/completions":
			return append(list, chunkFaults(events, "CreateChatCompletionStreamResponse")...)
		case "/v1/completions":
			return append(list, chunkFaults(events, "CreateCompletionStreamResponse")...)
		case "/v1/messages":
			return append(list, messageStreamFaults(events)...)
		}
		if strings.HasPrefix(path, "/v1/responses") {
			return append(list, responseStreamFaults(events)...)
		}
		return list
	case kind == "application/x-jsonlines": // of a batch; checked when it was made
		return nil
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
		add(fits(Schemas()[name], m, name))
	}
	add(usageSums(m["usage"]))
	return list
}

// withoutForeign removes echoed tools of the client that are not in the schemas.
func withoutForeign(response map[string]any) {
	tools, ok := response["tools"].([]any)
	if !ok {
		return
	}
	response["tools"] = slices.DeleteFunc(tools, func(tool any) bool {
		kind, _ := At(tool, "type").(string)
		return !slices.Contains([]string{"function", "custom", "namespace", "mcp", "local_shell",
			"code_interpreter"}, kind) && !strings.HasPrefix(kind, "web_search")
	})
}

var onePart = regexp.MustCompile(`^/v1/responses/[^/]+(/cancel|/input_items)?$`)

// schemaOf is the name of the schema of a full answer.
func schemaOf(method, path string, m map[string]any) string {
	switch {
	case strings.HasPrefix(path, "/v1/chat/completions") && (method == http.MethodPost ||
		m["object"] == "chat.completion"): // others are lists and a deletion
		return "CreateChatCompletionResponse"
	case path == "/v1/completions":
		return "CreateCompletionResponse"
	case At(m, "data", 0, "display_name") != nil, m["display_name"] != nil: // Anthropic's
		return ""
	case path == "/v1/models", path == "/v1/models/":
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
	case strings.HasPrefix(strings.TrimPrefix(path, "/v1"), "/messages"):
		_, kind := At(m, "error", "type").(string)
		_, text := At(m, "error", "message").(string)
		if m["type"] != "error" || !kind || !text || m["request_id"] == nil {
			return fmt.Errorf("not a fault of Anthropic's API")
		}
	case strings.HasPrefix(path, "/api/"):
		if _, ok := m["error"].(string); !ok && At(m, "error", "message") == nil {
			return fmt.Errorf("not a fault of Ollama's API")
		}
	case path == "/health" || path == "/ready":
	default:
		return fits(Schemas()["ErrorResponse"], m, "ErrorResponse")
	}
	return nil
}

// usageSums checks a usage of chat completions, completions or responses.
func usageSums(v any) error {
	u, ok := v.(map[string]any)
	if !ok || u["total_tokens"] == nil {
		return nil
	}
	number := func(path ...any) float64 { f, _ := At(u, path...).(float64); return f }
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
