package openai_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// stuck is a client that sends text and not the end of its body, or takes nothing of its answer.
// It tells when the server waits for it, which it does until it leaves.
type stuck struct {
	*httptest.ResponseRecorder
	text  io.Reader
	waits chan struct{}
	left  chan struct{}
}

func (s stuck) Read(b []byte) (int, error) {
	if n, _ := s.text.Read(b); n > 0 {
		return n, nil
	}
	return 0, s.wait()
}

func (s stuck) Write([]byte) (int, error) { return 0, s.wait() }

func (s stuck) wait() error {
	select {
	case s.waits <- struct{}{}:
	default: // it has told
	}
	<-s.left
	return io.ErrClosedPipe
}

// stick sends a request that does not end before the test, and returns when the server waits for
// its client.
func stick(t *testing.T, srv *httptest.Server, path, key, body string, ends bool) {
	t.Helper()
	s := stuck{httptest.NewRecorder(), strings.NewReader(body), make(chan struct{}, 1),
		make(chan struct{})}
	r := httptest.NewRequest("POST", "http://127.0.0.1"+path, s)
	if ends {
		r = httptest.NewRequest("POST", "http://127.0.0.1"+path, s.text)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	var all sync.WaitGroup
	all.Go(func() { srv.Config.Handler.ServeHTTP(s, r) })
	t.Cleanup(func() { close(s.left); all.Wait() })
	<-s.waits
}

// Large bodies are read a few at a time. One whose client does not read its answer keeps no place:
// another large body is answered meanwhile.
func TestAClientThatDoesNotReadDelaysNobody(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	ids := strings.TrimSuffix(strings.Repeat("72056,", 130_000), ",") // each is a long text
	stick(t, srv, "/detokenize", "", `{"tokens":[`+ids+`]`+strings.Repeat(" ", 1<<20)+`}`, true)
	porttest.Post(t, srv, "/tokenize", `{"prompt":"`+strings.Repeat("a ", 50_000)+`"}`)
}

// The texts of all bodies are bounded together. A client that fills all of that with bodies that it
// does not end leaves room for another's.
func TestUnendedBodiesLeaveRoomForOthers(t *testing.T) {
	const most, each = 64 << 10, 16 << 10
	n := new(named)
	keyed := withKeys(t, n, records.NewStore())
	n.add(t, "holds", nil)
	n.add(t, "asks", nil)
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"), keyed,
		func(o *openai.Options) { o.MaxBodies = most })
	for range most / each {
		stick(t, srv, "/v1/chat/completions", n.keys["holds"], strings.Repeat(" ", each), false)
	}
	if r := n.as(t, srv, "asks", "POST", "/v1/chat/completions",
		`{"messages":[`+porttest.Hello+`]}`); r.Status != http.StatusOK {
		t.Errorf("status %d: %s", r.Status, r.Body)
	}
}
