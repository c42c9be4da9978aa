package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
)

func TestModels(t *testing.T) {
	srv, _ := server(t, answers("ok"))
	m := decode(t, ask(t, "GET", srv.URL+"/v1/models", "").body)
	conform(t, "ListModelsResponse", m)
	var names []string
	for _, v := range m["data"].([]any) {
		names = append(names, at(v, "id").(string))
	}
	if got := strings.Join(names, " "); got != "gpt-oss-20b gpt-oss:20b openai/gpt-oss-20b" {
		t.Errorf("models %s", got)
	}
	for _, id := range []string{"gpt-oss-20b", "openai/gpt-oss-20b", "openai%2Fgpt-oss-20b",
		"gpt-oss:20b", "gpt-oss%3A20b"} {
		r := ask(t, "GET", srv.URL+"/v1/models/"+id, "")
		m := decode(t, r.body)
		conform(t, "Model", m)
		if r.status != 200 || m["max_model_len"] != 4096.0 || m["context_length"] != 4096.0 ||
			len(at(m, "aliases").([]any)) != 2 {
			t.Errorf("%s: %d %s", id, r.status, r.body)
		}
	}
	// a name that requests may use and the list does not have
	if r := ask(t, "GET", srv.URL+"/v1/models/GPT-OSS-20B", ""); r.status != 200 {
		t.Errorf("in capitals: %d", r.status)
	}
	wantFault(t, ask(t, "GET", srv.URL+"/v1/models/gpt-4", ""), 404, kindInvalid, "model",
		"model_not_found", "gpt-4")
	for _, path := range []string{"/v1/chat/completions", "/v1/responses"} {
		r := ask(t, "POST", srv.URL+path, `{"model":"gpt-4","messages":[`+hello+`],"input":"hi"}`)
		wantFault(t, r, 404, kindInvalid, "model", "model_not_found", "gpt-4")
	}
	// Without a model the served one answers, under its own name.
	if m := decode(t, post(t, srv, "/v1/responses",
		`{"input":"hi"}`).body); m["model"] != "gpt-oss-20b" {
		t.Errorf("model %v", m["model"])
	}
}

type brokenSource struct{ session.Models }

func (brokenSource) Get(context.Context, string) (session.Runner, error) {
	return nil, errors.New("the weights are being loaded")
}

func TestModelThatCannotBeUsedNow(t *testing.T) {
	srv, _ := server(t, answers("ok"), func(o *Options) { o.Models = brokenSource{o.Models} })
	for _, path := range []string{"/v1/chat/completions", "/v1/responses"} {
		r := ask(t, "POST", srv.URL+path, `{"messages":[`+hello+`],"input":"hi"}`)
		wantFault(t, r, 503, kindServer, "", kindServer, "being loaded")
	}
}

func TestRoutes(t *testing.T) {
	srv, _ := server(t, answers("ok"))
	for _, c := range []struct {
		method, path string
		status       int
		code         string
	}{
		{"GET", "/v1/nothing", 404, "unknown_url"},
		{"GET", "/v2", 404, "unknown_url"},
		{"POST", "/v1/embeddings", 404, "unknown_url"},
		{"GET", "/v1/chat/completions", 405, "method_not_allowed"},
		{"PUT", "/v1/responses", 405, "method_not_allowed"},
		{"POST", "/v1/models", 405, "method_not_allowed"},
		{"POST", "/v1/responses/x", 405, "method_not_allowed"},
	} {
		r := ask(t, c.method, srv.URL+c.path, "")
		wantFault(t, r, c.status, kindInvalid, "", c.code, c.path)
		if (r.header.Get("Allow") != "") != (c.status == 405) {
			t.Errorf("%s %s: Allow %q", c.method, c.path, r.header.Get("Allow"))
		}
	}
	if r := ask(t, "GET", srv.URL+"/version", ""); r.body != `{"version":"1.2.3"}`+"\n" {
		t.Errorf("/version: %s", r.body)
	}
	if r := ask(t, "HEAD", srv.URL+"/v1/models", ""); r.status != 200 || r.body != "" {
		t.Errorf("HEAD: %d %q", r.status, r.body)
	}
}

func TestHealth(t *testing.T) {
	var notReady error
	srv, _ := server(t, answers("ok"),
		func(o *Options) { o.Ready = func() error { return notReady } })
	if r := ask(t, "GET", srv.URL+"/health", ""); r.status != 200 {
		t.Errorf("ready: %d", r.status)
	}
	notReady = errors.New("loading")
	if r := ask(t, "GET", srv.URL+"/ready", ""); r.status != 503 {
		t.Errorf("not ready: %d", r.status)
	}
	if r := ask(t, "GET", srv.URL+"/health", ""); r.status != 503 || !strings.Contains(r.body,
		"loading") {
		t.Errorf("not ready: %d %s", r.status, r.body)
	}
}

func TestKey(t *testing.T) {
	srv, _ := server(t, answers("ok"), func(o *Options) { o.APIKey = "secret" })
	for _, c := range []struct {
		path, header string
		status       int
	}{
		{"/v1/models", "", 401}, {"/v1/models", "Bearer wrong", 401}, {"/v1/models", "Basic secret",
			401}, {"/v1/models", "secret", 401},
		{"/tokenize", "", 401}, {"/ready", "", 200},
		{"/v1/models", "Bearer secret", 200}, {"/v1/models", "bearer secret", 200}, {"/v1/nothing",
			"", 401}, {"/health", "", 200}, {"/metrics", "", 200},
	} {
		r := ask(t, "GET", srv.URL+c.path, "", "Authorization", c.header)
		if r.status != c.status {
			t.Errorf("%s with %q: status %d, want %d", c.path, c.header, r.status, c.status)
		}
		if r.status == 401 {
			wantFault(t, r, 401, kindInvalid, "", "invalid_api_key", "API key")
		}
	}
}

func TestOrigins(t *testing.T) {
	srv, _ := server(t, answers("ok"),
		func(o *Options) { o.Origins = []string{"https://chat.example"} })
	for origin, allowed := range map[string]bool{
		"http://localhost:3000": true, "http://127.0.0.1:8080": true, "http://[::1]:80": true,
		"https://app.localhost": true, "https://chat.example": true,
		"https://evil.example": false, "http://localhost.evil.example": false, "null": false,
		"file://localhost": false,
	} {
		r := ask(t, "GET", srv.URL+"/v1/models", "", "Origin", origin)
		if got := r.header.Get("Access-Control-Allow-Origin"); (got == origin) != allowed ||
			got == "*" {
			t.Errorf("%s: Access-Control-Allow-Origin %q, allowed %v", origin, got, allowed)
		}
		r = ask(t, "OPTIONS", srv.URL+"/v1/responses", "", "Origin", origin,
			"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers",
			"content-type,x-stainless-lang")
		if (r.status == 204) != allowed || (r.header.Get(
			"Access-Control-Allow-Headers") == "content-type,x-stainless-lang") != allowed {
			t.Errorf("%s: preflight %d %v", origin, r.status, r.header)
		}
	}
}

func TestBodyThatIsTooLarge(t *testing.T) {
	f := &fakeRunner{script: answers("ok")}
	h := newChecked(t, Options{DriverOptions: DriverOptions{Models: single(f, f.now),
		MaxBody: 2 << 20}, Hosts: []string{"*"}})
	for _, path := range []string{"/v1/chat/completions", "/v1/responses"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", path, io.LimitReader(endless{}, 2<<20+1)))
		wantFault(t, reply{w.Code, w.Header(), w.Body.String()}, 413, kindInvalid, "",
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
	for _, body := range []string{`{"stream":true,"messages":[` + hello + `],"n":2}`,
		`{"messages":[` + hello + `]}`} {
		var log lockedBuffer
		never := make(chan struct{})
		srv, f := server(t, func(session.Request) ([]session.Event, error) {
			return []session.Event{session.Answer{Text: "Hel"}, pause{until: never},
				done(session.FinishStop)}, nil
		}, func(o *Options) { o.Log = slog.New(slog.NewJSONHandler(&log, nil)) })
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "POST", srv.URL+"/v1/chat/completions",
			strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for f.active() == 0 {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if err == nil {
				t.Error("the answer is whole, although the client went away")
			}
		}
		deadline := time.Now().Add(2 * time.Minute)
		for f.active() > 0 || log.String() == "" {
			if time.Now().After(deadline) {
				t.Fatalf("%d turns still run", f.active())
			}
			time.Sleep(time.Millisecond)
		}
		if !strings.Contains(log.String(), "cancel") {
			t.Errorf("log: %s", log.String())
		}
	}
}

func TestLogLine(t *testing.T) {
	var log lockedBuffer
	srv, _ := server(t, answers("ok"), func(o *Options) {
		o.Log = slog.New(slog.NewJSONHandler(&log,
			nil))
	})
	post(t, srv, "/v1/responses",
		`{"input":"my secret","stream":true,"tools":[{"type":"web_search"}]}`)
	ask(t, "POST", srv.URL+"/v1/responses", `{`)
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
	if first["ignored"] != "web_search" || first["ms"] == nil {
		t.Errorf("first line: %v", first)
	}
	if second["status"] != 400.0 || !strings.Contains(second["error"].(string), "not valid JSON") {
		t.Errorf("second line: %v", second)
	}
	if strings.Contains(log.String(), "my secret") {
		t.Error("the log holds what the user said")
	}
}

func TestErrorsDoNotRepeatMegabytes(t *testing.T) {
	srv, _ := server(t, answers("ok"))
	long := strings.Repeat("é", 1<<20)
	for _, body := range []string{`{"messages":[{"role":"` + long + `"}]}`, `{"messages":[` +
		hello + `],"logit_bias":{"` + long + `":1}}`, `{"messages":[` + hello + `],"temperature":` +
		strings.Repeat("9", 300) + `}`} {
		r := ask(t, "POST", srv.URL+"/v1/chat/completions", body)
		if r.status != 400 || len(r.body) > 5000 {
			t.Errorf("status %d, %d bytes", r.status, len(r.body))
		}
		conform(t, "ErrorResponse", decode(t, r.body))
	}
	r := post(t, srv, "/v1/responses", `{"input":"hi","tools":[{"type":"`+long+`"}]}`)
	if n := len(r.header.Get("X-Ossrun-Ignored")); n == 0 || n > 2000 {
		t.Errorf("a header of %d bytes", n)
	}
}

func TestPanicIsAnAnswer(t *testing.T) {
	var log lockedBuffer
	srv, _ := server(t, func(session.Request) ([]session.Event, error) { panic("a bug") },
		func(o *Options) { o.Log = slog.New(slog.NewJSONHandler(&log, nil)) })
	r := ask(t, "POST", srv.URL+"/v1/responses", `{"input":"hi"}`)
	wantFault(t, r, 500, kindServer, "", kindServer, "internal error")
	if !strings.Contains(log.String(), "a bug") || strings.Contains(r.body, "a bug") {
		t.Errorf("log %s, answer %s", log.String(), r.body)
	}
}

func TestStreamMetrics(t *testing.T) {
	srv, _ := server(t, answers("ok"))
	r := post(t, srv, "/v1/chat/completions", `{"messages":[`+hello+`],"stream":true}`)
	n := strings.Count(r.body, "data: {")
	body := ask(t, "GET", srv.URL+"/metrics", "").body
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
	srv, f := server(t, answers("ok"))
	f.stats = sched.Stats{Running: 2, Waiting: 3, PagesTotal: 8, PagesUsed: 2,
		Counts: sched.Counts{Preemptions: 4}}
	post(t, srv, "/v1/responses", `{"input":"hi"}`)
	post(t, srv, "/v1/chat/completions", `{"messages":[`+hello+`],"n":2}`)
	body := ask(t, "GET", srv.URL+"/metrics", "").body
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
