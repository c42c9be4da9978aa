package openai

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/session"
)

// A client that closes its writing half has left: its FIN is that of a killed one, and only a write
// could tell them apart, which a turn that is still reading its prompt has no words for. What runs
// in the background goes on.
func TestHalfClosedClientHasLeft(t *testing.T) {
	goOn := make(chan struct{})
	srv, f := server(t, func(session.Request) ([]session.Event, error) {
		return []session.Event{session.Answer{Text: "One, "}, pause{until: goOn},
			session.Answer{Text: "two."}, done(session.FinishStop)}, nil
	})
	open := func(body string) (*net.TCPConn, io.ReadCloser) {
		t.Helper()
		conn, err := net.Dial("tcp", strings.TrimPrefix(srv.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := fmt.Fprintf(conn, "POST /v1/responses HTTP/1.1\r\nHost: localhost\r\n"+
			"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body),
			body); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		return conn.(*net.TCPConn), resp.Body
	}
	conn, stream := open(`{"input":"x","stream":true}`)
	first := make([]byte, 20)
	if _, err := io.ReadFull(stream, first); err != nil || f.active() != 1 {
		t.Fatalf("%q, %v, %d turns", first, err, f.active())
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() (any, bool) { return f.active(), f.active() == 0 })

	conn, queued := open(`{"input":"x","background":true}`)
	line, err := bufio.NewReader(queued).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	id := decode(t, line)["id"].(string)
	if m := ended(t, srv, id); m["status"] != "completed" {
		t.Errorf("%v", m)
	}
}
