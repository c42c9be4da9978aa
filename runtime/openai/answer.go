// The answer driver: from a request that was read and checked to a whole answer or a stream.
//
// Every route that generates uses it. A route provides a request (which turns to start) and a form
// (how their events are written). The driver starts the turns, reads their events, keeps the
// connection alive, counts usage, and turns a failure into an error for the client. Another API
// needs only another form.
//
// What must stay true: every started turn is read to its end and counted once; an answer whose turn
// failed is never sent as a good one; a form is called from one goroutine.

package openai

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

// request is the part of a checked request that the driver needs.
type request struct {
	model string
	// standIn: a model that is not known is another maker's, and the default one replaces it
	standIn bool
	turns   []session.Request // one for each choice
	n       int               // choices of each prompt; they are neighbours in turns
	stream  bool
	dry     bool         // nothing is generated: the turns are not started
	unpaced bool         // tokens are sent as they come, however many streams are open
	history string       // the field that holds the prompt or conversation, for errors
	format  answerFormat // of the answer
	lines   bool         // a stream is lines of JSON, not events
	ids     bool         // show the tokens of prompt and answer
	// the client sent a prediction, and is told how much of it came
	predicted bool
	ignored   []string // parts of the request that have no effect
	loops     bool     // turns that repeat themselves go on
	start     starter  // nil: the turn is the runner's own
	// runs the answer so that it goes on when the client has left; nil: it ends with the client
	background func(a *answer, r *http.Request)
}

// starter starts a turn of a route that adds something to it.
type starter func(ctx context.Context, a *answer, r session.Request) (session.Turn, error)

// form writes one answer. If the answer is not streamed, its emit does nothing.
type form interface {
	// open is called first, once the turns run. It sends the first events of a stream.
	open(a *answer)
	// take writes an event of a choice. session.Done is the last one; answer.failureOf tells
	// whether the choice failed.
	take(choice int, e session.Event)
	// beat sends something harmless on a silent stream, so that the client does not give up.
	beat()
	// end sends the last events of a stream; f is why the request failed, nil if it did not.
	end(usage session.Usage, f *fault)
	// whole is the body of an answer that is not streamed.
	whole(usage session.Usage) any
}

// reader makes a request and its form from the body; what is wrong is complained about.
type reader func(o *object) (*request, form)

// answer is one answer while it is generated.
type answer struct {
	req      *request
	form     form
	driver   *driver
	runner   session.Runner
	exchange *exchange
	ctx      context.Context    // the client's
	cancel   context.CancelFunc // ends the turns
	turns    []session.Turn
	dones    []*session.Done // of each choice; nil while it runs
	created  int64           // seconds since 1970
	model    string          // as the client named it
	out      *eventStream    // nil: not streamed

	quiet func() error  // called every often while nothing comes; nil: what keeps the client
	often time.Duration // at most Options.Silence
}

func (d *driver) answering(read reader) handler {
	return d.reading(func(e *exchange, r *http.Request, body *object) (any, *fault) {
		return nil, d.answer(e, r, body, read)
	})
}

// answer returns a fault if it has not sent anything yet.
func (d *driver) answer(e *exchange, r *http.Request, body *object, read reader) *fault {
	req, form := read(body)
	if f := body.c.first; f != nil {
		return f
	}
	runner, err := d.modelOf(r.Context(), req)
	if err != nil {
		return unavailable(err)
	}
	for i := range req.turns {
		req.turns[i].AllowLoops = req.loops || d.AllowLoops
	}
	req.ignored = append(req.ignored, body.unread()...)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	a := &answer{req: req, form: form, driver: d, runner: runner, exchange: e,
		ctx: r.Context(), cancel: cancel, dones: make([]*session.Done, len(req.turns)),
		created: time.Now().Unix(), model: cmp.Or(req.model, runner.ID())}
	a.ignore(nil)
	e.parsed() // the rest is the session's work, which has its own gate
	if req.background != nil {
		req.background(a, r)
		return nil
	}
	relaxed := req.format.relaxed
	if !req.dry {
		if err := a.startTurns(ctx); err != nil {
			return faultOf(err, req.history)
		}
		e.prepared()
		relaxed = append(relaxed, a.turns[0].Result().Relaxed...)
	}
	e.relaxed = e.tell("X-Ossrun-Relaxed", strings.Join(relaxed, "; "))
	return a.run()
}

func (d *driver) modelOf(ctx context.Context, r *request) (session.Runner, error) {
	runner, err := d.Models.Get(ctx, r.model)
	if r.standIn && errors.Is(err, session.ErrUnknownModel) {
		return d.Models.Get(ctx, "")
	}
	return runner, err
}

// ignore tells the client what else of the request has no effect.
func (a *answer) ignore(more []string) {
	a.req.ignored = append(a.req.ignored, more...)
	slices.Sort(a.req.ignored)
	a.exchange.ignored = a.exchange.tell("X-Ossrun-Ignored",
		strings.Join(slices.Compact(slices.Clone(a.req.ignored)), ", "))
}

// startTurns starts a turn for each choice. If one cannot start, the others are cancelled.
func (a *answer) startTurns(ctx context.Context) error {
	start := a.req.start
	if start == nil {
		start = func(ctx context.Context, a *answer, r session.Request) (session.Turn, error) {
			return a.runner.Start(ctx, r)
		}
	}
	for _, r := range a.req.turns {
		t, err := start(ctx, a, r)
		if err != nil {
			a.cancel()
			for _, t := range a.turns {
				for _, ok := t.Next(); ok; _, ok = t.Next() {
				}
			}
			return err
		}
		a.turns = append(a.turns, t)
	}
	return nil
}

func (a *answer) run() *fault {
	patient := patientWriter{e: a.exchange}
	follow := follower{turns: a.turns, cancel: a.cancel, silence: a.driver.Silence, batch: a.take,
		quiet: patient.quiet, whole: true}
	switch {
	case a.quiet != nil:
		follow.quiet, follow.silence = a.quiet, min(a.driver.Silence, a.often)
	case a.req.stream:
		defer a.driver.pace.enter()()
		if a.req.lines {
			a.out = startLines(a.exchange, a.cancel)
		} else {
			a.out = startEvents(a.exchange, a.cancel)
		}
		follow.quiet, follow.whole = a.beat, false
		if !a.req.unpaced {
			follow.pace = a.driver.pace
		}
	}
	a.form.open(a)
	if a.req.dry {
		for i, r := range a.req.turns {
			a.event(i, session.Done{Finish: session.FinishLength,
				Usage: session.Usage{Prompt: len(r.Prompt)}})
		}
	}
	// if the client is gone already, this cancels the turns; they are still read to their end
	_ = a.flush()
	gone := follow.run()
	usage := a.count()
	failed := a.failed()
	switch {
	case gone != nil:
		a.exchange.fault = gone.Error()
	case failed != nil:
		a.exchange.fault = failed.message
	}
	if a.out != nil || a.req.background != nil {
		a.form.end(usage, failed)
		_ = a.flush() // the last write: nothing is left to cancel
		if a.out != nil {
			a.driver.count.streamed(a.runner.ID(), a.out.events, a.out.writes)
		}
		return nil
	}
	if gone == nil && failed == nil {
		if slices.ContainsFunc(a.dones, func(d *session.Done) bool {
			return d.Finish == session.FinishLoop
		}) {
			a.exchange.fault = a.exchange.tell("X-Ossrun-Loop", session.ErrLoop.Error())
		}
		writeJSON(a.exchange, http.StatusOK, a.form.whole(usage))
	}
	if gone != nil {
		return nil // nobody is left to read an answer
	}
	return failed
}

func (a *answer) take(batch []arrival) error {
	for _, e := range batch {
		a.event(e.choice, e.event)
	}
	return a.flush()
}

func (a *answer) event(choice int, e session.Event) {
	if d, ok := e.(session.Done); ok {
		a.dones[choice] = &d
	}
	a.form.take(choice, a.req.format.shown(e))
}

func (a *answer) beat() error {
	a.form.beat()
	return a.flush()
}

// emit adds an event to the stream; name "" leaves out the event line.
func (a *answer) emit(name string, v any) {
	if a.out != nil {
		a.out.event(name, v)
	}
}

func (a *answer) flush() error {
	if a.out == nil {
		return nil
	}
	return a.out.flush()
}

// count adds the turns to the metrics and returns the usage of all of them. The tokens of a prompt
// with several choices count once.
func (a *answer) count() (all session.Usage) {
	for choices := range slices.Chunk(a.dones, a.req.n) {
		var prompt, cached int
		for i, d := range choices {
			if d == nil { // the turn ended without Done, which is a bug
				d = &session.Done{Finish: session.FinishError}
				choices[i] = d
			}
			a.driver.count.finished(a.runner.ID(), *d)
			u := d.Usage
			prompt, cached = max(prompt, u.Prompt), max(cached, u.Cached)
			u.Prompt, u.Cached = 0, 0
			all = all.Plus(u)
		}
		all = all.Plus(session.Usage{Prompt: prompt, Cached: cached})
	}
	a.exchange.usage = all
	return all
}

// failed is why the request failed as a whole, nil if it did not.
func (a *answer) failed() *fault {
	for _, d := range a.dones {
		if f := a.failureOf(*d); f != nil {
			return f
		}
	}
	return nil
}

// failureOf is the fault of a turn that has failed, nil for one that has not.
func (a *answer) failureOf(d session.Done) *fault {
	switch d.Finish {
	case session.FinishError:
		if d.Err == nil {
			return failure(http.StatusInternalServerError, kindServer, "the model failed")
		}
		return faultOf(d.Err, a.req.history)
	case session.FinishCancelled:
		if a.ctx.Err() != nil {
			return faultOf(context.Canceled, a.req.history)
		}
		return failure(http.StatusServiceUnavailable, kindServer,
			"the request was cancelled by the server")
	}
	return nil
}

// rendered is the prompt of a request.
func (d *driver) rendered(ctx context.Context, req *request) ([]int32, *fault) {
	ids, err := session.Prompt(ctx, d.Store, req.turns[0])
	if err != nil {
		return nil, faultOf(err, req.history)
	}
	return ids, nil
}

// unavailable is the fault of a model that cannot be used.
func unavailable(err error) *fault {
	f := faultOf(err, "")
	if f.status == http.StatusInternalServerError {
		f.status = http.StatusServiceUnavailable
	}
	return f
}

func choices(r session.Request, n int) []session.Request {
	list := make([]session.Request, n)
	for i := range list {
		list[i] = r
		list[i].Params.Seed += uint64(i)
	}
	return list
}
