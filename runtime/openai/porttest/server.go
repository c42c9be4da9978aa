// Package porttest has a complete port over a scripted model, and its clients, for tests.
//
// Every answer of a test's server is checked against its API's document (checked.go).
package porttest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// WantFault checks an error's body against OpenAI's schema and the given words.
func WantFault(t *testing.T, r Reply, status int, kind, param, code, message string) {
	t.Helper()
	m := Decode(t, r.Body)
	Conform(t, "ErrorResponse", m)
	str := func(v any) string { s, _ := v.(string); return s }
	if r.Status != status || At(m, "error", "type") != kind ||
		str(At(m, "error", "param")) != param || str(At(m, "error", "code")) != code ||
		!strings.Contains(str(At(m, "error", "message")), message) {
		t.Errorf("status %d: %s\nwant %d %s, param %q, code %q, %q", r.Status, r.Body, status, kind,
			param, code, message)
	}
}

// Server is a port over a scripted model.
func Server(t *testing.T, s sessiontest.Script, change ...func(*openai.Options)) (*httptest.Server,
	*sessiontest.Model) {
	t.Helper()
	f := &sessiontest.Model{Script: s}
	o := openai.Options{Options: answer.Options{
		Models: sessiontest.Single(f, f.Now, "gpt-oss:20b", "openai/gpt-oss-20b")}, Version: "1.2.3"}
	for _, c := range change {
		c(&o)
	}
	handler := NewChecked(t, o)
	srv := httptest.NewServer(handler)
	t.Cleanup(func() {
		srv.Close()
		handler.Close()
		http.DefaultClient.CloseIdleConnections()
		if n := f.Active(); n != 0 {
			t.Errorf("%d turns were not followed to their end", n)
		}
	})
	return srv, f
}

// ReadUntil reads a stream, calls then at the n-th mark, and reads on to the end.
func ReadUntil(t *testing.T, url, body, mark string, n int, then func()) string {
	t.Helper()
	resp := hosttest.Must(http.Post(url, "application/json", strings.NewReader(body)))(t)
	defer resp.Body.Close()
	var all strings.Builder
	buf := make([]byte, 4096)
	for {
		k, err := resp.Body.Read(buf)
		all.Write(buf[:k])
		if then != nil && strings.Count(all.String(), mark) >= n {
			then()
			then = nil
		}
		if err == io.EOF && then == nil {
			return all.String()
		}
		if err != nil {
			t.Fatalf("%v after %q", err, all.String())
		}
	}
}

type Reply struct {
	Status int
	Header http.Header
	Body   string
}

// Ask sends a request; header are names and values.
func Ask(t *testing.T, method, url, body string, header ...string) Reply {
	t.Helper()
	req := hosttest.Must(http.NewRequestWithContext(t.Context(), method, url,
		strings.NewReader(body)))(t)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp := hosttest.Must(http.DefaultClient.Do(req))(t)
	defer resp.Body.Close()
	b := hosttest.Must(io.ReadAll(resp.Body))(t)
	return Reply{resp.StatusCode, resp.Header, string(b)}
}

// Post sends a body and wants 200.
func Post(t *testing.T, srv *httptest.Server, path, body string) Reply {
	t.Helper()
	r := Ask(t, "POST", srv.URL+path, body)
	if r.Status != 200 {
		t.Fatalf("status %d: %s", r.Status, r.Body)
	}
	return r
}

// Event is one server-sent event.
type Event struct {
	Name string
	Data string
	Json map[string]any // nil for [DONE]
}

// Events reads a stream strictly: every block is one data line, an optional event line before it,
// or a comment.
func Events(t *testing.T, body string) []Event {
	t.Helper()
	return hosttest.Must(ParseEvents(body))(t)
}

// ParseEvents is Events that returns errors.
func ParseEvents(body string) ([]Event, error) {
	if !strings.HasSuffix(body, "\n\n") {
		return nil, fmt.Errorf("the stream does not end in an empty line: %q",
			body[max(0, len(body)-80):])
	}
	var list []Event
	for block := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		if strings.HasPrefix(block, ": ") && !strings.Contains(block, "\n") {
			continue
		}
		var e Event
		rest := block
		if after, ok := strings.CutPrefix(rest, "event: "); ok {
			e.Name, rest, _ = strings.Cut(after, "\n")
		}
		data, ok := strings.CutPrefix(rest, "data: ")
		if !ok || strings.Contains(data, "\n") {
			return nil, fmt.Errorf("not an event: %q", block)
		}
		if e.Data = data; data != "[DONE]" {
			if err := json.Unmarshal([]byte(data), &e.Json); err != nil {
				return nil, fmt.Errorf("%q: %w", data, err)
			}
		}
		list = append(list, e)
	}
	return list, nil
}

// Decode decodes a JSON object.
func Decode(t *testing.T, body string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return m
}

// At follows keys and indexes into decoded JSON.
func At(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p < 0 {
				p += len(l)
			}
			if p < 0 || p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

// Eventually repeats get until it succeeds.
func Eventually[T any](t *testing.T, get func() (T, bool)) T {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		v, ok := get()
		if ok {
			return v
		}
		if time.Now().After(end) {
			t.Fatalf("it did not come: %+v", v)
		}
	}
}
