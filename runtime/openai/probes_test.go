package openai

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// What clients try before they ask: Codex a WebSocket, Claude Code models of its maker.
func TestProbes(t *testing.T) {
	srv, _ := server(t, answers("ok"))
	r := ask(t, "GET", srv.URL+"/v1/responses", "", "Upgrade", "websocket", "Connection",
		"Upgrade", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version", "13")
	wantFault(t, r, 426, kindInvalid, "", "websocket_not_supported", "POST")
	if r.header.Get("Upgrade") == "" {
		t.Error("426 names no protocol")
	}
	if r := ask(t, "HEAD", srv.URL+"/", ""); r.status != 200 {
		t.Errorf("HEAD /: %d", r.status)
	}
	wantFault(t, ask(t, "GET", srv.URL+"/v1/responses", ""), 405, kindInvalid, "",
		"method_not_allowed", "POST")

	for model, status := range map[string]int{"claude-haiku-4-5": 200, "gpt-5-mini": 200,
		"gpt-oss-21b": 404, "llama": 404} {
		body := `{"model":"` + model + `","max_tokens":9,"messages":[` + hello + `]}`
		for _, path := range []string{"/v1/messages", "/v1/messages/count_tokens"} {
			if r := ask(t, "POST", srv.URL+path, body); r.status != status {
				t.Errorf("%s %s: %d %s", path, model, r.status, r.body)
			} else if got := decode(t, r.body)["model"]; path == "/v1/messages" && status == 200 &&
				got != model {
				t.Errorf("the model is called %v, not %s", got, model)
			}
		}
		wantFault(t, ask(t, "POST", srv.URL+"/v1/chat/completions", body), 404, kindInvalid,
			"model", "model_not_found", model)
	}
}

// A prompt is in the log only where it was asked for; a background response ends under the id of
// its request.
func TestLogOfPrompts(t *testing.T) {
	const secret = "the launch code is 1234"
	talk := `"messages":[{"role":"user","content":"` + secret + `"}]`
	for _, shown := range []bool{false, true} {
		var log lockedBuffer
		srv, _ := server(t, answers("ok"), func(o *Options) {
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
			ask(t, "POST", srv.URL+path, body)
		}
		r := ask(t, "POST", srv.URL+"/v1/responses", `{"background":true,"input":"x"}`,
			"X-Request-Id", "mine")
		ended(t, srv, decode(t, r.body)["id"].(string))
		srv.Close()
		mine := func() int { return strings.Count(log.String(), `"id":"mine","method":"POST"`) }
		for end := time.Now().Add(time.Minute); mine() < 2 && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // the response's own line comes when it has ended
		}
		if n := strings.Count(log.String(), secret); shown && n < 6 || !shown && n != 0 {
			t.Errorf("prompts in the log: %d with --log-prompts %v\n%s", n, shown, log.String())
		}
		if n := mine(); n != 2 {
			t.Errorf("%d lines of the background response\n%s", n, log.String())
		}
	}
}

// Images are left out of every route's conversation where that is asked for.
func TestIgnoredImages(t *testing.T) {
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"messages":[{"role":"user","content":[{"type":"text",` +
			`"text":"Look: "},{"type":"image_url","image_url":{"url":"data:"}}]}]}`,
		"/v1/messages": `{"max_tokens":9,"messages":[{"role":"user","content":[{"type":"text",` +
			`"text":"Look: "},{"type":"image","source":{"type":"base64","data":""}}]}]}`,
		"/api/chat": `{"model":"gpt-oss:20b","messages":[{"role":"user","content":"Look: ",` +
			`"images":["aaaa"]}]}`,
	} {
		srv, _ := server(t, answers("ok"))
		if r := ask(t, "POST", srv.URL+path, body); r.status != 400 {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
		srv, f := server(t, answers("ok"), func(o *Options) { o.IgnoreImages = true })
		if r := ask(t, "POST", srv.URL+path, body); r.status != 200 {
			t.Errorf("%s: %d %s", path, r.status, r.body)
			continue
		}
		if got := history(f.last(t)); !strings.Contains(got, "Look: ") ||
			!strings.Contains(got, "left out: the model reads text only]") {
			t.Errorf("%s: %q", path, got)
		}
	}
}
