// What answers of several turns have in common: starting the turns, what their ends mean, how a stream ends.
//
// What must stay true: every turn that was started is followed to its end and counted once; a stream ends in data: [DONE]
// whatever happens, unless its client is gone.

package openai

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/ossrun/ossrun/runtime/session"
)

// turnsAnswer is the part of an answer that does not depend on its form.
type turnsAnswer struct {
	port    *port
	runner  session.Runner
	w       http.ResponseWriter
	ctx     context.Context    // the client's
	cancel  context.CancelFunc // ends the turns
	history string             // the request's field that holds what was said before, for errors
	id      string
	created int64
	model   string
	ends    []*ending    // of every turn
	out     *eventStream // nil: not streamed
}

// ending is how a turn ended; nil while it runs.
type ending struct{ done *session.Done }

// startTurns starts a turn for each request. If one cannot start, none goes on.
func startTurns(ctx context.Context, cancel context.CancelFunc, runner session.Runner, requests []session.Request) ([]session.Turn, error) {
	var turns []session.Turn
	for _, r := range requests {
		t, err := runner.Start(ctx, r)
		if err != nil {
			cancel()
			for _, t := range turns {
				for _, ok := t.Next(); ok; _, ok = t.Next() {
				}
			}
			return nil, err
		}
		turns = append(turns, t)
	}
	return turns, nil
}

// fault is why the request failed as a whole, nil if it did not.
func (r *turnsAnswer) fault() *fault {
	for _, e := range r.ends {
		if f := failure(r.ctx, e.done, r.history); f != nil {
			return f
		}
	}
	return nil
}

// finish counts the turns and returns the usage of all of them: add brings a turn's to that of the turns before it.
func (r *turnsAnswer) finish(add func(all, u session.Usage, turn int) session.Usage) session.Usage {
	var all session.Usage
	for i, e := range r.ends {
		if e.done == nil { // a turn that broke its promise to end in Done
			e.done = &session.Done{Finish: session.FinishError}
		}
		all = add(all, e.done.Usage, i)
		r.port.metrics.finished(r.runner.ID(), *e.done)
	}
	noteUsage(r.w, all)
	return all
}

// end closes a stream: with the fault, or with the chunk that holds the usage where that was asked for. err is the client's being gone.
func (r *turnsAnswer) end(err error, usage session.Usage, wanted bool, chunk func(usage json.RawMessage) any) {
	if err != nil {
		noteError(r.w, err.Error())
		return
	}
	if f := r.fault(); f != nil {
		noteError(r.w, f.message)
		r.out.event("", f.body())
	} else if wanted {
		u, _ := marshal(wireUsage(usage)) // integers only: it cannot fail
		r.out.event("", chunk(u))
	}
	r.out.line("[DONE]")
	_ = r.out.flush() // the last write: nothing is left to cancel
}

// failure is what a turn's end means for the request with the context ctx, nil for a good one.
func failure(ctx context.Context, d *session.Done, history string) *fault {
	switch d.Finish {
	case session.FinishError:
		if d.Err == nil {
			return &fault{status: http.StatusInternalServerError, kind: kindServer, code: kindServer, message: "the model failed"}
		}
		return faultOf(d.Err, history)
	case session.FinishCancelled:
		if ctx.Err() != nil {
			return faultOf(context.Canceled, history)
		}
		return &fault{status: http.StatusServiceUnavailable, kind: kindServer, code: kindServer, message: "the request was cancelled by the server"}
	}
	return nil
}

// unavailable is the fault of a model that cannot be had.
func unavailable(err error) *fault {
	f := faultOf(err, "")
	if f.status == http.StatusInternalServerError {
		f.status = http.StatusServiceUnavailable
	}
	return f
}

// echo is the model's name in the answer: the one the client used.
func echo(name string, r session.Runner) string {
	if name != "" {
		return name
	}
	return r.ID()
}
