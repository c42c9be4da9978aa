package cli

// Flags of serve that change what a request may do or how it is reported, through the program.

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// One server with all of them, opened to other machines without a key.
func TestServeFlags(t *testing.T) {
	t.Parallel()
	s := serveDemo(t, "--host", "0.0.0.0", "--allowed-hosts", "box.example", "--allowed-origins",
		"https://app.example", "--ignore-images", "--log-prompts", "--log-format", "json")
	if said := s.err.String(); !strings.Contains(said,
		"other machines can use this port without a key; ossrun keys add NAME, or --api-key-file "+
			"FILE, asks for one") {
		t.Errorf("it does not warn: %s", said)
	}
	said, urls := s.err.String(), regexp.MustCompile(`http://[^\s,]+`)
	if list := urls.FindAllString(said, -1); len(list) == 0 || strings.Contains(said, "[::]") {
		t.Errorf("it is not told where the server is: %s", said)
	} else {
		for _, address := range list { // each one reaches it
			address = strings.TrimSuffix(address, "/v1")
			if s := (&served{web: s.web, url: address}); s.status("/health") != http.StatusOK {
				t.Error(address)
			}
		}
	}
	ask := func(host, origin, content string) (status int, header http.Header, text string) {
		t.Helper()
		headers := []string{"Host", host, "Origin", origin}
		r, text := s.send("POST", "/v1/chat/completions", `{"max_tokens":1,"messages":[`+
			`{"role":"user","content":`+content+`}]}`, headers[:2+2*min(len(origin), 1)]...)
		return r.StatusCode, r.Header, text
	}
	for host, want := range map[string]int{"box.example": 200, "localhost": 200,
		"host.docker.internal": 200, "evil.example": http.StatusForbidden} {
		if got, _, text := ask(host, "", `"hi"`); got != want {
			t.Errorf("for %s: %d %s", host, got, text)
		}
	}
	for origin, want := range map[string]int{"https://app.example": 200,
		"https://evil.example": http.StatusForbidden} {
		got, header, text := ask("localhost", origin, `"hi"`)
		if allowed := header.Get("Access-Control-Allow-Origin") == origin; got != want ||
			allowed != (want == 200) {
			t.Errorf("from %s: %d %v %s", origin, got, header, text)
		}
	}
	if got, _, text := ask("localhost", "", `[{"type":"text","text":" "},`+
		`{"type":"image_url","image_url":{"url":"a purple cow"}}]`); got != 200 {
		t.Errorf("an image: %d %s", got, text)
	}
	requests, prompts := 0, 0
	for line := range strings.Lines(s.err.String()) {
		var record struct{ Msg string }
		if json.Unmarshal([]byte(line), &record) == nil && record.Msg != "" {
			requests++
			if strings.Contains(line, "a purple cow") {
				prompts++
			}
		}
	}
	if requests < 5 || prompts == 0 {
		t.Errorf("%d records, %d with the prompt: %s", requests, prompts, s.err.String())
	}

	plain := askDemo(t)
	r, text := plain.send("POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":[`+
		`{"type":"image_url","image_url":{"url":"a purple cow"}}]}]}`)
	if r.StatusCode != 400 || !strings.Contains(text, "text") {
		t.Errorf("an image without --ignore-images: %d %s", r.StatusCode, text)
	}
	if said := plain.err.String(); strings.Contains(said, "purple cow") ||
		strings.Contains(said, "without a key") {
		t.Errorf("it says %s", said)
	}
}

// A key that can be found by trying works, and is named where others can try.
func TestShortKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host, key string
		warns     bool
	}{
		{"0.0.0.0", "token-abc123", true}, // that of vLLM's examples
		{"0.0.0.0", "0123456789abcdefghij", false},
		{"127.0.0.1", "token-abc123", false},
	} {
		s := serveDemo(t, "--host", c.host, "--api-key", c.key)
		if status, body := s.as(c.key, "GET", "/v1/models", ""); status != 200 {
			t.Errorf("%s: %d %s", c.key, status, body)
		}
		if said := s.err.String(); strings.Contains(said, "the key has 12 characters") != c.warns ||
			strings.Contains(said, "without a key") {
			t.Errorf("%+v: %s", c, said)
		}
	}
}

// In a terminal serve shows what it has and what to paste next, and a short line a request; with
// --log-format text it has the log's.
func TestServeOnATerminal(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--log-format", "text"}} {
		term, _ := startInTerminal(t, 80, 40, append([]string{"serve", "demo", "--device", "cpu",
			"--port", "0", "--tools", "none"}, flags...)...)
		screen := term.wait("ossrun serve · demo · cpu", "  API      http://127.0.0.1:",
			"/v1  (this computer only, no key)", "  Chat     http://127.0.0.1:",
			"  Context  16,384 tokens · 4 conversations of that length at once", "  Memory ", " now, up to ",
			"export OPENAI_BASE_URL=http://127.0.0.1:", "/v1 OPENAI_API_KEY=none",
			"ossrun launch codex        # or claude, opencode", "Ready in ", " s. Ctrl+C stops.")
		if strings.Contains(screen, "Tools") || strings.Contains(screen, "startup complete") {
			t.Errorf("the screen:\n%s", screen)
		}
		base, _, _ := strings.Cut(screen[strings.Index(screen, "API      ")+len("API      "):], " ")
		for _, body := range []string{`{"model":"demo","max_tokens":5,"messages":[` +
			`{"role":"user","content":"Hi"}]}`, `{"model":"demo","messages":[],"temperature":9}`} {
			answer, err := http.Post(base+"/chat/completions", "application/json",
				strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
		}
		forged, err := http.Get(strings.TrimSuffix(base, "/v1") + "/a%0A12:00:00%20%20200%20%20forged")
		if err != nil {
			t.Fatal(err)
		}
		forged.Body.Close()
		if flags != nil {
			term.wait("msg=request", "path=/v1/chat/completions status=200")
			continue
		}
		good := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d  200  chat/completions  +\d+ → 5 ` +
			`tokens  \d+\.\d\d s$`)
		bad := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d  400  chat/completions  +` +
			`invalid_request_error in temperature`)
		term.until("two lines", func(screen string) bool {
			return good.MatchString(screen) && bad.MatchString(screen) &&
				strings.Contains(screen, "  unknown_url") && !strings.Contains(screen, "forged")
		})
	}
}

// In a terminal a batch shows how far it is.
func TestBatchProgress(t *testing.T) {
	t.Parallel()
	asked, goOn := make(chan struct{}, 1), make(chan struct{})
	s := &batched{after: func(n int) {
		if n == 3 {
			asked <- struct{}{}
			<-goOn
		}
	}}
	srv := httptest.NewServer(s)
	defer srv.Close()
	release := sync.OnceFunc(func() { close(goOn) })
	defer release()
	folder := t.TempDir()
	in, out := filepath.Join(folder, "in.jsonl"), filepath.Join(folder, "out.jsonl")
	var b strings.Builder
	for _, id := range []string{"a", "b", "c", "d"} {
		b.WriteString(`{"custom_id":"` + id + `","method":"POST","url":"/v1/completions","body":` +
			`{"prompt":"` + id + `"}}` + "\n")
	}
	write(t, in, b.String())
	term, _ := startInTerminal(t, 100, 20, "batch", in, out, "--base-url", srv.URL,
		"--max-concurrency", "1")
	<-asked
	term.wait(" of 4 requests")
	release()
	term.wait("requests: 4, new: 4")
	if n := len(results(t, out)); n != 4 {
		t.Errorf("%d results", n)
	}
}
