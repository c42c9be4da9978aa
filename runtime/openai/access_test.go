package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

func TestModels(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	m := porttest.Decode(t, porttest.Ask(t, "GET", srv.URL+"/v1/models", "").Body)
	porttest.Conform(t, "ListModelsResponse", m)
	var names []string
	for _, v := range m["data"].([]any) {
		names = append(names, porttest.At(v, "id").(string))
	}
	if got := strings.Join(names, " "); got != "gpt-oss-20b gpt-oss:20b openai/gpt-oss-20b" {
		t.Errorf("models %s", got)
	}
	for _, id := range []string{"gpt-oss-20b", "openai/gpt-oss-20b", "openai%2Fgpt-oss-20b",
		"gpt-oss:20b", "gpt-oss%3A20b"} {
		r := porttest.Ask(t, "GET", srv.URL+"/v1/models/"+id, "")
		m := porttest.Decode(t, r.Body)
		porttest.Conform(t, "Model", m)
		if r.Status != 200 || m["max_model_len"] != 4096.0 || m["context_length"] != 4096.0 ||
			len(porttest.At(m, "aliases").([]any)) != 2 {
			t.Errorf("%s: %d %s", id, r.Status, r.Body)
		}
	}
	// a name that requests may use and the list does not have
	if r := porttest.Ask(t, "GET", srv.URL+"/v1/models/GPT-OSS-20B", ""); r.Status != 200 {
		t.Errorf("in capitals: %d", r.Status)
	}
	porttest.WantFault(t, porttest.Ask(t, "GET", srv.URL+"/v1/models/llama-4", ""), 404,
		fields.KindInvalid, "model", "model_not_found", "llama-4")
	for _, path := range []string{"/v1/chat/completions", "/v1/responses"} {
		r := porttest.Ask(t, "POST", srv.URL+path, `{"model":"llama-4","messages":[`+porttest.Hello+`],"input":"hi"}`)
		porttest.WantFault(t, r, 404, fields.KindInvalid, "model", "model_not_found", "llama-4")
	}
	// Without a model the served one answers, under its own name.
	if m := porttest.Decode(t, porttest.Post(t, srv, "/v1/responses",
		`{"input":"hi"}`).Body); m["model"] != "gpt-oss-20b" {
		t.Errorf("model %v", m["model"])
	}
}

type brokenSource struct{ session.Models }

func (brokenSource) Get(context.Context, string) (session.Runner, error) {
	return nil, errors.New("the weights are being loaded")
}

func TestModelThatCannotBeUsedNow(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"),
		func(o *openai.Options) { o.Models = brokenSource{o.Models} })
	for _, path := range []string{"/v1/chat/completions", "/v1/responses"} {
		r := porttest.Ask(t, "POST", srv.URL+path, `{"messages":[`+porttest.Hello+`],"input":"hi"}`)
		porttest.WantFault(t, r, 503, fields.KindServer, "", fields.KindServer, "being loaded")
	}
}

func TestRoutes(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	for _, c := range []struct {
		method, path string
		status       int
		code         string
	}{
		{"GET", "/v1/nothing", 404, "unknown_url"},
		{"GET", "/v2", 404, "unknown_url"},
		{"POST", "/v1/embeddings", 404, "unknown_url"},
		{"GET", "/v1/completions", 405, "method_not_allowed"},
		{"PUT", "/v1/responses", 405, "method_not_allowed"},
		{"POST", "/v1/models", 405, "method_not_allowed"},
		{"POST", "/v1/responses/x", 405, "method_not_allowed"},
	} {
		r := porttest.Ask(t, c.method, srv.URL+c.path, "")
		porttest.WantFault(t, r, c.status, fields.KindInvalid, "", c.code, c.path)
		if (r.Header.Get("Allow") != "") != (c.status == 405) {
			t.Errorf("%s %s: Allow %q", c.method, c.path, r.Header.Get("Allow"))
		}
	}
	if r := porttest.Ask(t, "GET", srv.URL+"/version", ""); r.Body != `{"version":"1.2.3"}`+"\n" {
		t.Errorf("/version: %s", r.Body)
	}
	if r := porttest.Ask(t, "HEAD", srv.URL+"/v1/models", ""); r.Status != 200 || r.Body != "" {
		t.Errorf("HEAD: %d %q", r.Status, r.Body)
	}
}

func TestHealth(t *testing.T) {
	var notReady error
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"),
		func(o *openai.Options) { o.Ready = func() error { return notReady } })
	if r := porttest.Ask(t, "GET", srv.URL+"/health", ""); r.Status != 200 {
		t.Errorf("ready: %d", r.Status)
	}
	notReady = errors.New("loading")
	if r := porttest.Ask(t, "GET", srv.URL+"/ready", ""); r.Status != 503 {
		t.Errorf("not ready: %d", r.Status)
	}
	if r := porttest.Ask(t, "GET", srv.URL+"/health", ""); r.Status != 503 || !strings.Contains(r.Body,
		"loading") {
		t.Errorf("not ready: %d %s", r.Status, r.Body)
	}
}

// Every API says when to ask again a server that cannot answer now.
func TestRetryAfter(t *testing.T) {
	for name, why := range map[string]error{"draining": sched.ErrClosed,
		"unavailable": session.ErrUnavailable} {
		srv, _ := porttest.Server(t, sessiontest.Fails(why))
		const message = `"model":"gpt-oss:20b","max_tokens":9,"messages":[{"role":"user","content":"hi"}]`
		for path, body := range map[string]string{"/v1/chat/completions": message,
			"/v1/messages": message, "/api/chat": message, "/v1/responses": `"input":"hi"`,
			"/v1/completions": `"prompt":"hi"`, "/api/generate": `"model":"gpt-oss:20b","prompt":"hi"`} {
			for _, stream := range []string{"true", "false"} {
				r := porttest.Ask(t, "POST", srv.URL+path, "{"+body+`,"stream":`+stream+"}")
				if r.Status != 503 || r.Header.Get("Retry-After") != "2" {
					t.Errorf("%s, %s, stream %s: %d, Retry-After %q", name, path, stream, r.Status,
						r.Header.Get("Retry-After"))
				}
			}
		}
	}
}

// SECURITY.md: other computers (`--host`): everything with the key; without one, everyone who
// reaches the port
func TestKey(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"), func(o *openai.Options) { o.APIKey = "secret" })
	for _, c := range []struct {
		path, header string
		status       int
	}{
		{"/v1/models", "", 401}, {"/v1/models", "Bearer wrong", 401}, {"/v1/models", "Basic secret",
			401}, {"/v1/models", "secret", 401},
		{"/tokenize", "", 401}, {"/ready", "", 200},
		{"/v1/models", "Bearer secret", 200}, {"/v1/models", "bearer secret", 200}, {"/v1/nothing",
			"", 401}, {"/health", "", 200}, {"/metrics", "", 401},
		{"/metrics", "Bearer secret", 200}, {"/version", "", 200},
	} {
		r := porttest.Ask(t, "GET", srv.URL+c.path, "", "Authorization", c.header)
		if r.Status != c.status {
			t.Errorf("%s with %q: status %d, want %d", c.path, c.header, r.Status, c.status)
		}
		if r.Status == 401 {
			porttest.WantFault(t, r, 401, fields.KindInvalid, "", "invalid_api_key", "API key")
		}
	}
}

// What a stranger is answered names no model and no path of this machine.
//
// SECURITY.md: strangers, where there is a key: the chat page, `/docs`, `/health`, `/ready` and
// the version
func TestStrangersLearnNothing(t *testing.T) {
	home := hosttest.Must(os.UserHomeDir())(t)
	srv, f := porttest.Server(t, sessiontest.Answers("ok"),
		func(o *openai.Options) { o.APIKey = "secret" })
	for _, path := range []string{"/", "/docs", "/openapi.json", "/health", "/ready", "/version",
		"/api/version", "/metrics", "/v1/models", "/v1/models/x", "/api/tags", "/api/ps", "/nothing"} {
		for _, method := range []string{"GET", "POST", "OPTIONS"} {
			r := porttest.Ask(t, method, srv.URL+path, "{}")
			for _, secret := range []string{f.ID(), home, os.TempDir() + "/"} {
				if strings.Contains(r.Body, `"`+secret+`"`) || strings.Contains(secret, "/") &&
					strings.Contains(r.Body, secret) {
					t.Errorf("%s %s: %d names %q", method, path, r.Status, secret)
				}
			}
		}
	}
}

// SECURITY.md: Wrong keys are logged with their address and slowed down; behind a TLS proxy,
// the proxy's address counts.
func TestWrongKeysAreLoggedAndSlowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log porttest.LockedBuffer
		f := &sessiontest.Model{Script: sessiontest.Answers("ok")}
		h := porttest.NewChecked(t, openai.Options{Options: answer.Options{
			Models: sessiontest.Single(f, f.Now), Log: slog.New(slog.NewTextHandler(&log, nil))},
			APIKey: "secret"})
		ask := func(key string) time.Duration {
			began := time.Now()
			r := httptest.NewRequest("GET", "http://127.0.0.1/v1/models", nil)
			r.Header.Set("Authorization", key)
			h.ServeHTTP(httptest.NewRecorder(), r)
			return time.Since(began)
		}
		for range 7 {
			ask("Bearer guess")
		}
		if took := ask("Bearer guess"); took != 400*time.Millisecond {
			t.Errorf("the eighth wrong key is answered after %v", took)
		}
		if !strings.Contains(log.String(), `msg="wrong API key" from=192.0.2.1:`) ||
			!strings.Contains(log.String(), "tries=8") || strings.Contains(log.String(), "guess") {
			t.Error(log.String())
		}
		if ask("") != 0 || ask("Bearer secret") != 0 { // no guess
			t.Error("who does not guess waits")
		}
		if n := strings.Count(log.String(), `msg="wrong API key"`); n != 8 {
			t.Errorf("%d wrong keys are logged", n)
		}
	})
}

// SECURITY.md: a web page in your browser: Host and Origin checks, JSON content type only,
// strict CSP of the chat page
// SECURITY.md: web pages: those of this computer and of `--allowed-origins`, with the key if
// there is one
func TestOrigins(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"),
		func(o *openai.Options) { o.Origins = []string{"https://chat.example"} })
	for origin, allowed := range map[string]bool{
		"http://localhost:3000": true, "http://127.0.0.1:8080": true, "http://[::1]:80": true,
		"https://app.localhost": true, "https://chat.example": true,
		"https://evil.example": false, "http://localhost.evil.example": false, "null": false,
		"file://localhost": false,
	} {
		r := porttest.Ask(t, "GET", srv.URL+"/v1/models", "", "Origin", origin)
		if got := r.Header.Get("Access-Control-Allow-Origin"); (got == origin) != allowed ||
			got == "*" {
			t.Errorf("%s: Access-Control-Allow-Origin %q, allowed %v", origin, got, allowed)
		}
		r = porttest.Ask(t, "OPTIONS", srv.URL+"/v1/responses", "", "Origin", origin,
			"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers",
			"content-type,x-stainless-lang")
		if (r.Status == 204) != allowed || (r.Header.Get(
			"Access-Control-Allow-Headers") == "content-type,x-stainless-lang") != allowed {
			t.Errorf("%s: preflight %d %v", origin, r.Status, r.Header)
		}
	}
}

// SECURITY.md: Input is bounded: bodies, PDF documents (256 MiB and 30 s each, in WebAssembly),
// and the markup of answers.
func TestBodyThatIsTooLarge(t *testing.T) {
	f := &sessiontest.Model{Script: sessiontest.Answers("ok")}
	h := porttest.NewChecked(t, openai.Options{Options: answer.Options{Models: sessiontest.Single(f,
		f.Now),
		MaxBody: 2 << 20}, Hosts: []string{"*"}})
	for _, path := range []string{"/v1/chat/completions", "/v1/responses"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", path, io.LimitReader(endless{}, 2<<20+1)))
		porttest.WantFault(t, porttest.Reply{Status: w.Code, Header: w.Header(),
			Body: w.Body.String()}, 413, fields.KindInvalid, "",
			"request_too_large", "2 MiB")
	}
}

// endless is white space without end.
type endless struct{}

var blank = bytes.Repeat([]byte{' '}, 32<<10)

func (endless) Read(p []byte) (int, error) { return copy(p, blank), nil }

// A client that goes away ends its turn; the server's cleanup in server() checks that it was
// followed to its end.
func TestClientGoesAway(t *testing.T) {
	for _, body := range []string{`{"stream":true,"messages":[` + porttest.Hello + `],"n":2}`,
		`{"messages":[` + porttest.Hello + `]}`} {
		var log porttest.LockedBuffer
		never := make(chan struct{})
		srv, f := porttest.Server(t, func(session.Request) ([]session.Event, error) {
			return []session.Event{session.Answer{Text: "Hel"}, sessiontest.Pause{Until: never},
				sessiontest.Done(session.FinishStop)}, nil
		}, func(o *openai.Options) { o.Log = slog.New(slog.NewJSONHandler(&log, nil)) })
		ctx, cancel := context.WithCancel(t.Context())
		req := hosttest.Must(http.NewRequestWithContext(ctx, "POST", srv.URL+"/v1/chat/completions",
			strings.NewReader(body)))(t)
		go func() {
			porttest.Eventually(t, func() (any, bool) { return nil, f.Active() > 0 })
			cancel()
		}()
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if err == nil {
				t.Error("the answer is whole, although the client went away")
			}
		}
		porttest.Eventually(t, func() (int, bool) {
			return f.Active(), f.Active() == 0 && log.String() != ""
		})
		if !strings.Contains(log.String(), "cancel") {
			t.Errorf("log: %s", log.String())
		}
	}
}

func TestLogLine(t *testing.T) {
	var log porttest.LockedBuffer
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"), func(o *openai.Options) {
		o.Log = slog.New(slog.NewJSONHandler(&log,
			nil))
	})
	porttest.Post(t, srv, "/v1/responses",
		`{"input":"my secret","stream":true,"wrong":1}`)
	porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{`)
	srv.Close() // the line is written after the answer
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines: %s", len(lines), log.String())
	}
	var first, second map[string]any
	if json.Unmarshal([]byte(lines[0]), &first) != nil || json.Unmarshal([]byte(lines[1]),
		&second) != nil {
		t.Fatal(lines)
	}
	for key, want := range map[string]any{"msg": "request", "method": "POST",
		"path": "/v1/responses", "status": 200.0, "prompt_tokens": 40.0, "cached_tokens": 8.0,
		"completion_tokens": 12.0} {
		if first[key] != want {
			t.Errorf("%s: %v, want %v", key, first[key], want)
		}
	}
	if first["ignored"] != 1.0 || first["ms"] == nil {
		t.Errorf("first line: %v", first)
	}
	if second["status"] != 400.0 || second["error"] != fields.KindInvalid {
		t.Errorf("second line: %v", second)
	}
	if strings.Contains(log.String(), "my secret") {
		t.Error("the log holds what the user said")
	}
}

// TestTheLogNamesFaultsByKind puts a secret into every part of a request that a fault can quote.
//
// SECURITY.md: The log has routes, kinds of faults and counts, and no text of a request.
func TestTheLogNamesFaultsByKind(t *testing.T) {
	const secret = "ossrun-Vm0tS3cr3t"
	for _, shown := range []bool{false, true} {
		var log porttest.LockedBuffer
		srv, _ := porttest.Server(t, sessiontest.Answers("ok"), func(o *openai.Options) {
			o.LogPrompts, o.Log = shown, slog.New(slog.NewJSONHandler(&log, nil))
		})
		ok := `"messages":[` + porttest.Hello + `]`
		tool := `{"type":"function","function":{"name":"a","parameters":{"properties":{"` + secret +
			`":{"type":"` + secret + `"}}}}}`
		for _, body := range []string{
			secret, `{"` + secret + `":1}`, `{` + ok + `,"` + secret + `":1}`,
			`{` + ok + `,"model":"` + secret + `"}`, `{` + ok + `,"stop":{"` + secret + `":1}}`,
			`{` + ok + `,"tools":[{"type":"` + secret + `"}]}`, `{` + ok + `,"tools":[` + tool + `]}`,
			`{` + ok + `,"tools":[{"type":"function","function":{"name":"` + secret + `!"}}]}`,
			`{` + ok + `,"tool_choice":{"type":"function","function":{"name":"` + secret + `"}}}`,
			`{` + ok + `,"response_format":{"type":"` + secret + `"}}`,
			`{"messages":[{"role":"` + secret + `","content":"a"}]}`,
			`{"messages":[{"role":"user","content":[{"type":"` + secret + `"}]}]}`,
			`{"messages":[{"role":"tool","tool_call_id":"` + secret + `","content":"a"}]}`,
		} {
			for _, path := range []string{"/v1/chat/completions", "/v1/messages", "/api/chat"} {
				porttest.Ask(t, "POST", srv.URL+path, body)
			}
			body = strings.Replace(body, "messages", "input", 1)
			porttest.Ask(t, "POST", srv.URL+"/v1/responses", body)
		}
		porttest.Ask(t, secret, srv.URL+"/v1/models", "")
		for _, path := range []string{"/" + secret, "/v1/" + secret, "/v1/models/" + secret,
			"/v1/responses/" + secret, "/v1/conversations/" + secret + "/items/" + secret,
			"/v1/models?key=" + secret} {
			porttest.Ask(t, "GET", srv.URL+path, "")
		}
		for _, header := range []string{"X-Request-Id", "Cookie", "Api-Key", "X-Api-Key", "Origin",
			"Host", "Content-Type", "Accept", "Traceparent", "User-Agent", "X-Forwarded-For",
			"Proxy-Authorization", "Anthropic-Version", "OpenAI-Organization"} {
			for _, url := range []string{"/v1/models", "/v1/nothing"} {
				porttest.Ask(t, "GET", srv.URL+url, "", header, secret)
			}
		}
		srv.Close()
		n := strings.Count(log.String(), secret)
		if shown && n < 20 || !shown && n != 0 { // shown: it is there to be found
			t.Errorf("--log-prompts %v: the log has the secret %d times\n%s", shown, n, log.String())
		}
		if !strings.Contains(log.String(), `"error":"unknown_url`) ||
			!strings.Contains(log.String(), `"path":"/v1/responses/{id}"`) {
			t.Errorf("the log names no kinds and routes:\n%s", log.String())
		}
	}
}

// TestChunkedBodiesEndTheConnection keeps a proxy and this server from reading two requests where
// there is one: net/http ignores a Content-Length beside Transfer-Encoding, and does not tell.
//
// SECURITY.md: HTTP/1 connections end after a chunked body.
func TestChunkedBodiesEndTheConnection(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	for _, length := range []string{"", "Content-Length: 4\r\n"} {
		c := hosttest.Must(net.Dial("tcp", srv.Listener.Addr().String()))(t)
		defer c.Close()
		one := "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
			length + "Transfer-Encoding: chunked\r\n\r\ne\r\n{\"prompt\":\"a\"}\r\n0\r\n\r\n"
		if _, err := io.WriteString(c, one+"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		all := string(hosttest.Must(io.ReadAll(c))(t))
		if !strings.HasPrefix(all, "HTTP/1.1 200 ") || strings.Count(all, "HTTP/1.1 ") != 1 ||
			!strings.Contains(all, "\r\nConnection: close\r\n") {
			t.Errorf("%q: %s", length, all)
		}
	}
}

func TestErrorsDoNotRepeatMegabytes(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	long := strings.Repeat("é", 1<<20)
	for _, body := range []string{`{"messages":[{"role":"` + long + `"}]}`, `{"messages":[` +
		porttest.Hello + `],"logit_bias":{"` + long + `":1}}`, `{"messages":[` + porttest.Hello + `],"temperature":` +
		strings.Repeat("9", 300) + `}`} {
		r := porttest.Ask(t, "POST", srv.URL+"/v1/chat/completions", body)
		if r.Status != 400 || len(r.Body) > 5000 {
			t.Errorf("status %d, %d bytes", r.Status, len(r.Body))
		}
		porttest.Conform(t, "ErrorResponse", porttest.Decode(t, r.Body))
	}
	r := porttest.Post(t, srv, "/v1/responses", `{"input":"hi","`+long+`":1}`)
	if n := len(r.Header.Get("X-Ossrun-Ignored")); n == 0 || n > 2000 {
		t.Errorf("a header of %d bytes", n)
	}
}

func TestPanicIsAnAnswer(t *testing.T) {
	var log porttest.LockedBuffer
	srv, _ := porttest.Server(t, func(session.Request) ([]session.Event, error) { panic("a bug") },
		func(o *openai.Options) { o.Log = slog.New(slog.NewJSONHandler(&log, nil)) })
	r := porttest.Ask(t, "POST", srv.URL+"/v1/responses", `{"input":"hi"}`)
	porttest.WantFault(t, r, 500, fields.KindServer, "", fields.KindServer, "internal error")
	if !strings.Contains(log.String(), "a bug") || strings.Contains(r.Body, "a bug") {
		t.Errorf("log %s, answer %s", log.String(), r.Body)
	}
}

func TestStreamMetrics(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	r := porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`],"stream":true}`)
	n := strings.Count(r.Body, "data: {")
	body := porttest.Ask(t, "GET", srv.URL+"/metrics", "").Body
	want := fmt.Sprintf(`ossrun:stream_events_total{model_name="gpt-oss-20b"} %d`, n)
	if !strings.Contains(body, want+"\n") {
		t.Errorf("no %s", want)
	}
	if !regexp.MustCompile(`ossrun:stream_writes_total{model_name="gpt-oss-20b"} [1-9]`).
		MatchString(body) {
		t.Error("no writes of streams")
	}
}

func TestMetrics(t *testing.T) {
	srv, f := porttest.Server(t, sessiontest.Answers("ok"))
	f.Stats = sched.Stats{Running: 2, Waiting: 3, PagesTotal: 8, PagesUsed: 2,
		Counts: sched.Counts{Preemptions: 4}}
	porttest.Post(t, srv, "/v1/responses", `{"input":"hi"}`)
	porttest.Post(t, srv, "/v1/chat/completions", `{"messages":[`+porttest.Hello+`],"n":2}`)
	body := porttest.Ask(t, "GET", srv.URL+"/metrics", "").Body
	for _, want := range []string{
		`ossrun:store_refused_records_total 0`,
		`vllm:num_requests_running{model_name="gpt-oss-20b"} 2`,
		`vllm:num_requests_waiting{model_name="gpt-oss-20b"} 3`,
		`vllm:kv_cache_usage_perc{model_name="gpt-oss-20b"} 0.25`,
		`vllm:num_preemptions_total{model_name="gpt-oss-20b"} 4`,
		`vllm:prompt_tokens_total{model_name="gpt-oss-20b"} 120`,
		`vllm:prompt_tokens_cached_total{model_name="gpt-oss-20b"} 24`,
		`vllm:generation_tokens_total{model_name="gpt-oss-20b"} 36`,
		`vllm:request_success_total{finished_reason="stop",model_name="gpt-oss-20b"} 3`,
		`vllm:time_to_first_token_seconds_bucket{model_name="gpt-oss-20b",le="0.01"} 0`,
		`vllm:time_to_first_token_seconds_bucket{model_name="gpt-oss-20b",le="0.02"} 3`,
		`vllm:request_time_per_output_token_seconds_bucket{model_name="gpt-oss-20b",le="0.005"} 0`,
		`vllm:request_time_per_output_token_seconds_bucket{model_name="gpt-oss-20b",le="0.01"} 3`,
		`vllm:e2e_request_latency_seconds_count{model_name="gpt-oss-20b"} 3`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("missing: %s", want)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}
