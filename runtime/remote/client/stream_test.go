package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func stream(r io.Reader) *Stream { return NewStream(io.NopCloser(r)) }

// all reads a stream to its end.
func all(s *Stream) (list []string, err error) {
	for {
		e, err := s.Next()
		if err != nil {
			return list, err
		}
		list = append(list, e.Name+"|"+string(e.Data))
	}
}

func TestStream(t *testing.T) {
	for in, want := range map[string]string{
		"data: a\n\ndata: b\n\ndata: [DONE]\n\ndata: c\n\n": "|a |b [DONE]",
		"event: x\ndata: 1\ndata:2\n\n":                     "x|1\n2",
		"event: x\n\ndata: 1\n\n":                           "|1", // a name without data names nothing
		"\n\n: comment\nid: 7\nretry: 3\ndata\n\n":          "|",
		"data: a\r\n\r\ndata: b\r\rdata: c\n\n":             "|a |b |c",
		"data: lost":                                        "",
		"data: lost\n":                                      "",
		"data:  two spaces\n\n":                             "| two spaces",
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(in),
			"by bytes": iotest.OneByteReader(strings.NewReader(in))} {
			s := stream(r)
			list, err := all(s)
			got := strings.Join(list, " ")
			if s.Complete() {
				got += " [DONE]"
			}
			if got != want || err != io.EOF {
				t.Errorf("%q %s: %q, %v, not %q", in, name, got, err, want)
			}
		}
	}
}

func TestStreamErrors(t *testing.T) {
	for in, want := range map[string]string{
		"data: {\"error\":{\"message\":\"no memory\",\"code\":500}}\n\n": "no memory",
		"event: error\ndata: {\"message\":\"busy\"}\n\n":                 "busy",
		"event: error\ndata: what?\n\n":                                  "what?",
	} {
		s := stream(strings.NewReader("data: 1\n\n" + in + "data: 2\n\n"))
		list, err := all(s)
		var e *Error
		if len(list) != 1 || !errors.As(err, &e) || e.Message != want {
			t.Errorf("%q: %q, %v", in, list, err)
		}
		if _, again := s.Next(); again != err {
			t.Errorf("%q: after its end %v", in, again)
		}
	}
	endless := io.MultiReader(strings.NewReader("data: "), zeros{})
	if _, err := stream(endless).Next(); err == nil || !strings.Contains(err.Error(), "64 MiB") {
		t.Error(err)
	}
	lines := io.MultiReader(strings.NewReader("data: x\n"), &repeat{text: []byte("data: xxxxxxxxxxxx\n")})
	if _, err := stream(lines).Next(); err == nil || !strings.Contains(err.Error(), "64 MiB") {
		t.Error(err)
	}
	cut := io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(io.ErrUnexpectedEOF))
	if list, err := all(stream(cut)); len(list) != 1 || err != io.ErrUnexpectedEOF {
		t.Error(list, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// repeat is a text without end.
type repeat struct {
	text []byte
	at   int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

// FuzzStream: however the bytes come, the events are the same, and they are those of the plain
// reading of the standard.
func FuzzStream(f *testing.F) {
	f.Add([]byte("event: x\r\ndata: 1\rdata: 2\n\ndata: [DONE]\n\n"), uint8(3))
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		whole, err := all(stream(bytes.NewReader(in)))
		parts, err2 := all(stream(bufio.NewReaderSize(
			&small{bytes.NewReader(in), int(size%7) + 1}, 16)))
		if strings.Join(whole, "\x00") != strings.Join(parts, "\x00") ||
			(err == io.EOF) != (err2 == io.EOF) {
			t.Fatalf("whole %q %v, in parts %q %v", whole, err, parts, err2)
		}
		if err == io.EOF {
			if plain := plainEvents(string(in)); strings.Join(whole, "\x00") !=
				strings.Join(plain, "\x00") {
				t.Fatalf("%q, plainly %q", whole, plain)
			}
		}
	})
}

// small reads a few bytes at a time.
type small struct {
	r io.Reader
	n int
}

func (s *small) Read(p []byte) (int, error) { return s.r.Read(p[:min(len(p), s.n)]) }

// plainEvents is the reading of a text that is there as a whole.
func plainEvents(in string) (list []string) {
	in = strings.ReplaceAll(strings.ReplaceAll(in, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(in, "\n")
	var name string
	var data []string
	for _, line := range lines[:len(lines)-1] {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if data != nil {
				text := strings.Join(data, "\n")
				if text == "[DONE]" {
					return list
				}
				list = append(list, name+"|"+text)
			}
			name, data = "", nil
		case field == "event":
			name = value
		case field == "data":
			data = append(data, value)
		}
	}
	return list
}

func BenchmarkStream(b *testing.B) {
	const event = `data: {"id":"cmpl-1","object":"text_completion","created":1,"model":"m",` +
		`"choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null}]}` + "\n\n"
	s := stream(&repeat{text: []byte(event)})
	b.SetBytes(int64(len(event)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Next(); err != nil {
			b.Fatal(err)
		}
	}
}
