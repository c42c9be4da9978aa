// Package answer is the driver of every dialect: from a request that was read and checked to a
// complete answer or a stream. It also has the parts of answers that dialects share.
//
// A dialect provides a request (which turns to start) and a form (how their events are written).
// The driver starts the turns, reads their events, keeps the connection alive, counts usage, and
// turns a failure into an error for the client. Another API needs only another form.
//
// What must stay true: every started turn is read to its end and counted once; an answer whose turn
// failed is never sent as a good one; a form is called from one goroutine.
package answer

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/keys"
	"github.com/ossrun/ossrun/runtime/session"
)

// Request is the part of a checked request that the driver needs.
type Request struct {
	Model    string
	Turns    []session.Request // one for each choice
	N        int               // choices of each prompt, adjacent in Turns
	Stream   bool
	Progress bool   // of the prompt is streamed
	Dry      bool   // nothing is generated: the turns are not started
	Unpaced  bool   // without Options.Interval tokens are sent at once, whatever the load
	History  string // the field that holds the prompt or conversation, for errors
	NDJSON   bool   // a stream is lines of JSON, not events
	ShowIDs  bool   // show the tokens of prompt and answer
	Timings  bool   // llama.cpp's, in each chunk
	// a stream's chunks all have the usage so far
	ContinuousUsage bool
	// the client sent a prediction; usage reports how much of it matched
	Predicted  bool
	Ignored    []string // parts of the request that have no effect
	Relaxed    []string // schemas that are not enforced, and why
	AllowLoops bool     // turns that repeat themselves continue
	Start      Starter  // nil: the runner starts the turns
	// runs the answer even after the client has disconnected; nil: it ends with the client
	Background func(a *Answer, r *http.Request)
}

// Starter starts a turn of a route that wraps it.
type Starter func(ctx context.Context, a *Answer, r session.Request) (session.Turn, error)

// Form writes one answer. If the answer is not streamed, its emit does nothing.
type Form interface {
	// Open is called first, once the turns run. It sends the first events of a stream.
	Open(a *Answer)
	// Take writes an event of a choice. session.Done is the last one; Answer.FailureOf tells
	// whether the choice failed.
	Take(choice int, e session.Event)
	// Beat sends something harmless on a silent stream, so that the client does not give up.
	Beat()
	// End sends the last events of a stream; f is why the request failed, nil if it did not.
	End(usage session.Usage, f *fields.Fault)
	// Body is the body of an answer that is not streamed.
	Body(usage session.Usage) any
}

// Reader makes a request and its form from the body; faults are added to o.
type Reader func(o *fields.Object) (*Request, Form)

// Answer is one answer while it is generated.
type Answer struct {
	Request  *Request
	form     Form
	Driver   *Driver
	Runner   session.Runner
	Exchange *Exchange
	ctx      context.Context    // the client's
	Cancel   context.CancelFunc // ends the turns
	Turns    []session.Turn
	Dones    []*session.Done // of each choice; nil while it runs
	counts   *session.Counts // of the choice whose event is next, nil without Turn.Counts
	Created  int64           // seconds since 1970
	Model    string          // as the client named it
	out      *Stream         // nil: not streamed

	OnIdle       func() error  // called after each IdleInterval without events; nil: a heartbeat
	IdleInterval time.Duration // at most Options.Silence
}

// AnswerHandler is the handler of a route that generates.
func (d *Driver) AnswerHandler(read Reader) Handler {
	return d.BodyHandler(func(e *Exchange, r *http.Request, body *fields.Object) (any,
		*fields.Fault) {
		return nil, d.answer(e, r, body, read)
	})
}

// maxRelaxedHeader bounds the header about unenforced schemas: clients read at least 8 KiB.
const maxRelaxedHeader = 6000

// answer returns a fault if it has not sent anything yet.
func (d *Driver) answer(e *Exchange, r *http.Request, body *fields.Object,
	read Reader) *fields.Fault {
	req, form := read(body)
	if f := body.Fault(); f != nil {
		return f
	}
	if f := e.Admit(); f != nil {
		return f
	}
	e.endReading() // the rest waits for a model, or is the session's work, which has its own gate
	runner, err := d.FindModel(r.Context(), e, req.Model)
	if err != nil {
		return Unavailable(err)
	}
	for i := range req.Turns {
		req.Turns[i].Progress = req.Progress
		req.Turns[i].AllowLoops = req.AllowLoops || d.AllowLoops
		e.LimitCache(&req.Turns[i])
	}
	req.Ignored = slices.Concat(req.Ignored, body.Unread(), body.Notes())
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	a := &Answer{Request: req, form: form, Driver: d, Runner: runner, Exchange: e,
		ctx: r.Context(), Cancel: cancel, Dones: make([]*session.Done, len(req.Turns)),
		Created: time.Now().Unix(), Model: cmp.Or(req.Model, runner.ID())}
	a.Ignore(nil)
	if req.Background != nil {
		req.Background(a, r)
		return nil
	}
	relaxed := req.Relaxed
	if !req.Dry {
		if err := a.startTurns(ctx); err != nil {
			return fields.FaultOf(err, req.History)
		}
		e.EndPreparing()
		relaxed = append(relaxed, a.Turns[0].Result().Relaxed...)
	}
	e.relaxed = relaxed
	e.SetHeader("X-Ossrun-Relaxed",
		fields.Shorten(strings.Join(relaxed, "; "), maxRelaxedHeader))
	return a.run()
}

// Ignore reports further parts of the request without effect.
func (a *Answer) Ignore(names []string) {
	a.Request.Ignored = append(a.Request.Ignored, names...)
	slices.Sort(a.Request.Ignored)
	a.Exchange.ignored = slices.Compact(slices.Clone(a.Request.Ignored))
	a.Exchange.SetHeader("X-Ossrun-Ignored", fields.Brief(strings.Join(a.Exchange.ignored, ", ")))
}

// startTurns starts a turn for each choice. If one cannot start, the others are cancelled.
func (a *Answer) startTurns(ctx context.Context) error {
	start := a.Request.Start
	if start == nil {
		start = func(ctx context.Context, a *Answer, r session.Request) (session.Turn, error) {
			return a.Runner.Start(ctx, r)
		}
	}
	for _, r := range a.Request.Turns {
		t, err := start(ctx, a, r)
		if err != nil {
			a.Cancel()
			for _, t := range a.Turns {
				for _, ok := t.Next(); ok; _, ok = t.Next() {
				}
			}
			return err
		}
		a.Turns = append(a.Turns, t)
	}
	return nil
}

func (a *Answer) run() *fields.Fault {
	patient := patientWriter{e: a.Exchange}
	follow := follower{turns: a.Turns, cancel: a.Cancel, silence: a.Driver.Silence, batch: a.take,
		onIdle: patient.beat, notStreamed: true}
	dropped := false // the last events of a turn were dropped
	follow.dropped = func(choice int, d session.Done) { a.Dones[choice], dropped = &d, true }
	switch {
	case a.OnIdle != nil:
		follow.onIdle, follow.silence = a.OnIdle, min(a.Driver.Silence, a.IdleInterval)
	case a.Request.Stream:
		defer a.Driver.pace.enter()()
		if a.Request.NDJSON {
			a.out = StartLines(a.Exchange, a.Cancel)
		} else {
			a.out = StartEvents(a.Exchange, a.Cancel)
		}
		follow.onIdle, follow.notStreamed = a.beat, false
		if !a.Request.Unpaced || a.Driver.Interval > 0 {
			follow.pace = a.Driver.pace
		}
	}
	a.form.Open(a)
	if a.Request.Dry {
		for i, r := range a.Request.Turns {
			a.event(i, session.Done{Finish: session.FinishLength,
				Usage: session.Usage{Prompt: len(r.Prompt)}})
		}
	}
	// if the client is gone already, this cancels the turns; they are still read to their end
	_ = a.flush()
	writeErr := follow.run()
	usage := a.count()
	failed := a.failure()
	if dropped {
		failed = fields.FaultOf(context.Canceled, a.Request.History)
	}
	switch {
	case writeErr != nil:
		a.Exchange.Fault = fields.Failure(fields.StatusClientGone, "write_failed",
			writeErr.Error())
	case failed != nil:
		a.Exchange.Fault = failed
	}
	if a.out != nil || a.Request.Background != nil {
		a.form.End(usage, failed)
		_ = a.flush() // the last write: no turn is left to cancel
		if a.out != nil {
			a.Driver.Count.Streamed(a.Runner.ID(), a.out.events, a.out.writes)
		}
		return nil
	}
	if writeErr == nil && failed == nil {
		if slices.ContainsFunc(a.Dones, func(d *session.Done) bool {
			return d.Finish == session.FinishLoop
		}) {
			a.Exchange.Fault = fields.Failure(http.StatusOK, "loop", session.ErrLoop.Error())
			a.Exchange.SetHeader("X-Ossrun-Loop", session.ErrLoop.Error())
		}
		WriteJSON(a.Exchange, http.StatusOK, a.form.Body(usage))
	}
	if writeErr != nil {
		return nil // the client is gone
	}
	return failed
}

func (a *Answer) take(batch []arrival) error {
	for _, e := range batch {
		a.event(e.choice, e.event)
	}
	return a.flush()
}

func (a *Answer) event(choice int, e session.Event) {
	switch e := e.(type) {
	case session.Counts:
		a.counts = &e
		return
	case session.Done:
		a.Dones[choice], a.counts = &e, &session.Counts{Usage: e.Usage, Timing: e.Timing}
	}
	if c, ok := e.(session.Commentary); ok && a.Request.Turns[choice].Final != nil {
		e = session.Reasoning(c) // clients parse the whole text of an answer with a format
	}
	if p, ok := e.(session.Prefill); ok && p.Done < p.Total && a.out != nil && !a.out.lines {
		a.out.Comment(fmt.Sprintf("prefill %d/%d", p.Done, p.Total))
	}
	a.form.Take(choice, e)
}

func (a *Answer) beat() error {
	a.form.Beat()
	return a.flush()
}

// Emit adds an event to the stream; name "" omits the event line.
func (a *Answer) Emit(name string, v any) {
	if a.out != nil {
		a.out.Event(name, v)
	}
}

func (a *Answer) flush() error {
	if a.out == nil {
		return nil
	}
	return a.out.Flush()
}

// count adds the turns to the metrics and returns their total usage. The tokens of a prompt with
// several choices count once.
func (a *Answer) count() (all session.Usage) {
	for choices := range slices.Chunk(a.Dones, a.Request.N) {
		var prompt, cached int
		for i, d := range choices {
			if d == nil { // the turn ended without Done, which is a bug
				d = &session.Done{Finish: session.FinishError}
				choices[i] = d
			}
			a.Driver.Count.Finished(a.Runner.ID(), *d)
			u := d.Usage
			prompt, cached = max(prompt, u.Prompt), max(cached, u.Cached)
			u.Prompt, u.Cached = 0, 0
			all = all.Plus(u)
		}
		all = all.Plus(session.Usage{Prompt: prompt, Cached: cached})
	}
	a.Exchange.Usage = all
	return all
}

// failure returns the request's failure, nil if it succeeded.
func (a *Answer) failure() *fields.Fault {
	for _, d := range a.Dones {
		if f := a.FailureOf(*d); f != nil {
			return f
		}
	}
	return nil
}

// FailureOf returns the fault of a failed turn, nil for others.
func (a *Answer) FailureOf(d session.Done) *fields.Fault {
	switch d.Finish {
	case session.FinishError:
		if d.Err == nil {
			return fields.Failure(http.StatusInternalServerError, fields.KindServer,
				"the model failed")
		}
		return fields.FaultOf(d.Err, a.Request.History)
	case session.FinishCancelled:
		if a.ctx.Err() != nil {
			return fields.FaultOf(context.Cause(a.ctx), a.Request.History)
		}
		return fields.Failure(http.StatusServiceUnavailable, fields.KindServer,
			"the request was cancelled by the server")
	}
	return nil
}

func (d *Driver) RenderPrompt(ctx context.Context, e *Exchange, req *Request) ([]int32,
	*fields.Fault) {
	e.LimitCache(&req.Turns[0])
	ids, err := session.Prompt(ctx, d.Store, req.Turns[0])
	if err != nil {
		return nil, fields.FaultOf(err, req.History)
	}
	return ids, nil
}

// Unavailable is the fault of a model that cannot be used.
func Unavailable(err error) *fields.Fault {
	f := fields.FaultOf(err, "")
	if f.Status == http.StatusInternalServerError {
		f.Status = http.StatusServiceUnavailable
	}
	return f
}

type discardWriter struct{}

func (discardWriter) Header() http.Header         { return http.Header{} }
func (discardWriter) Write(b []byte) (int, error) { return len(b), nil }
func (discardWriter) WriteHeader(int)             {}

// Detach lets the answer outlive its request, whose own answer is now written to client.
func (a *Answer) Detach(r *http.Request) (client *Exchange) {
	client = a.Exchange
	a.ctx, a.Cancel = client.Key.Bind(context.WithoutCancel(r.Context()), ErrKeyRemoved)
	a.Exchange = NewExchange(discardWriter{}, client.ID, client.faultBody)
	a.Exchange.Client, a.Exchange.Key = client.Client, client.Key
	a.Exchange.budget, client.budget = client.budget, nil
	a.Exchange.Release, client.Release = client.Release, func() {}
	return client
}

// NewDetached is an answer that never had a client.
func (d *Driver) NewDetached(req *Request, f Form, id string, key *keys.Client) (*Answer, error) {
	ctx, cancel := key.Bind(context.Background(), ErrKeyRemoved)
	runner, err := d.FindModel(ctx, &Exchange{Key: key}, req.Model)
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
		a.Exchange.Release()
		a.Driver.LogRequest(r, a.Exchange, time.Since(began))
	}()
	a.Exchange.Status = http.StatusOK
	if err := a.startTurns(a.ctx); err != nil {
		f := fields.FaultOf(err, a.Request.History)
		a.Turns = nil
		a.Exchange.Fault = f
		a.form.End(session.Usage{}, f)
		return
	}
	a.run()
}
