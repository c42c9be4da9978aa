package hub

// Retries: which errors are transient, how long to wait, and when to stop. Each byte received
// resets the count.

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// maxBackoff is the longest wait that the server has not asked for.
const maxBackoff = 30 * time.Second

// maxRetryAfter is the longest wait for a server's Retry-After.
const maxRetryAfter = 5 * time.Minute

// backoff counts the tries of one request.
type backoff struct {
	client   *Client
	attempts int
}

// retry waits before the next try. It returns the error if it is permanent (unwrapped), or after
// too many tries.
func (p *backoff) retry(ctx context.Context, err error) error {
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
	p.attempts++
	_, unknown := errors.AsType[*net.DNSError](err) // waiting does not bring a network
	if reached := p.client.isReached.Load(); p.attempts >= p.client.Attempts ||
		!reached && (unknown || p.attempts >= firstAttempts) {
		return &UnreachableError{p.client.host(), p.attempts, err}
	}
	wait := p.wait(err)
	if p.client.Retrying != nil {
		p.client.Retrying(err, p.attempts, wait)
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(wait):
		return nil
	}
}

// wait is the wait after a failed try: doubled each time with jitter from half to all of it, or the
// server's Retry-After.
func (p *backoff) wait(err error) time.Duration {
	if status, ok := errors.AsType[*statusError](err); ok && status.retryAfter > 0 {
		return min(status.retryAfter, maxRetryAfter)
	}
	wait := min(p.client.Backoff<<min(p.attempts-1, 16), maxBackoff)
	return wait/2 + rand.N(wait/2+1)
}

// transient reports whether an error may go away: all connection errors, and a busy server.
func transient(err error) bool {
	var protocol *ProtocolError
	var access *AccessError
	var missing *NotFoundError
	return !errors.Is(err, errOffline) && !errors.As(err, &protocol) &&
		!errors.As(err, &access) && !errors.As(err, &missing)
}

// untrusted reports whether the other side's TLS was refused, which will not change.
func untrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate) || errors.Is(err, http.ErrSchemeMismatch)
}

// retry runs f until it succeeds or its error is final.
func (c *Client) retry(ctx context.Context, f func() error) error {
	p := backoff{client: c}
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

// errStalled reports that no byte arrived in time.
var errStalled = errors.New("no byte arrived for too long")

// idleTimeoutBody is a body with a timeout for every read.
type idleTimeoutBody struct {
	body  io.Reader
	stall time.Duration
	timer *time.Timer
}

// withIdleTimeout adds a timeout to a body; cancel must end its request.
func withIdleTimeout(body io.Reader, stall time.Duration,
	cancel context.CancelCauseFunc) *idleTimeoutBody {
	return &idleTimeoutBody{body, stall, time.AfterFunc(stall, func() { cancel(errStalled) })}
}

func (w *idleTimeoutBody) Read(p []byte) (int, error) {
	n, err := w.body.Read(p)
	if n > 0 {
		w.timer.Reset(w.stall)
	}
	return n, err
}

func (w *idleTimeoutBody) stop() { w.timer.Stop() }
