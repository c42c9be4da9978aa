package hub

// Trying again: which errors may go away, how long to wait, and when to stop. A byte that arrives
// starts the count anew.

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// longest is the longest wait between two tries that was not asked for by the server.
const longest = 30 * time.Second

// longestAsked is the longest wait that a server's Retry-After gets.
const longestAsked = 5 * time.Minute

// patience counts the tries of one request.
type patience struct {
	client *Client
	tries  int
}

// retry waits before the next try. It returns the error if it is permanent (without that mark), or
// if there were enough tries.
func (p *patience) retry(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if permanent, ok := errors.AsType[*permanentError](err); ok {
		return permanent.err
	}
	if untrusted(err) {
		return fmt.Errorf("%s cannot be reached: %s", p.client.host(), Cause(err))
	}
	if !transient(err) {
		return err
	}
	p.tries++
	if p.tries >= p.client.Attempts {
		return &UnreachableError{p.client.host(), p.tries, err}
	}
	wait := p.wait(err)
	if p.client.Retrying != nil {
		p.client.Retrying(err, p.tries, wait)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// wait is how long to wait after a try that failed: twice as long each time, between half and all
// of that, or what the server asked for.
func (p *patience) wait(err error) time.Duration {
	if status, ok := errors.AsType[*statusError](err); ok && status.after > 0 {
		return min(status.after, longestAsked)
	}
	wait := min(p.client.Backoff<<min(p.tries-1, 16), longest)
	return wait/2 + rand.N(wait/2+1)
}

// transient tells whether an error may go away by itself: everything about connections, and a
// server that is busy.
func transient(err error) bool {
	var protocol *ProtocolError
	var access *AccessError
	var missing *NotFoundError
	return !errors.Is(err, errOffline) && !errors.As(err, &protocol) &&
		!errors.As(err, &access) && !errors.As(err, &missing)
}

// untrusted tells whether it is the other side's TLS that was refused, which is the same next time.
func untrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate) || errors.Is(err, http.ErrSchemeMismatch)
}

// retry runs f until it works or its error is final.
func (c *Client) retry(ctx context.Context, f func() error) error {
	p := patience{client: c}
	for {
		err := f()
		if err == nil {
			return nil
		}
		if err := p.retry(ctx, err); err != nil {
			return err
		}
	}
}

// errStalled says that no byte came for too long.
var errStalled = errors.New("no byte arrived for too long")

// watched is a body whose every read must bring a byte in time.
type watched struct {
	body  io.Reader
	stall time.Duration
	timer *time.Timer
}

// watch watches a body; cancel must end its request.
func watch(body io.Reader, stall time.Duration, cancel context.CancelCauseFunc) *watched {
	return &watched{body, stall, time.AfterFunc(stall, func() { cancel(errStalled) })}
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	if n > 0 {
		w.timer.Reset(w.stall)
	}
	return n, err
}

func (w *watched) stop() { w.timer.Stop() }
