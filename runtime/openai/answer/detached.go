// Answers that run without a client, which has disconnected or belongs to an earlier process.

package answer

import (
	"context"
	"net/http"
	"time"

	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/session"
)

type discardWriter struct{}

func (discardWriter) Header() http.Header         { return http.Header{} }
func (discardWriter) Write(b []byte) (int, error) { return len(b), nil }
func (discardWriter) WriteHeader(int)             {}

// Detach lets the answer outlive its request, whose own answer is now written to client.
func (a *Answer) Detach(r *http.Request) (client *Exchange) {
	client = a.Exchange
	a.ctx, a.Cancel = context.WithCancel(context.WithoutCancel(r.Context()))
	a.Exchange = NewExchange(discardWriter{}, client.ID, client.faultBody)
	a.Exchange.Client, a.Exchange.Key = client.Client, client.Key
	a.Exchange.Released, client.Released = client.Released, func() {}
	return client
}

// NewDetached is an answer that never had a client.
func (d *Driver) NewDetached(req *Request, f Form, id string) (*Answer, error) {
	ctx, cancel := context.WithCancel(context.Background())
	runner, err := d.Models.Get(ctx, req.Model)
	if err != nil {
		cancel()
		return nil, err
	}
	return &Answer{Request: req, form: f, Driver: d, Runner: runner, ctx: ctx, Cancel: cancel,
		Exchange: NewExchange(discardWriter{}, id, fields.OpenAIFault),
		Dones:    make([]*session.Done, 1)}, nil
}

// RunDetached starts the turns and follows them to their end. r is for the log line.
func (a *Answer) RunDetached(r *http.Request) {
	began := time.Now()
	defer func() {
		a.Cancel()
		a.Exchange.Released()
		a.Driver.LogRequest(r, a.Exchange, time.Since(began))
	}()
	a.Exchange.Status = http.StatusOK
	if err := a.startTurns(a.ctx); err != nil {
		f := fields.FaultOf(err, a.Request.History)
		a.Turns = nil
		a.Exchange.Fault = f.Message
		a.form.End(session.Usage{}, f)
		return
	}
	a.run()
}
