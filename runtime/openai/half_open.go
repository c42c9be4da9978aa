// A client may close only the half of its connection that it writes to (`nc -N`, a shell pipe). It
// still reads, and gets its answer. A killed client sends the same packet, so the server tells the
// two apart by writing: the machine of a killed client refuses what comes, and the next write
// fails.
//
// What must stay true: a request of a client that is gone is cancelled within 100 ms on a network
// that answers in 5 ms; nothing is written inside an answer but what clients skip; a request that
// was cut off is never taken for a whole one. Under TLS a closed half counts as a client that left,
// as in net/http.

package openai

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// HalfOpen wraps l for server: connections stay open for clients that only read.
func HalfOpen(server *http.Server, l net.Listener) net.Listener {
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, halfOpenKey{}, c)
	}
	return halfOpenListener{l}
}

type halfOpenListener struct{ net.Listener }

func (l halfOpenListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &halfOpen{Conn: c, woken: make(chan struct{}, 1)}, nil
}

// halfOpenKey is where a request's context has its connection.
type halfOpenKey struct{}

// halfOpen is a connection whose client may have closed the half that it writes to.
type halfOpen struct {
	net.Conn
	woken chan struct{} // closed, or a deadline was set

	mu       sync.Mutex
	deadline time.Time // of reads
	closed   bool
	exchange *exchange // that runs, or nil

	writing sync.Mutex
	begun   bool // the exchange's answer is on its way
	modern  bool // its client knows informational answers (1xx)
}

// processing is an informational answer, which clients skip.
const processing = "HTTP/1.1 102 Processing\r\n\r\n"

// longestPause is the longest pause between two such writes. The first follow each other closely;
// later ones are few, since some clients count informational answers.
const longestPause = 15 * time.Second

// begin is called when e's handler starts, end when it is over.
func (h *halfOpen) begin(e *exchange, r *http.Request) {
	h.writing.Lock()
	h.begun, h.modern = false, r.ProtoAtLeast(1, 1)
	h.writing.Unlock()
	h.mu.Lock()
	h.exchange = e
	h.mu.Unlock()
}

func (h *halfOpen) end() {
	h.mu.Lock()
	h.exchange = nil
	h.mu.Unlock()
}

// Read holds back the end of the stream while an answer runs whose client still reads. net/http
// reads one byte to notice that a client leaves; all its other reads are larger, and get the end.
func (h *halfOpen) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	if n > 0 || err != io.EOF || len(b) != 1 {
		return n, err
	}
	for pause := 5 * time.Millisecond; h.stillReads(); pause = min(10*pause, longestPause) {
		select {
		case <-h.woken:
		case <-time.After(pause):
		}
		if h.called() {
			return h.Conn.Read(b) // its error says how: a deadline, or closed
		}
	}
	return n, err
}

// called tells whether net/http wants Read to return: it set a deadline, or closed.
func (h *halfOpen) called() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed || !h.deadline.IsZero() && !time.Now().Before(h.deadline)
}

// stillReads writes something that the client skips, and tells whether it could. To a client that
// is gone the first write succeeds and the second fails.
func (h *halfOpen) stillReads() bool {
	h.mu.Lock()
	e := h.exchange
	h.mu.Unlock()
	if e == nil {
		return true // its handler is about to begin, or has just ended
	}
	if begun, err := h.inform(); !begun {
		return err == nil
	}
	return e.ping() == nil
}

// errOlder is for clients of HTTP/1.0: nothing may precede their answer.
var errOlder = errors.New("the client knows no answer before the real one")

// inform writes an informational answer, unless the real one is on its way.
func (h *halfOpen) inform() (begun bool, err error) {
	h.writing.Lock()
	defer h.writing.Unlock()
	if h.begun {
		return true, nil
	}
	if !h.modern {
		return false, errOlder
	}
	_ = h.SetWriteDeadline(time.Now().Add(patience)) // it fails as the write will
	_, err = h.Conn.Write([]byte(processing))
	return false, err
}

func (h *halfOpen) Write(b []byte) (int, error) {
	h.writing.Lock()
	defer h.writing.Unlock()
	// net/http asks for the rest of a body with a 100, which is not the answer
	h.begun = h.begun || !bytes.HasPrefix(b, []byte("HTTP/1.1 100 "))
	return h.Conn.Write(b)
}

func (h *halfOpen) wake() {
	select {
	case h.woken <- struct{}{}:
	default:
	}
}

// SetReadDeadline ends a wait that is under way, as it would end a read.
func (h *halfOpen) SetReadDeadline(t time.Time) error {
	h.mu.Lock()
	h.deadline = t
	h.mu.Unlock()
	defer h.wake()
	return h.Conn.SetReadDeadline(t)
}

func (h *halfOpen) SetDeadline(t time.Time) error {
	if err := h.SetReadDeadline(t); err != nil {
		return err
	}
	return h.SetWriteDeadline(t)
}

func (h *halfOpen) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	defer h.wake()
	return h.Conn.Close()
}

// CloseWrite lets net/http end a connection whose client still sends.
func (h *halfOpen) CloseWrite() error {
	if c, ok := h.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}
