// The readiness of ossrun serve, and its listener while no model is on this machine yet.
//
// What must stay true: from the moment when the port is open, every connection is answered; the
// status names the work that is being done, and how far it is.

package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/runtime/openai"
	"github.com/ossrun/ossrun/runtime/process"
	"github.com/ossrun/ossrun/runtime/remote/local"
	"github.com/ossrun/ossrun/runtime/session"
)

// front is the HTTP server. Until its handler is set, it reports the status.
type front struct {
	http    *http.Server
	handler atomic.Pointer[openai.Handler]
	failed  chan error // how Serve ended
}

func (v *serveVerb) openFront(secure *tls.Config) *front {
	f := &front{failed: make(chan error, 1)}
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
			f.failed <- f.http.ServeTLS(v.listener, "", "")
		} else {
			f.failed <- f.http.Serve(v.listener)
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

// fetch is fetchNamed with a socket, so that ossrun ps lists the download and ossrun stop ends it.
func (v *serveVerb) fetch(ctx context.Context, name string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	v.work.Store("looking for " + name)
	defer v.openSocket(fetcher{v, func() { v.stopped.Store(true); cancel() }})()
	return fetchNamed(v.c, v.terminal, v.downloaded)(ctx, name)
}

// fetcher is a server whose model is being downloaded. It lists no models, so no chat joins it.
type fetcher struct {
	*serveVerb
	cancel func()
}

func (f fetcher) Status() local.Status {
	return local.Status{Protocol: local.Protocol, Version: build().Version, PID: os.Getpid(),
		URL: f.url(), State: local.Loading, Work: f.loading().Error(), Started: f.start,
		Models: []local.Model{}}
}

func (f fetcher) Get(context.Context, string) (session.Runner, error) { return nil, f.loading() }

func (f fetcher) Stop(bool) { f.cancel() }

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
