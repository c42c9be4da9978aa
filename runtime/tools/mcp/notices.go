// Notices of a server: the progress of a call, and changes of its list of tools.
//
// What must stay true: an overlong notice is cut; a call's notices are dropped after its end; a
// server that cannot keep a notice stream open works without one.

package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxNotice   = 500      // characters of one line of progress
	maxProgress = 64 << 10 // bytes of all lines of a call
)

// progress passes on the notices of the running call; a connection runs one at a time.
type progress struct {
	mu        sync.Mutex
	output    func(string) // nil while no call runs
	token     int          // of the call
	remaining int          // bytes still allowed
}

// start passes on the progress of a call with this token until done is called.
func (p *progress) start(output func(string)) (token int, done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.output, p.remaining = output, maxProgress
	p.token++
	return p.token, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.output = nil
	}
}

func (p *progress) report(n *sdk.ProgressNotificationParams) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.output == nil || fmt.Sprint(n.ProgressToken) != fmt.Sprint(p.token) {
		return
	}
	text := progressLine(n)
	if p.remaining -= len(text); p.remaining >= 0 {
		p.output(text)
	}
}

// progressLine formats a notice: "copying files (3 of 10)".
func progressLine(n *sdk.ProgressNotificationParams) string {
	amount := fmt.Sprintf("%.6g", n.Progress)
	if n.Total > 0 {
		amount += fmt.Sprintf(" of %.6g", n.Total)
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(n.Message, "\ufffd")), " ")
	text = truncate(text, maxNotice, "...")
	if text != "" {
		amount = "(" + amount + ")"
	}
	return strings.TrimSpace(text+" "+amount) + "\n"
}

// noticeStream gives the SDK a notice stream that opens at once and never ends by itself. A
// streamable HTTP server may have none, answer late, or end it, which the SDK takes for the end of
// the session.
type noticeStream struct{ http.RoundTripper }

// noticeRetry is the delay before an ended stream is opened again.
const noticeRetry = 5 * time.Second

func (s noticeStream) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet || r.Header.Get("Last-Event-ID") != "" {
		return s.RoundTripper.RoundTrip(r)
	}
	body, notices := io.Pipe()
	go func() {
		for s.copyNotices(r, notices) {
			select {
			case <-time.After(noticeRetry):
			case <-r.Context().Done():
			}
		}
		<-r.Context().Done()
		notices.CloseWithError(context.Cause(r.Context()))
	}()
	return &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: body, ContentLength: -1, Request: r}, nil
}

// copyNotices copies the server's stream until it ends and reports whether to open it again.
func (s noticeStream) copyNotices(r *http.Request, to io.Writer) bool {
	if r.Context().Err() != nil {
		return false
	}
	response, err := s.RoundTripper.RoundTrip(r)
	if err != nil {
		return true
	}
	defer response.Body.Close()
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if response.StatusCode != http.StatusOK || kind != "text/event-stream" {
		return false // the server has none
	}
	_, err = io.Copy(to, response.Body)
	return err == nil || r.Context().Err() == nil && !errors.Is(err, io.ErrClosedPipe)
}
