// A whole port over a scripted model, and its clients, for tests.
//
// Every answer that a test's server gives is held to its API's document (checked_test.go).

package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// wantFault checks an error's body against OpenAI's schema and the given words.
func wantFault(t *testing.T, r reply, status int, kind, param, code, message string) {
	t.Helper()
	m := decode(t, r.body)
	conform(t, "ErrorResponse", m)
	str := func(v any) string { s, _ := v.(string); return s }
	if r.status != status || at(m, "error", "type") != kind ||
		str(at(m, "error", "param")) != param || str(at(m, "error", "code")) != code ||
		!strings.Contains(str(at(m, "error", "message")), message) {
		t.Errorf("status %d: %s\nwant %d %s, param %q, code %q, %q", r.status, r.body, status, kind,
			param, code, message)
	}
}

// server is a port over a scripted model.
func server(t *testing.T, s script, change ...func(*Options)) (*httptest.Server, *fakeRunner) {
	t.Helper()
	f := &fakeRunner{script: s}
	o := Options{DriverOptions: DriverOptions{
		Models: single(f, f.now, "gpt-oss:20b", "openai/gpt-oss-20b")}, Version: "1.2.3"}
	for _, c := range change {
		c(&o)
	}
	handler := newChecked(t, o)
	srv := httptest.NewServer(handler)
	t.Cleanup(func() {
		srv.Close()
		handler.Close()
		http.DefaultClient.CloseIdleConnections()
		if n := f.active(); n != 0 {
			t.Errorf("%d turns were not followed to their end", n)
		}
	})
	return srv, f
}

// readUntil reads a stream, calls then when mark has come n times, and reads on to the end.
func readUntil(t *testing.T, url, body, mark string, n int, then func()) string {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
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

type reply struct {
	status int
	header http.Header
	body   string
}

func ask(t *testing.T, method, url, body string, header ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(b)}
}

// post sends a body and wants 200.
func post(t *testing.T, srv *httptest.Server, path, body string) reply {
	t.Helper()
	r := ask(t, "POST", srv.URL+path, body)
	if r.status != 200 {
		t.Fatalf("status %d: %s", r.status, r.body)
	}
	return r
}

// event is one server-sent event.
type event struct {
	name string
	data string
	json map[string]any // nil for [DONE]
}

// events reads a stream strictly: every block is one data line, an optional event line before it,
// or a comment.
func events(t *testing.T, body string) []event {
	t.Helper()
	list, err := parseEvents(body)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func parseEvents(body string) ([]event, error) {
	if !strings.HasSuffix(body, "\n\n") {
		return nil, fmt.Errorf("the stream does not end in an empty line: %q",
			body[max(0, len(body)-80):])
	}
	var list []event
	for block := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		if strings.HasPrefix(block, ": ") && !strings.Contains(block, "\n") {
			continue
		}
		var e event
		rest := block
		if after, ok := strings.CutPrefix(rest, "event: "); ok {
			e.name, rest, _ = strings.Cut(after, "\n")
		}
		data, ok := strings.CutPrefix(rest, "data: ")
		if !ok || strings.Contains(data, "\n") {
			return nil, fmt.Errorf("not an event: %q", block)
		}
		if e.data = data; data != "[DONE]" {
			if err := json.Unmarshal([]byte(data), &e.json); err != nil {
				return nil, fmt.Errorf("%q: %w", data, err)
			}
		}
		list = append(list, e)
	}
	return list, nil
}

// object decodes a JSON object.
func decode(t *testing.T, body string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return m
}

// at follows keys and indexes into decoded JSON.
func at(v any, path ...any) any {
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

// eventually asks again until it gets what it waits for.
func eventually[T any](t *testing.T, get func() (T, bool)) T {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		v, ok := get()
		if ok {
			return v
		}
		if time.Now().After(end) {
			t.Fatalf("it did not come: %+v", v)
		}
	}
}
