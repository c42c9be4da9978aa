// Responses over a WebSocket. The whole port answers each response.create message as a POST with
// that body; each event is a message.
//
// What must stay true: a message has the limits, key, log line and faults of a request; responses
// of one stream_id run in turn; all end with the connection. It ends when its key is removed or
// the server stops, after its running responses.

package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/responses"
	"github.com/ossrun/ossrun/runtime/session"
)

// maxSockets bounds the open connections of all clients. It is smaller in tests only.
var maxSockets int64 = 1024

// maxUnanswered bounds the unanswered messages of a connection.
const maxUnanswered = 16

type socket struct {
	port    *port
	conn    *websocket.Conn
	upgrade *answer.Exchange
	request *http.Request // of each message, without its body
	memory  *responses.Memory
	running sync.WaitGroup
	places  chan struct{} // one for each unanswered message
	lanes   sync.Map      // by stream_id: a channel, closed once its last message is answered
}

type message struct {
	body    []byte
	release func() // its bytes no longer count
	invalid error  // its JSON is
	head    struct {
		Type     string `json:"type"`
		Lane     string `json:"stream_id"`
		Previous string `json:"previous_response_id"`
	}
}

// connect upgrades a connection and answers its messages until it is closed.
func (p *port) connect(e *answer.Exchange, r *http.Request) (any, *fields.Fault) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return methods{"POST": nil}.refuse(e, r)
	}
	if !p.sockets.Take(e.Client, 1) {
		return nil, fields.FaultOf(&session.BusyError{RetryAfter: time.Second}, "")
	}
	defer p.sockets.Return(e.Client, 1)
	conn, err := websocket.Accept(e, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true}) // port.admit has checked the origin
	if err != nil {
		return nil, nil // Accept has answered
	}
	conn.SetReadLimit(-1) // ReadMessage has the limit
	ctx, cancel := context.WithCancel(r.Context())
	ctx, memory := responses.WithMemory(ctx)
	defer p.responses.DeleteMemory(e.Client, memory)
	s := &socket{port: p, conn: conn, upgrade: e, memory: memory, request: r.Clone(ctx),
		places: make(chan struct{}, maxUnanswered)}
	s.request.Method = http.MethodPost
	s.request.Header.Set("Content-Type", "application/json")
	s.request.Header.Del("Content-Encoding")
	s.request.Header.Del("X-Request-Id") // each message has one
	messages := make(chan message)
	go func() {
		defer close(messages)
		defer cancel()
		s.read(messages)
	}()
	code, why := websocket.StatusNormalClosure, ""
	for open := true; open; {
		select {
		case m, ok := <-messages:
			if open = ok; ok {
				s.start(m)
			}
		case <-p.ending.Done():
			open, code, why = false, websocket.StatusGoingAway, "the server is stopping"
		case <-r.Context().Done():
			open, code, why = false, websocket.StatusPolicyViolation, "this API key was removed"
		}
	}
	s.running.Wait()
	_ = conn.Close(code, why) // the client may be gone
	for m := range messages {
		m.release()
	}
	return nil, nil
}

// read reads messages until the connection is closed.
func (s *socket) read(messages chan<- message) {
	for {
		_, r, err := s.conn.Reader(context.Background())
		if err != nil {
			return
		}
		var m message
		var fault *fields.Fault
		m.body, m.release, fault = s.port.driver.ReadMessage(s.request.Context(), s.upgrade, r)
		if fault != nil {
			m.release()
			s.refuse("", fault)
			_ = s.conn.Close(websocket.StatusMessageTooBig, fields.Shorten(fault.Message, 100))
			return
		}
		m.invalid = json.Unmarshal(m.body, &m.head)
		messages <- m
	}
}

// start answers a message after the earlier ones of its lane.
func (s *socket) start(m message) {
	fault := fields.Invalid("type", "type is %q, it must be response.create",
		fields.Brief(m.head.Type))
	if m.head.Type == "response.create" || m.invalid != nil { // the route names the fault
		select {
		case s.places <- struct{}{}:
			fault = nil
		default:
			fault = fields.FaultOf(&session.BusyError{RetryAfter: time.Second}, "")
		}
	}
	if fault != nil {
		m.release()
		if m.head.Type != "response.processed" { // Codex has read a response
			s.refuse(m.head.Lane, fault)
		}
		return
	}
	done := make(chan struct{})
	previous, waits := s.lanes.Swap(m.head.Lane, done)
	s.running.Go(func() {
		if waits {
			<-previous.(chan struct{})
		}
		m.release() // the route counts the body itself
		s.answer(m)
		s.lanes.CompareAndDelete(m.head.Lane, done)
		close(done)
		<-s.places
	})
}

func (s *socket) answer(m message) {
	r := s.request.Clone(s.request.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(m.body)), int64(len(m.body))
	w := &socketWriter{socket: s, lane: m.head.Lane, header: http.Header{}}
	defer func() {
		if recover() != nil { // http.ErrAbortHandler: the answer was cut
			_ = s.conn.CloseNow()
		}
		if w.status >= 400 {
			s.memory.Forget(m.head.Previous)
		}
	}()
	s.port.all.ServeHTTP(w, r)
}

func (s *socket) refuse(lane string, f *fields.Fault) {
	body, _ := answer.Marshal(fields.OpenAIFault(f, ""))
	w := socketWriter{socket: s, lane: lane, status: f.Status}
	_, _ = w.Write(body) // a client that is gone ends the connection
}

// socketWriter sends each line of an answer as a message, and a fault as an event.
type socketWriter struct {
	socket *socket
	lane   string
	header http.Header
	status int
}

func (w *socketWriter) Header() http.Header { return w.header }

func (w *socketWriter) WriteHeader(status int) { w.status = status }

// FlushError has nothing to do: messages are sent whole.
func (w *socketWriter) FlushError() error { return nil }

func (w *socketWriter) Write(b []byte) (int, error) {
	head := []byte("{")
	if w.status >= 400 {
		head = fmt.Appendf(head, `"type":"error","status":%d,`, w.status)
	}
	if w.lane != "" {
		lane, _ := answer.Marshal(w.lane)
		head = fmt.Appendf(head, `"stream_id":%s,`, lane)
	}
	ctx, cancel := context.WithTimeout(context.Background(), answer.WriteTimeout)
	defer cancel()
	for line := range bytes.Lines(b) {
		event := append(head[:len(head):len(head)], bytes.TrimSpace(line)[1:]...)
		if err := w.socket.conn.Write(ctx, websocket.MessageText, event); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}
