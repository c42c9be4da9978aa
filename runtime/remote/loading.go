// A server that loads its model is waited for. Ours says how far it is at /health, llama.cpp that
// it loads; both with 503.
//
// What must stay true: only a server whose health says 503 is waited for, so that one that cannot
// answer for another reason is an error at once; the wait ends with its context.

package remote

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/ossrun/ossrun/runtime/remote/client"
)

// How often a loading server is asked, and the wait is reported.
const (
	betweenLooks   = time.Second
	betweenReports = 10 * time.Second
)

// loads tells whether an error, of any request, is that of a server that is not ready, and why.
func loads(err error) (why string, is bool) {
	e, refused := errors.AsType[*client.Error](err)
	if !refused || e.Status != http.StatusServiceUnavailable {
		return "", false
	}
	return e.Message, true
}

// waitUntilLoaded returns when the server's health is not 503, and reports the wait.
func (p *Port) waitUntilLoaded(ctx context.Context) (waited bool) {
	var reported time.Time
	for {
		look, cancel := context.WithTimeout(ctx, checkTimeout)
		why, loading := loads(p.client.Call(look, http.MethodGet, "/health", nil, nil))
		cancel()
		if !loading {
			return waited
		}
		if now := time.Now(); now.Sub(reported) >= betweenReports {
			reported = now
			p.report("waiting for " + p.client.Root() + ": " + why)
		}
		waited = true
		select {
		case <-time.After(betweenLooks):
		case <-ctx.Done():
			return waited
		}
	}
}
