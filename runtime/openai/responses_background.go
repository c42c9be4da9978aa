// background: true. The response runs on without its client, who polls it, follows its events, or
// cancels it.
//
// What must stay true: a response whose id a client has is in the store from that moment on, and
// comes to an end there whatever happens to this process; a cancelled or deleted one is not written
// again.

package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

// job is a response that runs in the background.
type job struct {
	log    *eventLog
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended and is stored

	owner string // of the lease
	lost  bool   // another process has taken it over
	kept  time.Time
	took  time.Duration                   // how long storing it took
	body  atomic.Pointer[json.RawMessage] // the response as it is now
}

func newJob(log *eventLog, cancel context.CancelFunc) *job {
	return &job{log: log, cancel: cancel, done: make(chan struct{}), owner: newID("")}
}

// jobs are those of this process, by the ids of their responses.
type jobs struct{ sync.Map }

func (j *jobs) get(id string) *job {
	b, _ := j.Load(id)
	job, _ := b.(*job)
	return job
}

func (b *job) now() json.RawMessage { return *b.body.Load() }

// stop ends the job and returns when it is stored.
func (b *job) stop() {
	b.cancel()
	<-b.done
}

// background starts a response that outlives its request and answers the request.
func (r *responsesForm) background(a *answer, req *http.Request) {
	p, client := a.port, a.exchange
	ctx, cancel := context.WithCancel(context.WithoutCancel(req.Context()))
	a.ctx, a.cancel = ctx, cancel
	a.exchange = &exchange{ResponseWriter: nowhere{}, path: client.path, id: client.id,
		released: client.released}
	client.released = func() {}
	r.job = newJob(r.log, cancel)
	r.log.hold()
	r.queue(a)
	queued := r.job.now()
	go r.runAlone(ctx, req)
	if a.req.stream {
		p.watch(client, req, r.log, -1)
		return
	}
	writeJSON(client, http.StatusOK, queued)
}

// queue begins the response as a job.
func (r *responsesForm) queue(a *answer) {
	a.quiet = r.keepRunning
	r.begin(a)
	r.sendResponse("response.queued")
	a.port.jobs.Store(r.response.ID, r.job)
	_ = r.keepRunning()
}

// runAlone runs the job in a goroutine of its own.
func (r *responsesForm) runAlone(ctx context.Context, req *http.Request) {
	a, began := r.answer, time.Now()
	defer func() {
		if x := recover(); x != nil { // the store knows that it runs, and will know that it is lost
			a.port.Log.Error("a background response panicked", "id", r.response.ID, "panic", x,
				"stack", string(debug.Stack()))
		}
		a.cancel()
		a.exchange.released()
		a.port.jobs.Delete(r.response.ID)
		r.log.end()
		close(r.job.done)
		a.port.logLine(req, a.exchange, time.Since(began))
	}()
	a.exchange.status = http.StatusOK
	if err := a.startTurns(ctx); err != nil {
		f := faultOf(err, a.req.history)
		a.turns = nil
		a.exchange.fault = f.message
		r.end(session.Usage{}, f)
		return
	}
	a.run()
}

// keepEvery is how often a running response is stored, if storing is quick. Events are shown only
// once they are stored.
const keepEvery = 250 * time.Millisecond

// keepRunning stores the response so far, marked as running.
func (r *responsesForm) keepRunning() error {
	last, began := r.log.last(), time.Now()
	if r.job.lost || began.Sub(r.job.kept) < min(20*r.job.took, r.port.Silence/3) ||
		last == r.log.shown() && began.Sub(r.job.kept) < r.port.Silence/3 {
		return nil
	}
	until := began.Add(r.port.Silence)
	if !r.hold(until) {
		r.job.lost = true
		r.cancel()
		return nil
	}
	if err := r.keep(until, r.log); err != nil {
		r.port.Log.Error("a background response is not stored", "id", r.response.ID, "error", err)
	}
	r.log.release(last)
	r.job.kept, r.job.took = time.Now(), time.Since(began)
	return nil
}

// sampled is the tokens that another process can go on from.
func (r *responsesForm) sampled() []int32 {
	if len(r.turns) == 0 || r.req.turns[0].Params.Logprobs >= 0 {
		return nil
	}
	return session.Sampled(r.turns[0])
}

// watch streams a log from behind sequence number n until it ends or the client leaves.
func (p *port) watch(e *exchange, req *http.Request, log *eventLog, n int) {
	out := startEvents(e, func() {})
	_ = writeNow(e, nil) // the headers: the first event may be a long time off
	for {
		list, more := log.after(n)
		for _, event := range list {
			out.event(event.kind, event.body)
			n = event.sequence
		}
		if out.flush() != nil || more == nil {
			return
		}
		silence := time.NewTimer(p.Silence)
		select {
		case <-more:
		case <-silence.C:
			out.comment("still running")
		case <-req.Context().Done():
		}
		silence.Stop()
		if req.Context().Err() != nil {
			return
		}
	}
}

// nowhere is the client of a background response.
type nowhere struct{}

func (nowhere) Header() http.Header         { return http.Header{} }
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (nowhere) WriteHeader(int)             {}
