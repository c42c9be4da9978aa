package load

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/remote/client"
)

func TestMain(m *testing.M) {
	if serveStreams() {
		return
	}
	goleak.VerifyTestMain(m)
}

// timed is a server that answers at known times, of four requests each later than the one before
// by spread, and remembers when it really wrote.
type timed struct {
	first, gap, spread time.Duration
	noUsage            bool

	mu     sync.Mutex
	wrote  [][]time.Duration // of each request: since it began
	bodies []map[string]any
	fail   func(n int) string // what request n is refused with; "" is answered
}

func (s *timed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/models" {
		fmt.Fprint(w, `{"data":[{"id":"of-the-server"}]}`)
		return
	}
	began := time.Now()
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	s.bodies = append(s.bodies, body)
	n := len(s.bodies) - 1
	s.mu.Unlock()
	if s.fail != nil {
		if why := s.fail(n); why != "" {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, `{"error":{"message":%q}}`, why)
			return
		}
	}
	tokens, chat := 0, r.URL.Path == "/v1/chat/completions"
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		if v, ok := body[name].(float64); ok {
			tokens = int(v)
		}
	}
	piece := func(text string) string {
		if chat {
			return fmt.Sprintf(`{"choices":[{"delta":{"content":%q}}]}`, text)
		}
		return fmt.Sprintf(`{"choices":[{"text":%q}]}`, text)
	}
	if body["stream"] != true {
		sleepUntil(r.Context(), began.Add(s.first))
		fmt.Fprintf(w, `{"choices":[{"text":" a b"}],"usage":{"completion_tokens":%d}}`, tokens)
		return
	}
	flush := func() { w.(http.Flusher).Flush() }
	if chat {
		fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n")
		flush()
	}
	first, wrote := s.first+time.Duration(n%4)*s.spread, []time.Duration(nil)
	for i := range tokens {
		if !sleepUntil(r.Context(), began.Add(first+time.Duration(i)*s.gap)) {
			return
		}
		fmt.Fprintf(w, "data: %s\n\n", piece(" word"))
		flush()
		wrote = append(wrote, time.Since(began))
	}
	s.mu.Lock()
	s.wrote = append(s.wrote, wrote)
	s.mu.Unlock()
	if !s.noUsage {
		fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"completion_tokens\":%d}}\n\n", tokens)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// at is a client of the server.
func (s *timed) at(t *testing.T) *client.Client {
	t.Helper()
	srv := httptest.NewServer(s)
	c := hosttest.Must(client.New(srv.URL, ""))(t)
	t.Cleanup(func() { c.Close(); srv.Close() })
	return c
}

// inMemory is a client of the server over pipes: in a synctest bubble all time is the server's.
func (s *timed) inMemory(t *testing.T) *client.Client {
	t.Helper()
	c := hosttest.Must(client.New("http://server", ""))(t)
	conns := make(pipes)
	field := reflect.ValueOf(c).Elem().FieldByName("http") // no user dials otherwise
	web := *(**http.Client)(unsafe.Pointer(field.UnsafeAddr()))
	web.Transport.(*http.Transport).DialContext = conns.dial
	srv := &http.Server{Handler: s}
	go func() { _ = srv.Serve(conns) }()
	t.Cleanup(func() { c.Close(); srv.Close() })
	return c
}

// pipes is a listener.
type pipes chan net.Conn

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p <- there
	return here, nil
}

func (p pipes) Accept() (net.Conn, error) {
	if c := <-p; c != nil {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }
