package openai

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

// speaker is a connection that a test writes a request to by hand.
type speaker struct {
	*net.TCPConn
	answers *bufio.Reader
}

func speak(t *testing.T, url, request string) speaker {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return speaker{conn.(*net.TCPConn), bufio.NewReader(conn)}
}

// byHand is a request with a body.
func byHand(path, version, body string) string {
	return fmt.Sprintf("POST %s HTTP/%s\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", path, version, len(body), body)
}

// answer is the real one, and how many came before it.
func (s speaker) answer(t *testing.T) (*http.Response, int) {
	t.Helper()
	for before := 0; ; before++ {
		resp, err := http.ReadResponse(s.answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusProcessing {
			t.Cleanup(func() { resp.Body.Close() })
			return resp, before
		}
	}
}

// twoWords waits for goOn before and between its words.
func twoWords(goOn <-chan struct{}) script {
	return func(session.Request) ([]session.Event, error) {
		return []session.Event{pause{until: goOn}, session.Answer{Text: "One, "},
			pause{until: goOn}, session.Answer{Text: "two."}, done(session.FinishStop)}, nil
	}
}

// A client that has closed its writing half gets its whole answer, streamed or not, however long
// nothing is said; so do those of the other APIs.
func TestHalfClosedClientReadsOn(t *testing.T) {
	for _, c := range []struct{ name, path, body, end string }{
		{"response", "/v1/responses", `{"input":"x","stream":true}`, `"status":"completed"`},
		{"whole", "/v1/responses", `{"input":"x"}`, "One, two."},
		{"chat", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],
			"stream":true}`, "[DONE]"},
		{"messages", "/v1/messages", `{"max_tokens":99,"stream":true,
			"messages":[{"role":"user","content":"x"}]}`, "message_stop"},
		{"ollama", "/api/chat", `{"model":"gpt-oss:20b","messages":[{"role":"user","content":"x"}]}`, `"done":true`},
	} {
		t.Run(c.name, func(t *testing.T) {
			goOn := make(chan struct{})
			srv, f := server(t, twoWords(goOn))
			s := speak(t, srv.URL, byHand(c.path, "1.1", c.body))
			eventually(t, func() (any, bool) { return nil, f.active() == 1 })
			if err := s.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			// so that it is noticed: without, there is less to see
			time.Sleep(50 * time.Millisecond)
			goOn <- struct{}{}
			time.Sleep(50 * time.Millisecond)
			goOn <- struct{}{}
			resp, _ := s.answer(t)
			all, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != 200 || !strings.Contains(string(all), c.end) {
				t.Errorf("%d %s, %v", resp.StatusCode, all, err)
			}
			if _, err := s.answers.ReadByte(); err != io.EOF {
				t.Errorf("the connection is not closed: %v", err)
			}
		})
	}
}

// A client that is gone is noticed before the answer's first byte and between two.
func TestClosedClientHasLeft(t *testing.T) {
	for _, body := range []string{`{"input":"x","stream":true}`, `{"input":"x"}`} {
		for _, version := range []string{"1.1", "1.0"} {
			goOn := make(chan struct{})
			srv, f := server(t, twoWords(goOn))
			s := speak(t, srv.URL, byHand("/v1/responses", version, body))
			eventually(t, func() (any, bool) { return nil, f.active() == 1 })
			start := time.Now()
			s.Close()
			eventually(t, func() (any, bool) { return f.active(), f.active() == 0 })
			t.Logf("HTTP/%s %s: noticed after %v", version, body, time.Since(start))
		}
	}
	goOn := make(chan struct{})
	srv, f := server(t, twoWords(goOn))
	s := speak(t, srv.URL, byHand("/v1/responses", "1.1", `{"input":"x","stream":true}`))
	goOn <- struct{}{}
	resp, _ := s.answer(t)
	if _, err := io.ReadFull(resp.Body, make([]byte, 20)); err != nil {
		t.Fatal(err)
	}
	s.Close()
	eventually(t, func() (any, bool) { return f.active(), f.active() == 0 })
}

// A half-closed client that asks the old way cannot be told from one that is gone; one whose
// request is not whole gets none for it; the connection serves requests that were sent before.
func TestHalfClosedRequests(t *testing.T) {
	goOn := make(chan struct{})
	srv, f := server(t, twoWords(goOn))
	old := speak(t, srv.URL, byHand("/v1/responses", "1.0", `{"input":"x"}`))
	eventually(t, func() (any, bool) { return nil, f.active() == 1 })
	if err := old.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() (any, bool) { return f.active(), f.active() == 0 })

	cut := speak(t, srv.URL, strings.Replace(byHand("/v1/responses", "1.1", `{"input":"x"}`),
		"Content-Length: 13", "Content-Length: 14", 1))
	if err := cut.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if resp, _ := cut.answer(t); resp.StatusCode != 400 {
		t.Error(resp.Status)
	}

	get := "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
	two := speak(t, srv.URL, get+get)
	if err := two.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		resp, _ := two.answer(t)
		if _, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 {
			t.Error(resp.Status, err)
		}
	}
	close(goOn)
	queued := speak(t, srv.URL, byHand("/v1/responses", "1.1", `{"input":"x","background":true}`))
	if err := queued.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	resp, _ := queued.answer(t)
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if m := ended(t, srv, decode(t, string(text))["id"].(string)); m["status"] != "completed" {
		t.Errorf("%v", m)
	}
}
