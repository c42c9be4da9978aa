// Clients that leave before their answer is whole.

package answer_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

// speaker is a connection that a test writes a request to by hand.
type speaker struct{ *net.TCPConn }

func speak(t *testing.T, url, request string) speaker {
	t.Helper()
	conn := hosttest.Must(net.Dial("tcp", strings.TrimPrefix(url, "http://")))(t)
	t.Cleanup(func() { conn.Close() })
	hosttest.Must(io.WriteString(conn, request))(t)
	return speaker{conn.(*net.TCPConn)}
}

// byHand is a request with a body.
func byHand(path, version, body string) string {
	return fmt.Sprintf("POST %s HTTP/%s\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", path, version, len(body), body)
}

// twoWords waits for goOn before and between its words.
func twoWords(goOn <-chan struct{}) sessiontest.Script {
	return func(session.Request) ([]session.Event, error) {
		return []session.Event{sessiontest.Pause{Until: goOn}, session.Answer{Text: "One, "},
			sessiontest.Pause{Until: goOn}, session.Answer{Text: "two."},
			sessiontest.Done(session.FinishStop)}, nil
	}
}

// A client that is gone is noticed before the answer's first byte and between two, also where only
// the half that it writes to was closed: a killed client sends no other packet.
func TestClosedClientHasLeft(t *testing.T) {
	for _, leave := range []func(speaker) error{speaker.Close, speaker.CloseWrite} {
		for _, body := range []string{`{"input":"x","stream":true}`, `{"input":"x"}`} {
			for _, version := range []string{"1.1", "1.0"} {
				goOn := make(chan struct{})
				srv, f := porttest.Server(t, twoWords(goOn))
				s := speak(t, srv.URL, byHand("/v1/responses", version, body))
				porttest.Eventually(t, func() (any, bool) { return nil, f.Active() == 1 })
				hosttest.Check(t, leave(s))
				porttest.Eventually(t, func() (any, bool) { return f.Active(), f.Active() == 0 })
			}
		}
		goOn := make(chan struct{})
		srv, f := porttest.Server(t, twoWords(goOn))
		s := speak(t, srv.URL, byHand("/v1/responses", "1.1", `{"input":"x","stream":true}`))
		goOn <- struct{}{}
		hosttest.Must(io.ReadFull(s, make([]byte, 400)))(t)
		hosttest.Check(t, leave(s))
		porttest.Eventually(t, func() (any, bool) { return f.Active(), f.Active() == 0 })
	}
}

// A request that was cut off is not taken for a whole one.
func TestCutRequestIsRefused(t *testing.T) {
	srv, _ := porttest.Server(t, sessiontest.Answers("ok"))
	s := speak(t, srv.URL, strings.Replace(byHand("/v1/responses", "1.1", `{"input":"x"}`),
		"Content-Length: 13", "Content-Length: 14", 1))
	hosttest.Check(t, s.CloseWrite())
	resp := hosttest.Must(http.ReadResponse(bufio.NewReader(s), nil))(t)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Error(resp.Status)
	}
}
