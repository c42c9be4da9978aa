// Answers that go on without a client: one that has left, or one of an earlier process.

package openai

import (
	"context"
	"net/http"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) WriteHeader(int)             {}

// detach lets the answer outlive its request, whose own answer is now written to client.
func (a *answer) detach(r *http.Request) (client *exchange) {
	client = a.exchange
	a.ctx, a.cancel = context.WithCancel(context.WithoutCancel(r.Context()))
	a.exchange = newExchange(nowhere{}, client.id, client.faultBody)
	a.exchange.released, client.released = client.released, func() {}
	return client
}

// detached is an answer that has no client from the beginning.
func (d *driver) detached(req *request, f form, id string) (*answer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	runner, err := d.Models.Get(ctx, req.model)
	if err != nil {
		cancel()
		return nil, err
	}
	return &answer{req: req, form: f, driver: d, runner: runner, ctx: ctx, cancel: cancel,
		exchange: newExchange(nowhere{}, id, openaiFault), dones: make([]*session.Done, 1)}, nil
}

// runDetached starts the turns and follows them to their end. r is for the log line.
func (a *answer) runDetached(r *http.Request) {
	began := time.Now()
	defer func() {
		a.cancel()
		a.exchange.released()
		a.driver.logLine(r, a.exchange, time.Since(began))
	}()
	a.exchange.status = http.StatusOK
	if err := a.startTurns(a.ctx); err != nil {
		f := faultOf(err, a.req.history)
		a.turns = nil
		a.exchange.fault = f.message
		a.form.end(session.Usage{}, f)
		return
	}
	a.run()
}
