// A stream that a test reads event by event, as a client does.

package porttest

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

type openedStream struct{ lines *bufio.Reader }

// OpenStream posts a body, or gets the URL if there is none.
func OpenStream(t *testing.T, ctx context.Context, url, body string) *openedStream {
	t.Helper()
	method := "POST"
	if body == "" {
		method = "GET"
	}
	req := hosttest.Must(http.NewRequestWithContext(ctx, method, url, strings.NewReader(body)))(t)
	resp := hosttest.Must(http.DefaultClient.Do(req))(t)
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("status %d: %s", resp.StatusCode, b)
	}
	return &openedStream{bufio.NewReader(resp.Body)}
}

// Next is the next event, past comments; its name is "" at the end of the stream.
func (s *openedStream) Next(t *testing.T) Event {
	t.Helper()
	for block := ""; ; {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return Event{}
		}
		if block += line; line != "\n" {
			continue
		}
		list := hosttest.Must(ParseEvents(block))(t)
		if len(list) == 1 {
			return list[0]
		}
		block = ""
	}
}

// Rest reads to the end.
func (s *openedStream) Rest(t *testing.T) (list []Event) {
	t.Helper()
	for e := s.Next(t); e.Name != ""; e = s.Next(t) {
		list = append(list, e)
	}
	return list
}
