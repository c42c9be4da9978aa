package openai_test

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// What clients try before they ask: Claude Code models of its maker.
func TestProbes(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	if r := porttest.Ask(t, "HEAD", srv.URL+"/", ""); r.Status != 200 {
		t.Errorf("HEAD /: %d", r.Status)
	}
	porttest.WantFault(t, porttest.Ask(t, "GET", srv.URL+"/v1/responses", ""), 405,
		fields.KindInvalid, "", "method_not_allowed", "POST")

	for model, status := range map[string]int{"claude-haiku-4-5": 200, "gpt-5-mini": 200,
		"gpt-oss-21b": 404, "llama": 404} {
		body := `{"model":"` + model + `","max_tokens":9,"messages":[` + porttest.Hello + `]}`
		for _, path := range []string{"/v1/messages", "/v1/messages/count_tokens"} {
			if r := porttest.Ask(t, "POST", srv.URL+path, body); r.Status != status {
				t.Errorf("%s %s: %d %s", path, model, r.Status, r.Body)
			} else if got := porttest.Decode(t, r.Body)["model"]; path == "/v1/messages" && status == 200 &&
				got != model {
				t.Errorf("the model is called %v, not %s", got, model)
			}
		}
	}
}

// A model of another vendor is the served one on every route that takes a model's name, and other
// unknown names are a 404.
func TestOtherVendorsModels(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	tried := 0
	for _, o := range openai.Document() {
		method, path, _ := strings.Cut(o.Route, " ")
		named := slices.ContainsFunc(o.Body, func(p openai.Parameter) bool {
			return p.Name == "model"
		})
		if !named && path != "/v1/models/{id}" || path == "/api/show" || path == "/api/pull" {
			continue // Ollama's manage what is installed
		}
		for model, status := range map[string]int{"claude-haiku-4-5": 200, "gpt-5-mini": 200,
			"gpt-oss-21b": 404, "llama": 404} {
			text := ""
			if named {
				body := bodyFor(t, o)
				body["model"] = model
				b, _ := json.Marshal(body)
				text = string(b)
			}
			tried++
			r := porttest.Ask(t, method, srv.URL+strings.Replace(path, "{id}", model, 1), text)
			if r.Status != status {
				t.Errorf("%s %s: %d %s", o.Route, model, r.Status, r.Body)
			}
		}
	}
	if tried < 40 {
		t.Errorf("only %d requests", tried)
	}
}

// Clients find the routes without /v1 too, Anthropic's find models in its form, and routes that
// cannot be here say what is.
func TestWaysToTheRoutes(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	chat := `{"messages":[` + porttest.Hello + `]}`
	for _, path := range []string{"/chat/completions", "/messages", "/responses", "/models",
		"/models/gpt-oss:20b"} {
		method, body := "POST", map[string]string{"/chat/completions": chat,
			"/messages": chat[:len(chat)-1] + `,"max_tokens":9}`, "/responses": `{"input":"a"}`}[path]
		if body == "" {
			method = "GET"
		}
		if r := porttest.Ask(t, method, srv.URL+path, body); r.Status != 200 {
			t.Errorf("%s: %d %s", path, r.Status, r.Body)
		}
	}
	if r := porttest.Ask(t, "POST", srv.URL+"/messages", `{}`); !strings.Contains(r.Body,
		`"request_id"`) {
		t.Errorf("not a fault of Anthropic's API: %s", r.Body)
	}
	for _, path := range []string{"/v1/models", "/v1/models/gpt-oss:20b", "/v1/models/claude-x"} {
		m := porttest.Decode(t, porttest.Ask(t, "GET", srv.URL+path, "", "anthropic-version",
			"2023-06-01").Body)
		if list, ok := m["data"].([]any); ok {
			m = list[0].(map[string]any)
		}
		if m["type"] != "model" || m["display_name"] == nil || m["created_at"] == nil ||
			m["max_input_tokens"] == nil {
			t.Errorf("%s: %v", path, m)
		}
	}
	for path, word := range map[string]string{"realtime": "voice", "moderations": "safeguard",
		"images/generations": "images", "vector_stores": "MCP", "containers/c/files": "code_interpreter", "audio/speech": "speaks", "nothing": "the API is under"} {
		r := porttest.Ask(t, "POST", srv.URL+"/v1/"+path, `{}`)
		porttest.WantFault(t, r, 404, fields.KindInvalid, "", "unknown_url", word)
	}
	for path, body := range map[string]string{"/v1/responses/compact": `{"input":"a"}`,
		"/v1/chat/completions": chat[:len(chat)-1] + `,"stream_options":{}}`,
		"/v1/completions":      `{"prompt":"a","stream_options":{"include_usage":true}}`} {
		if r := porttest.Ask(t, "POST", srv.URL+path, body); r.Status != 400 {
			t.Errorf("%s: %d %s", path, r.Status, r.Body)
		}
	}
}

// Newest fields: Anthropic's SDKs try a thread and go on by the refusal's code; Codex reads the
// list of models in its own way.
func TestNewestFields(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	for _, path := range []string{"/v1/messages", "/v1/messages/count_tokens"} {
		for _, thread := range []string{`{"type":"create"}`, `{}`, `{"type":"continue",` +
			`"previous_message_id":"msg_1"}`} {
			r := porttest.Ask(t, "POST", srv.URL+path, `{"max_tokens":9,"thread":`+thread+
				`,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":`+
				`"gone","content":"x"}]}]}`)
			m := porttest.Decode(t, r.Body)
			code := porttest.At(m, "error", "details", "error_code")
			if r.Status != 400 || code != "thread_unsupported_request" {
				t.Errorf("%s %s: %d %s", path, thread, r.Status, r.Body)
			}
		}
		if r := porttest.Ask(t, "POST", srv.URL+path, `{"max_tokens":9,"thread":null,"messages":[`+
			porttest.Hello+`]}`); r.Status != 200 {
			t.Errorf("%s: %d %s", path, r.Status, r.Body)
		}
	}
	for path, codex := range map[string]bool{"/v1/models": false, "/v1/models/": false,
		"/v1/models?client_version=0.153.4": true, "/v1/models/?client_version=1": true} {
		m := porttest.Decode(t, porttest.Ask(t, "GET", srv.URL+path, "").Body)
		list, _ := m["data"].([]any)
		if _, has := m["models"].([]any); len(list) == 0 || m["object"] != "list" || has != codex {
			t.Errorf("%s: %v", path, m)
		}
	}
	porttest.WantFault(t, porttest.Ask(t, "GET", srv.URL+"/v1/models/nope", ""), 404,
		fields.KindInvalid, "model", "model_not_found", "nope")
}

// A prompt is logged only if so configured; a background response ends under the id of its request.
//
// SECURITY.md: `--log-prompts`: prompts to whoever reads the log
func TestLogOfPrompts(t *testing.T) {
	const secret = "the launch code is 1234"
	talk := `"messages":[{"role":"user","content":"` + secret + `"}]`
	for _, shown := range []bool{false, true} {
		var log porttest.LockedBuffer
		srv, _ := porttest.Server(t, sessiontest.Answers("ok"), func(o *openai.Options) {
			o.LogPrompts = shown
			o.Log = slog.New(slog.NewJSONHandler(&log,
				&slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		for path, body := range map[string]string{
			"/v1/chat/completions": `{` + talk + `}`,
			"/v1/messages":         `{"max_tokens":9,` + talk + `}`,
			"/v1/completions":      `{"prompt":"` + secret + `"}`,
			"/v1/responses":        `{"input":"` + secret + `","temperature":9}`,
			"/api/chat":            `{"model":"gpt-oss:20b",` + talk + `}`,
			"/tokenize":            `{"prompt":"` + secret + `"`,
		} {
			porttest.Ask(t, "POST", srv.URL+path, body)
		}
		r := porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{"background":true,"input":"x"}`,
			"X-Request-Id", "mine")
		porttest.Ended(t, srv, porttest.Decode(t, r.Body)["id"].(string))
		srv.Close()
		mine := func() (int, bool) {
			n := strings.Count(log.String(), `"id":"mine","method":"POST"`)
			return n, n > 1
		}
		porttest.Eventually(t, mine) // the response's own line comes when it has ended
		if n := strings.Count(log.String(), secret); shown && n < 6 || !shown && n != 0 {
			t.Errorf("prompts in the log: %d with --log-prompts %v\n%s", n, shown, log.String())
		}
		if n, _ := mine(); n != 2 {
			t.Errorf("%d lines of the background response\n%s", n, log.String())
		}
	}
}

// An image next to text becomes a note on every route, one alone only if so configured.
func TestIgnoredImages(t *testing.T) {
	image := map[string]string{
		"/v1/chat/completions": `{"messages":[{"role":"user","content":[{"type":"text",` +
			`"text":"TEXT"},{"type":"image_url","image_url":{"url":"data:"}}]}]}`,
		"/v1/responses": `{"input":[{"role":"user","content":[{"type":"input_text","text":"TEXT"},` +
			`{"type":"input_image","image_url":"data:"}]}]}`,
		"/v1/messages": `{"max_tokens":9,"messages":[{"role":"user","content":[{"type":"text",` +
			`"text":"TEXT"},{"type":"image","source":{"type":"base64","data":""}}]}]}`,
		"/api/chat": `{"model":"gpt-oss:20b","messages":[{"role":"user","content":"TEXT",` +
			`"images":["aaaa"]}]}`,
		"/api/generate": `{"model":"gpt-oss:20b","prompt":"TEXT","images":["aaaa"]}`,
	}
	const note = "[an image is attached; this model reads text only]"
	for path, body := range image {
		for _, ignored := range []bool{false, true} {
			srv, f := porttest.Server(t, sessiontest.Answers("ok"),
				func(o *openai.Options) { o.IgnoreImages = ignored })
			for _, text := range []string{"Look: ", " "} {
				r := porttest.Ask(t, "POST", srv.URL+path, strings.Replace(body, "TEXT", text, 1))
				switch alone := text == " "; {
				case alone && !ignored:
					if r.Status != 400 || !strings.Contains(r.Body, "reads text only") {
						t.Errorf("%s, an image alone: %d %s", path, r.Status, r.Body)
					}
				case r.Status != 200:
					t.Errorf("%s: %d %s", path, r.Status, r.Body)
				default:
					got := sessiontest.History(f.Last(t))
					if named := r.Header.Get("X-Ossrun-Ignored"); !strings.HasPrefix(got, "user: "+text) ||
						!strings.HasSuffix(got, note) || !strings.Contains(named, "image") {
						t.Errorf("%s: %q, ignored %q", path, got, named)
					}
				}
			}
		}
	}
}

// The list of models names the tools that this server has, as a response's tools do, and no other.
func TestModelsNameTools(t *testing.T) {
	for _, c := range []struct {
		kinds, labels []string
		want          string
	}{
		{nil, nil, `[]`},
		{[]string{"browser", "python"}, nil, `[{"type":"web_search"},{"type":"code_interpreter"}]`},
		{nil, []string{"sums"}, `[{"server_label":"sums","type":"mcp"}]`},
	} {
		srv, _ := porttest.Server(t, sessiontest.Answers("ok"), func(o *openai.Options) {
			o.Offers = func() ([]string, []string) { return c.kinds, c.labels }
		})
		r := porttest.Ask(t, "GET", srv.URL+"/v1/models", "")
		if !strings.HasSuffix(strings.TrimSpace(r.Body), `"tools":`+c.want+`,"max_body":16777216}`) {
			t.Errorf("%v %v: %s", c.kinds, c.labels, r.Body)
		}
	}
}
