package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// Who may speak to the port, and for how long they may take.

// asHost sends a request for a host.
func asHost(h http.Handler, host string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/v1/chat/completions",
		strings.NewReader(`{"messages":[`+porttest.Hello+`]}`))
	r.Host = host
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// SECURITY.md: `--allowed-origins`, `--allowed-hosts`: the server to web pages of those sites;
// to requests for those names
func TestHosts(t *testing.T) {
	f := &sessiontest.Model{Script: sessiontest.Answers("ok")}
	handler := func(hosts ...string) http.Handler {
		return porttest.NewChecked(t,
			openai.Options{Options: answer.Options{Models: sessiontest.Single(f, f.Now)},
				Hosts: hosts})
	}
	closed, named := handler("127.0.0.1"), handler("127.0.0.1", "box.lan")
	for host, statuses := range map[string][4]int{
		// listening on loopback, with a further name, on every address, with *
		"localhost:8000":    {200, 200, 200, 200},
		"LOCALHOST":         {200, 200, 200, 200},
		"app.localhost.:80": {200, 200, 200, 200},
		"127.0.0.1:8000":    {200, 200, 200, 200},
		"127.9.9.9":         {200, 200, 200, 200},
		"[::1]:8000":        {200, 200, 200, 200},
		"Box.lan:8000":      {403, 200, 403, 200},

		"host.docker.internal:8000":     {200, 200, 200, 200},
		"Host.Containers.internal":      {200, 200, 200, 200},
		"host.docker.internal.evil.com": {403, 403, 403, 200},
		"evil.docker.internal":          {403, 403, 403, 200},
		"192.168.1.5:8000":              {403, 200, 200, 200},
		"evil.example":                  {403, 403, 403, 200},
		"127.0.0.1.evil.com":            {403, 403, 403, 200},
		"localhost.evil.com:1":          {403, 403, 403, 200},
	} {
		for i, h := range []http.Handler{closed, named, handler("0.0.0.0"), handler("*")} {
			w := asHost(h, host)
			if w.Code != statuses[i] {
				t.Errorf("%s at server %d: %d, want %d", host, i, w.Code, statuses[i])
			}
			if w.Code == 403 {
				porttest.WantFault(t, porttest.Reply{Status: w.Code, Header: w.Header(),
					Body: w.Body.String()}, 403, fields.KindInvalid, "",
					"host_not_allowed", "--allowed-hosts")
			}
		}
	}
	// a server with a key needs no names: who has the key may use any
	keyed := porttest.NewChecked(t, openai.Options{Options: answer.Options{
		Models: sessiontest.Single(f, f.Now)}, Hosts: []string{"127.0.0.1"}, APIKey: "k"})
	for key, want := range map[string]int{"k": 200, "": 401, "x": 401} {
		if w := asHost(keyed, "evil.example", "Authorization", "Bearer "+key); w.Code != want {
			t.Errorf("with the key %q: %d, want %d", key, w.Code, want)
		}
	}
	// a socket has no name
	r := httptest.NewRequest("GET", "/health", nil)
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey,
		net.Addr(&net.UnixAddr{Name: "/x", Net: "unix"})))
	w := httptest.NewRecorder()
	if closed.ServeHTTP(w, r); w.Code != 200 {
		t.Errorf("over a socket: %d", w.Code)
	}
}

// A page may send JSON only, since a browser asks before it does.
func TestPages(t *testing.T) {
	f := &sessiontest.Model{Script: sessiontest.Answers("ok")}
	h := porttest.NewChecked(t, openai.Options{Options: answer.Options{Models: sessiontest.Single(f,
		f.Now)},
		Origins: []string{"https://chat.example"}})
	for _, c := range []struct {
		origin, kind string
		status       int
		code         string
	}{
		{"", "text/plain", 200, ""},
		{"", "", 200, ""},
		{"http://localhost:3000", "application/json; charset=utf-8", 200, ""},
		{"http://localhost:3000", "text/plain", 415, "unsupported_media_type"},
		{"http://localhost:3000", "", 415, "unsupported_media_type"},
		{"https://chat.example", "application/json", 200, ""},
		{"https://evil.example", "application/json", 403, "origin_not_allowed"},
		{"null", "application/json", 403, "origin_not_allowed"},
	} {
		header := []string{"Content-Type", c.kind}
		if c.origin != "" {
			header = append(header, "Origin", c.origin)
		}
		w := asHost(h, "localhost", header...)
		if w.Code != c.status {
			t.Errorf("%s, %s: %d, want %d", c.origin, c.kind, w.Code, c.status)
		}
		if c.code != "" {
			porttest.WantFault(t, porttest.Reply{Status: w.Code, Header: w.Header(),
				Body: w.Body.String()}, c.status, fields.KindInvalid, "",
				c.code, "")
		}
	}
}

// pipes is a listener of connections in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func TestBodiesThatDoNotCome(t *testing.T) {
	whole := `{"messages":[` + porttest.Hello + `]}`
	for name, c := range map[string]struct {
		path     string
		send     func(w io.Writer) error
		status   string
		from, to time.Duration
	}{
		"half a body": {chatRoute, func(w io.Writer) error {
			_, err := io.WriteString(w, whole[:10])
			return err
		}, "408", 25 * time.Second, time.Minute},
		"half a body that nobody reads": {"/nowhere", func(w io.Writer) error {
			_, _ = io.WriteString(w, whole[:10]) // the server may have answered already
			return nil
		}, "404", 0, time.Minute},
		"a byte now and then": {chatRoute, func(w io.Writer) error {
			for _, b := range []byte(whole) {
				if _, err := w.Write([]byte{b}); err != nil {
					return nil // it was cut
				}
				time.Sleep(10 * time.Second)
			}
			return errors.New("the whole body was taken")
		}, "408", 25 * time.Second, time.Minute},
		"slow but steady": {chatRoute, func(w io.Writer) error {
			blanks := strings.Repeat(" ", 100<<10)
			for range 60 {
				if _, err := io.WriteString(w, blanks); err != nil {
					return err
				}
				time.Sleep(time.Second)
			}
			_, err := io.WriteString(w, whole)
			return err
		}, "200", time.Minute, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &sessiontest.Model{Script: sessiontest.Answers("ok")}
				server := &http.Server{Handler: porttest.NewChecked(t,
					openai.Options{Options: answer.Options{
						Models: sessiontest.Single(f, f.Now)}})}
				listener := make(pipes)
				go func() { _ = server.Serve(listener) }()
				here, there := net.Pipe()
				listener <- there
				begun := time.Now()
				go func() {
					length := len(whole)
					if c.status == "200" {
						length += 60 * 100 << 10
					}
					fmt.Fprintf(here, "POST %s HTTP/1.1\r\nHost: localhost\r\n"+
						"Connection: close\r\nContent-Length: %d\r\n\r\n", c.path, length)
					if err := c.send(here); err != nil {
						t.Error(err)
					}
				}()
				answer, _ := io.ReadAll(here)
				took := time.Since(begun)
				if !strings.HasPrefix(string(answer), "HTTP/1.1 "+c.status) || took < c.from ||
					took > c.to {
					t.Errorf("after %v: %.200s", took, answer)
				}
				here.Close()
				time.Sleep(time.Minute) // the sender sees it
				close(listener)
				_ = server.Close()
				synctest.Wait()
			})
		})
	}
}

func TestDeepSchemas(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	for _, depth := range []int{10, 60, 64, 65, 100, 500, 3000} {
		schema := strings.Repeat(`{"type":"object","properties":{"a":`, depth) +
			`{"type":"string"}` + strings.Repeat(`}}`, depth)
		for path, body := range map[string]string{
			chatRoute: porttest.ChatWith(`"tools":[{"type":"function","function":{"name":"f","parameters":` +
				schema + `}}]`),
			responseRoute: `{"input":"a","tools":[{"type":"function","name":"f","parameters":` +
				schema + `}]}`,
		} {
			r := porttest.Ask(t, "POST", srv.URL+path, body)
			if deep := depth > 63; r.Status != 200 && (!deep || r.Status != 400 ||
				!strings.Contains(r.Body, "nested 127 deep")) || r.Status == 200 && deep {
				t.Errorf("%d levels at %s: %d %.300s", depth, path, r.Status, r.Body)
			}
		}
		for _, strict := range []string{"true", "false"} {
			r := porttest.Ask(t, "POST", srv.URL+chatRoute, porttest.ChatWith(`"response_format":{"type":`+
				`"json_schema","json_schema":{"name":"a","strict":`+strict+`,"schema":`+schema+`}}`))
			if r.Status >= 500 {
				t.Errorf("a format of %d levels: %d %.300s", depth, r.Status, r.Body)
			}
		}
	}
}

func TestRequestIDs(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	for sent, kept := range map[string]bool{"": false, "mine-1": true, "é": false,
		"task-1": true, "sk-1": false, "for sk-1": false, "a-disk-ossrun-1": false, strings.Repeat("x", 129): false} {
		r := porttest.Ask(t, "GET", srv.URL+"/v1/nothing", "", "X-Request-Id", sent)
		got := r.Header.Get("X-Request-Id")
		if kept && got != sent || !kept && !strings.HasPrefix(got, "req_") {
			t.Errorf("%q became %q", sent, got)
		}
	}
}
