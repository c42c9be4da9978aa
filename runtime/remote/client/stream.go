// Server-sent events as the HTML standard defines them: the body of a streamed answer.

package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// maxEvent limits the bytes of an event: a final response repeats the whole conversation.
const maxEvent = 64 << 20

type Event struct {
	Name string // empty if the port names none
	Data []byte // valid until the next event is read
}

// Stream reads the events of one answer, in one goroutine.
type Stream struct {
	body io.Closer
	in   *bufio.Reader
	line []byte
	data []byte
	done bool
	err  error
}

func (c *Client) Stream(ctx context.Context, path string, body any) (*Stream, error) {
	answer, err := c.send(ctx, "POST", path, body)
	if err != nil {
		return nil, err
	}
	return NewStream(answer.Body), nil
}

func NewStream(body io.ReadCloser) *Stream {
	return &Stream{body: body, in: bufio.NewReaderSize(&lineFeeds{in: body}, 16<<10)}
}

// Close ends the stream, even if it was not read to its end.
func (s *Stream) Close() error { return s.body.Close() }

// Complete tells whether the port sent [DONE].
func (s *Stream) Complete() bool { return s.done }

// Next returns the next event that has data; io.EOF after the last. An event named "error", or
// whose data holds OpenAI's error body, is an *Error.
func (s *Stream) Next() (Event, error) {
	if s.err != nil {
		return Event{}, s.err
	}
	e, err := s.read()
	if err != nil {
		s.err = err
	}
	return e, err
}

func (s *Stream) read() (Event, error) {
	var name string
	s.data = s.data[:0]
	has := false
	for {
		line, err := s.readLine()
		if err != nil { // an unfinished event is dropped, as the standard says
			return Event{}, err
		}
		if len(line) == 0 {
			if !has {
				name = ""
				continue
			}
			break
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			if has {
				s.data = append(s.data, '\n')
			}
			has = true
			if len(s.data)+len(value) > maxEvent {
				return Event{}, tooLong()
			}
			s.data = append(s.data, value...)
		}
	}
	if string(s.data) == "[DONE]" {
		s.done = true
		return Event{}, io.EOF
	}
	if name == "error" || bytes.HasPrefix(s.data, []byte(`{"error":`)) {
		failed := &Error{Status: 200, shownURL: "the stream"}
		failed.fill(s.data)
		return Event{}, failed
	}
	return Event{name, s.data}, nil
}

func (s *Stream) readLine() ([]byte, error) {
	s.line = s.line[:0]
	for {
		chunk, err := s.in.ReadSlice('\n')
		if len(s.line)+len(chunk) > maxEvent {
			return nil, tooLong()
		}
		if err == nil && len(s.line) == 0 {
			return chunk[:len(chunk)-1], nil // the usual line, in place
		}
		s.line = append(s.line, chunk...)
		switch {
		case err == nil:
			return s.line[:len(s.line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// lineFeeds replaces the three line ends, CR, LF and both, by LF.
type lineFeeds struct {
	in      io.Reader
	afterCR bool
}

func (l *lineFeeds) Read(p []byte) (int, error) {
	for {
		n, err := l.in.Read(p)
		if !l.afterCR && bytes.IndexByte(p[:n], '\r') < 0 {
			return n, err
		}
		out := p[:0]
		for _, b := range p[:n] {
			switch {
			case b == '\n' && l.afterCR: // the CR was the end
			case b == '\r':
				out = append(out, '\n')
			default:
				out = append(out, b)
			}
			l.afterCR = b == '\r'
		}
		if len(out) > 0 || err != nil || len(p) == 0 {
			return len(out), err
		}
	}
}

func tooLong() error {
	return fmt.Errorf("an event of the stream is longer than %d MiB", maxEvent>>20)
}
