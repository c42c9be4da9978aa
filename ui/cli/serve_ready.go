// The readiness of ossrun serve, and its listener while no model is on this machine yet.
//
// What must stay true: from the moment when the port is open, every connection is answered; the
// status names the work that is being done, and how far it is.

package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/process"
	"github.com/ossrun/ossrun/runtime/remote/local"
)

// front is the HTTP server. Until its handler is set, it reports the status.
type front struct {
	http    *http.Server
	secure  bool // TLS
	handler atomic.Pointer[openai.Handler]
	failed  chan error // how Serve ended
}

func (v *serveVerb) openFront(l net.Listener, secure *tls.Config) *front {
	f := &front{failed: make(chan error, 1), secure: secure != nil}
	loading := openai.Loading(v.loading)
	f.http = &http.Server{TLSConfig: secure,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if h := f.handler.Load(); h != nil {
				h.ServeHTTP(w, r)
				return
			}
			loading.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: 30 * time.Second, // runtime/openai bounds body and answer
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(v.log(v.terminal.Err).Handler(), slog.LevelWarn)}
	_ = process.NotePeers(f.http) // else the machine's programs are one client; doctor says so
	go func() {
		if secure != nil {
			f.failed <- f.http.ServeTLS(l, "", "")
		} else {
			f.failed <- f.http.Serve(l)
		}
	}()
	return f
}

func (s *server) ready() error {
	switch s.state.Load().(local.State) {
	case local.Loading:
		return s.loading()
	case local.Draining:
		return errors.New("draining: the server is about to stop")
	}
	return s.Models.Ready()
}

// loading is the status until the model is ready.
func (v *serveVerb) loading() error {
	if work, ok := v.work.Load().(string); ok {
		return errors.New(work)
	}
	return errors.New("loading the model")
}

// downloaded shows a download in the readiness status.
func (v *serveVerb) downloaded(name string, p hub.Progress) {
	v.work.Store(fmt.Sprintf("downloading %s, %s", name, howMuch(p)))
}

// withReadiness also shows the load's progress in the readiness status.
func (v *serveVerb) withReadiness(progress func(string) (func(done, total int64), func())) func(
	string) (func(done, total int64), func()) {
	return func(what string) (func(done, total int64), func()) {
		show, end := progress(what)
		return func(done, total int64) {
			v.work.Store(fmt.Sprintf("loading the model, %.1f of %.1f GB", gb(done), gb(total)))
			show(done, total)
		}, end
	}
}
