package openai_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/openai/answer/answertest"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/session"
)

// Large bodies are read a few at a time. One whose client does not read its answer keeps no place:
// another large body is answered meanwhile.
func TestAClientThatDoesNotReadDelaysNobody(t *testing.T) {
	srv, _ := porttest.Server(t, answertest.Answers("ok"))
	ids := strings.TrimSuffix(strings.Repeat("72056,", 130_000), ",") // each is a long text
	body := `{"tokens":[` + ids + `]` + strings.Repeat(" ", 1<<20) + `}`
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /detokenize HTTP/1.1\r\nHost: 127.0.0.1\r\n"+
		"Content-Length: %d\r\n\r\n%s", len(body), body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1024)); err != nil { // it is being answered
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // until nothing more fits between the two
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	r, _ := http.NewRequestWithContext(ctx, "POST", srv.URL+"/tokenize", strings.NewReader(
		`{"prompt":"`+strings.Repeat("a ", 50_000)+`"}`))
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
}

// The texts of all bodies are bounded together. A client that fills all of that with bodies that it
// does not end leaves room for another's.
func TestUnendedBodiesLeaveRoomForOthers(t *testing.T) {
	const most, each = 64 << 10, 16 << 10
	n := new(named)
	keyed := withKeys(t, n, session.NewStore())
	n.add(t, "holds", nil)
	n.add(t, "asks", nil)
	srv, _ := porttest.Server(t, answertest.Answers("ok"), keyed,
		func(o *openai.Options) { o.MaxTexts = most })
	for range most / each {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"+
			"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", n.keys["holds"], each+1,
			strings.Repeat(" ", each))
		if err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(300 * time.Millisecond) // until they have arrived
	if r := n.as(t, srv, "asks", "POST", "/v1/chat/completions",
		`{"messages":[`+porttest.Hello+`]}`); r.Status != http.StatusOK {
		t.Errorf("status %d: %s", r.Status, r.Body)
	}
}
