// Server-sent events, Ollama's lines of JSON, and the heartbeats of a slow answer that is not
// streamed.
//
// One stream belongs to one request and one goroutine. Events are collected and sent in one write
// and one flush: one system call for each batch, not for each token. What must stay true: after a
// failed write nothing more is written and the turns are cancelled; a client that stops reading
// cannot block a turn for ever; an error of an ordinary answer has its status.

package answer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// WriteTimeout is how long one flush may take before the client counts as gone.
const WriteTimeout = time.Minute

type Stream struct {
	w      http.ResponseWriter
	cancel context.CancelFunc // ends the turns that feed the stream
	buf    bytes.Buffer
	enc    *json.Encoder
	lines  bool // of JSON: without event framing
	events int  // added so far
	writes int  // that sent them
	err    error
}

// StartEvents sends the headers. cancel is called once if a write fails.
func StartEvents(w http.ResponseWriter, cancel context.CancelFunc) *Stream {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	return startStream(w, cancel)
}

// StartLines is StartEvents for lines of JSON.
func StartLines(w http.ResponseWriter, cancel context.CancelFunc) *Stream {
	w.Header().Set("Content-Type", "application/x-ndjson")
	s := startStream(w, cancel)
	s.lines = true
	return s
}

func startStream(w http.ResponseWriter, cancel context.CancelFunc) *Stream {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx would hold the stream back
	w.WriteHeader(http.StatusOK)
	s := &Stream{w: w, cancel: cancel}
	s.enc = json.NewEncoder(&s.buf)
	s.enc.SetEscapeHTML(false)
	return s
}

// Event adds one event; name "" omits the event line.
func (s *Stream) Event(name string, v any) {
	if s.err != nil {
		return
	}
	s.events++
	if name != "" && !s.lines {
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

func (s *Stream) line(data string) { s.buf.WriteString("data: " + data + "\n\n") }

// Comment adds a line that readers skip.
func (s *Stream) Comment(text string) { s.buf.WriteString(": " + text + "\n\n") }

// Flush sends the collected events.
func (s *Stream) Flush() error {
	if s.err != nil || s.buf.Len() == 0 {
		return s.err
	}
	err := WriteNow(s.w, s.buf.Bytes())
	s.writes++
	s.buf.Reset()
	if err != nil {
		return s.fail(err)
	}
	return nil
}

// WriteNow writes and flushes b, or fails if the client does not accept it in time. The log shows a
// reset connection as a cancelled request.
func WriteNow(w http.ResponseWriter, b []byte) error {
	rc := http.NewResponseController(w)
	if err := rc.SetWriteDeadline(time.Now().Add(WriteTimeout)); err != nil && !errors.Is(err,
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
	// The connection outlives the answer, and the server sets no new deadline for the next one.
	if err := rc.SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err,
		http.ErrNotSupported) {
		return err
	}
	return nil
}

func (s *Stream) fail(err error) error {
	s.err = err
	s.cancel()
	return err
}

// patientWriter sends line feeds as the heartbeats of one answer.
type patientWriter struct {
	e     *Exchange
	beats int
}

func (p *patientWriter) beat() error {
	if p.beats++; p.beats < 2 || p.e.Background {
		return nil
	}
	if p.e.Status == 0 {
		p.e.Header().Set("Content-Type", "application/json")
		p.e.WriteHeader(http.StatusOK)
	}
	return WriteNow(p.e, []byte{'\n'})
}

// RunPatiently runs a long job while it keeps the connection alive.
func (d *Driver) RunPatiently(e *Exchange, do func() error) error {
	e.endReading()
	done := make(chan error, 1)
	go func() { done <- do() }()
	patient := patientWriter{e: e}
	clock := time.NewTicker(d.Silence)
	defer clock.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-clock.C:
			_ = patient.beat() // a client that is gone ends the request's context too
		}
	}
}
