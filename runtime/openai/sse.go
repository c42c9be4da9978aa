// Server-sent events, Ollama's lines of JSON, and the beats of a slow whole answer.
//
// One stream belongs to one request and one goroutine. Events are collected and sent in one write
// and one flush: one system call for each batch, not for each token. What must stay true: after a
// failed write nothing more is written and the turns are cancelled; a client that stops reading
// cannot block a turn for ever; an error of an ordinary whole answer has its status.

package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// patience is how long one flush may take before the client counts as gone.
const patience = time.Minute

type eventStream struct {
	w      http.ResponseWriter
	cancel context.CancelFunc // ends the turns that feed the stream
	buf    bytes.Buffer
	enc    *json.Encoder
	lines  bool // of JSON: nothing stands around an event
	events int  // added so far
	writes int  // that they were sent with
	err    error
}

// startEvents sends the headers. cancel is called once if a write fails.
func startEvents(w http.ResponseWriter, cancel context.CancelFunc) *eventStream {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	return startStream(w, cancel)
}

// startLines is startEvents for lines of JSON.
func startLines(w http.ResponseWriter, cancel context.CancelFunc) *eventStream {
	w.Header().Set("Content-Type", "application/x-ndjson")
	s := startStream(w, cancel)
	s.lines = true
	return s
}

func startStream(w http.ResponseWriter, cancel context.CancelFunc) *eventStream {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx would hold the stream back
	w.WriteHeader(http.StatusOK)
	s := &eventStream{w: w, cancel: cancel}
	s.enc = json.NewEncoder(&s.buf)
	s.enc.SetEscapeHTML(false)
	return s
}

// event adds one event; name "" leaves out the event line.
func (s *eventStream) event(name string, v any) {
	if s.err != nil {
		return
	}
	s.events++
	if name != "" {
		s.buf.WriteString("event: ")
		s.buf.WriteString(name)
		s.buf.WriteByte('\n')
	}
	if !s.lines {
		s.buf.WriteString("data: ")
	}
	// the encoder ends the line; JSON has no line breaks inside
	if err := s.enc.Encode(v); err != nil {
		s.fail(err)
		return
	}
	if !s.lines {
		s.buf.WriteByte('\n')
	}
}

// line adds a literal data line.
func (s *eventStream) line(data string) { s.buf.WriteString("data: " + data + "\n\n") }

// comment adds a line that readers skip.
func (s *eventStream) comment(text string) { s.buf.WriteString(": " + text + "\n\n") }

func (s *eventStream) flush() error {
	if s.err != nil || s.buf.Len() == 0 {
		return s.err
	}
	err := writeNow(s.w, s.buf.Bytes())
	s.writes++
	s.buf.Reset()
	if err != nil {
		return s.fail(err)
	}
	return nil
}

// writeNow writes and flushes b, or fails where the client does not take it in time. In the log a
// reset connection reads like the cancelled request it is.
func writeNow(w http.ResponseWriter, b []byte) error {
	rc := http.NewResponseController(w)
	if err := rc.SetWriteDeadline(time.Now().Add(patience)); err != nil && !errors.Is(err,
		http.ErrNotSupported) {
		return err
	}
	_, err := w.Write(b)
	if err == nil {
		err = rc.Flush()
	}
	if err != nil {
		return fmt.Errorf("cancelled, the client is gone: %w", err)
	}
	// The connection outlives the answer, and the server sets no deadline of its own for the next
	// one.
	if err := rc.SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err,
		http.ErrNotSupported) {
		return err
	}
	return nil
}

func (s *eventStream) fail(err error) error {
	s.err = err
	s.cancel()
	return err
}

// patientWriter sends the line feeds of one whole answer.
type patientWriter struct {
	e     *exchange
	beats int
}

func (p *patientWriter) quiet() error {
	if p.beats++; p.beats < 2 {
		return nil
	}
	if p.e.status == 0 {
		p.e.Header().Set("Content-Type", "application/json")
		p.e.WriteHeader(http.StatusOK)
	}
	return writeNow(p.e, []byte{'\n'})
}

// patiently does a job that may take long while it keeps the connection alive.
func (d *driver) patiently(e *exchange, do func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	patient := patientWriter{e: e}
	clock := time.NewTicker(d.Silence)
	defer clock.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-clock.C:
			_ = patient.quiet() // a client that is gone ends the request's context too
		}
	}
}
