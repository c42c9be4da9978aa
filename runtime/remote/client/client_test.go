package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is of a port that handle answers for.
func client(t *testing.T, handle http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(handle)
	c, err := New(srv.URL+"/v1/", "secret")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); srv.Close() })
	return c
}

func TestNew(t *testing.T) {
	for base, want := range map[string]string{"localhost:8000": "http://localhost:8000",
		"http://h:1/v1": "http://h:1", "https://h/openai/v1/": "https://h/openai",
		"http://h/": "http://h", "unix:/run/x.sock": "http://localhost"} {
		if c, err := New(base, ""); err != nil || c.Root() != want {
			t.Errorf("%s: %v, %v", base, c, err)
		}
	}
	for _, base := range []string{"", "ftp://h", "http://", "http://a b", "://"} {
		if c, err := New(base, ""); err == nil {
			t.Errorf("%q: %v", base, c)
		}
	}
}

func TestCall(t *testing.T) {
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer secret" || r.URL.Path != "/v1/x" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		_, _ = w.Write([]byte(`{"was":` + string(body) + `}`))
	})
	var into struct{ Was map[string]int }
	if err := c.Call(t.Context(), "POST", "/v1/x", map[string]int{"a": 1}, &into); err != nil ||
		into.Was["a"] != 1 {
		t.Error(into, err)
	}
	if err := c.Call(t.Context(), "POST", "/v1/x", []byte(`{"b":2}`), &into); err != nil ||
		into.Was["b"] != 2 {
		t.Error(into, err)
	}
	if err := c.Call(t.Context(), "POST", "/v1/x", []byte(`{`), &into); err == nil ||
		!strings.Contains(err.Error(), "not as expected") {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	for body, want := range map[string]Error{
		`{"error":{"message":"no","type":"invalid_request_error","code":"bad","param":"n"}}`: {
			Message: "no", Type: "invalid_request_error", Code: "bad", Param: "n"},
		`{"object":"error","message":"no","type":"BadRequestError","param":null,"code":400}`: {
			Message: "no", Type: "BadRequestError", Code: "400"},
		`{"error":"model not found"}`:           {Message: "model not found"},
		`{"detail":"Not Found"}`:                {Message: "Not Found"},
		`{"detail":[{"msg":"field required"}]}`: {Message: `[{"msg":"field required"}]`},
		"<html>bad gateway</html>\n":            {Message: "<html>bad gateway</html>"},
		"":                                      {Message: "Too Many Requests"},
	} {
		c := client(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "1.5")
			w.Header().Set("X-Request-Id", "req_1")
			w.WriteHeader(429)
			_, _ = w.Write([]byte(body))
		})
		err := c.Call(t.Context(), "GET", "/v1/models", nil, nil)
		var e *Error
		if !errors.As(err, &e) || e.Message != want.Message || e.Type != want.Type ||
			e.Code != want.Code || e.Param != want.Param || e.RetryAfter != 1500*time.Millisecond ||
			e.RequestID != "req_1" || e.Status != 429 {
			t.Errorf("%s: %#v", body, err)
		}
	}
}

// A stream ends with its context, in the middle of an event too.
func TestCancel(t *testing.T) {
	c := client(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("data: 1\n\ndata: 2"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	s, err := c.Stream(ctx, "/v1/x", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if e, err := s.Next(); err != nil || string(e.Data) != "1" {
		t.Fatal(e, err)
	}
	cancel()
	if _, err := s.Next(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "port.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Skip("no sockets of this kind here:", err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"data":[{"id":"m"}]}`))
	})}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	c, err := New("unix:"+path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var list struct{ Data []struct{ ID string } }
	if err := c.Call(t.Context(), "GET", "/v1/models", nil, &list); err != nil ||
		len(list.Data) != 1 || list.Data[0].ID != "m" {
		t.Error(list, err)
	}
}
