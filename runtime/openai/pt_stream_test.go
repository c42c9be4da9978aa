// A stream that a test reads event by event, as a client does.

package openai

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

type openedStream struct{ lines *bufio.Reader }

// openStream posts a body, or gets the URL if there is none.
func openStream(t *testing.T, ctx context.Context, url, body string) *openedStream {
	t.Helper()
	method := "POST"
	if body == "" {
		method = "GET"
	}
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("status %d: %s", resp.StatusCode, b)
	}
	return &openedStream{bufio.NewReader(resp.Body)}
}

// next is the next event, past comments; its name is "" at the end of the stream.
func (s *openedStream) next(t *testing.T) event {
	t.Helper()
	for block := ""; ; {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return event{}
		}
		if block += line; line != "\n" {
			continue
		}
		list, err := parseEvents(block)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 1 {
			return list[0]
		}
		block = ""
	}
}

// rest reads to the end.
func (s *openedStream) rest(t *testing.T) (list []event) {
	t.Helper()
	for e := s.next(t); e.name != ""; e = s.next(t) {
		list = append(list, e)
	}
	return list
}
