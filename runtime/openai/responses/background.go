// background: true. The response runs without its client, who polls it, follows its events, or
// cancels it; another process resumes it when its own has ended.
//
// While a response runs its record has the request and the tokens sampled so far. A small record of
// kind running is a lease with an expiry. After the expiry, the process that writes its
// own lease takes the response over: it starts the turn with the stored tokens, which repeat the
// same events, and continues. Deleting a response, in any process, deletes both records.
//
// What must stay true: once a client has a response's id the response is in the store, and it ends
// there even if this process crashes; a process that ends cleanly gives it up. Only one process
// writes it at a time. Events that a client may have read are in the store, so numbering continues.
// A response that cannot be resumed fails; a cancelled or deleted one is not written again.

package responses

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/openai/keys"
	"github.com/ossrun/ossrun/runtime/records"
)

type job struct {
	log    *eventLog
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended and is stored

	owner     string // of the lease
	leased    bool   // the lease was stored
	leaseLost bool   // another process has taken it over, or deleted it
	storedAt  time.Time
	storeTime time.Duration                   // duration of the last store
	body      atomic.Pointer[json.RawMessage] // the current response
}

func newJob(log *eventLog, cancel context.CancelFunc, owner string) *job {
	return &job{log: log, cancel: cancel, done: make(chan struct{}), owner: owner}
}

// jobs are those of this process, by the stored keys of their responses.
type jobs struct{ sync.Map }

func (j *jobs) get(id string) *job {
	b, _ := j.Load(id)
	job, _ := b.(*job)
	return job
}

func (b *job) current() json.RawMessage { return *b.body.Load() }

// job returns the job of a response, nil if it does not run here.
func (p *API) job(id string) *job {
	key := records.OwnedKey(p.owner, id)
	if owner, _ := records.OwnerOf(key); owner != p.owner {
		return nil
	}
	return p.jobs.get(key)
}

// stop ends the job and returns when it is stored.
func (b *job) stop() {
	b.cancel()
	<-b.done
}

// background starts a response that outlives its request and answers the request.
func (r *form) background(a *answer.Answer, req *http.Request) {
	client := a.Detach(req)
	r.job = newJob(r.log, a.Cancel, answer.NewID(""))
	r.log.hideUnstored()
	r.queue(a)
	queued := r.job.current()
	go r.runJob(req)
	if a.Request.Stream {
		r.api.watch(client, req, r.log, -1)
		return
	}
	answer.WriteJSON(client, http.StatusOK, queued)
}

// queue begins the response as a job.
func (r *form) queue(a *answer.Answer) {
	a.OnIdle, a.IdleInterval = r.storeRunning, storeInterval
	r.start(a)
	r.sendResponse("response.queued")
	r.api.jobs.Store(records.OwnedKey(r.api.owner, r.response.ID), r.job)
	_ = r.storeRunning()
	if _, ok := r.api.store.Get(records.KindRunning, r.response.ID); ok { // not with --remember 0
		r.job.leased = true
	}
}

// runJob runs the job to its end; its caller starts a goroutine for it.
func (r *form) runJob(req *http.Request) {
	defer func() {
		if x := recover(); x != nil { // the lease will expire, and the response then fails
			r.api.Log.Error("a background response panicked", "id", r.response.ID, "panic", x,
				"stack", string(debug.Stack()))
		}
		r.api.jobs.Delete(records.OwnedKey(r.api.owner, r.response.ID))
		r.log.end()
		close(r.job.done)
	}()
	r.Answer.RunDetached(req)
}

// storeInterval is the interval at which a running response is stored, if that is fast. Events are
// sent only after they are stored.
const storeInterval = 100 * time.Millisecond

// storeRunning stores the response so far, marked as running.
func (r *form) storeRunning() error {
	last, began := r.log.last(), time.Now()
	givenUp := r.isGivenUp() && len(r.sampled()) > 0 && r.req.resumable()
	pause := began.Sub(r.job.storedAt)
	if r.job.leaseLost || !givenUp && (pause < min(20*r.job.storeTime, r.api.Silence/3) ||
		last == r.log.lastStored() && pause < r.api.Silence/3) {
		return nil
	}
	until := began.Add(r.api.Silence)
	if givenUp {
		until = began
	}
	err := r.api.store.Change(func(c *records.Change) error {
		if !r.job.hasLease(c, r.response.ID) {
			return errLost
		}
		return errors.Join(r.job.renewLease(c, r.response.ID, until), r.put(c, until, r.log))
	})
	if errors.Is(err, errLost) || givenUp && err == nil && r.isGivenUp() {
		r.job.leaseLost = true
		r.Cancel()
		return nil
	}
	if err != nil {
		r.api.Log.Error("a background response is not stored", "id", r.response.ID, "error", err)
	}
	r.log.release(last)
	r.job.storedAt, r.job.storeTime = time.Now(), time.Since(began)
	return nil
}

// GiveUp announces the end of this process: batches and resumable responses are stored and ended
// here, the rest continue to run.
func (p *API) GiveUp() { p.ends.Store(true) }

// Await returns when no background response or batch runs here, or when ctx ends.
func (p *API) Await(ctx context.Context) {
	for _, all := range []*jobs{&p.jobs, &p.batches} {
		all.Range(func(_, b any) bool {
			select {
			case <-b.(*job).done:
			case <-ctx.Done():
			}
			return true
		})
	}
}

// isGivenUp tells whether this process ends and the next one will find the response.
func (r *form) isGivenUp() bool {
	return r.api.ends.Load() && r.api.store.Unsaved(records.KindResponse, r.response.ID) == nil
}

// resumable tells whether a response can be repeated from its tokens.
func (r *responseRequest) resumable() bool { return len(r.builtins) == 0 && r.compactAt == 0 }

// sampled returns the tokens from which another process can resume.
func (r *form) sampled() []int32 {
	if len(r.Turns) == 0 || r.req.Turns[0].Params.Logprobs >= 0 {
		return nil
	}
	return r.Turns[0].Sampled()
}

// watch streams a log after sequence number n until it ends or the client disconnects.
func (p *API) watch(e *answer.Exchange, req *http.Request, log *eventLog, n int) {
	out := answer.StartEvents(e, func() {})
	_ = answer.WriteNow(e, nil) // the headers: the first event may take long
	for {
		list, changed := log.eventsAfter(n)
		for _, event := range list {
			out.Event(event.kind, event.body)
			n = event.sequence
		}
		if out.Flush() != nil || changed == nil {
			return
		}
		silence := time.NewTimer(p.Silence)
		select {
		case <-changed:
		case <-silence.C:
			out.Comment("still running")
		case <-req.Context().Done():
		}
		silence.Stop()
		if req.Context().Err() != nil {
			return
		}
	}
}

// lease is the value of a record of kind running.
type lease struct {
	Owner string
	Until time.Time
}

// errLost says that another process has taken a response over, or deleted it.
var errLost = errors.New("another process has the response")

// hasLease tells whether this job still has the lease of the response.
func (b *job) hasLease(c *records.Change, id string) bool {
	var now lease
	record, ok := c.Get(records.KindRunning, id)
	return !b.leaseLost && (ok || !b.leased) &&
		(!ok || json.Unmarshal(record.Value, &now) != nil || now.Owner == b.owner)
}

func (b *job) renewLease(c *records.Change, id string, until time.Time) error {
	value, _ := answer.Marshal(lease{b.owner, until}) // our own type
	return c.Put(records.Record{Kind: records.KindRunning, Key: id, Value: value})
}

// TakeOver resumes the batches and background responses of ended processes, until ctx ends.
func (p *API) TakeOver(ctx context.Context) {
	clock := time.NewTicker(p.Silence / 3)
	defer clock.Stop()
	for {
		for _, record := range p.Store.List(records.KindRunning) {
			var left lease
			if json.Unmarshal(record.Value, &left) != nil || time.Now().Before(left.Until) ||
				p.jobs.get(record.Key) != nil || p.ends.Load() {
				continue
			}
			owner, id := records.OwnerOf(record.Key)
			if keys.IsID(owner) && p.Keys.Owner(owner) == nil {
				continue // its key was removed
			}
			if strings.Contains(id, "batch_") { // of either API
				p.forOwner(owner).startBatch(id)
			} else {
				p.forOwner(owner).resumeOrFail(id, record.Value)
			}
		}
		select {
		case <-clock.C:
		case <-ctx.Done():
			return
		}
	}
}

// resumeOrFail resumes a response, or ends it as failed. Only one process that finds the lease
// succeeds.
func (p *API) resumeOrFail(id string, leaseValue json.RawMessage) {
	b := job{owner: answer.NewID("")}
	var s storedResponse
	acquired := false
	if err := p.store.Change(func(c *records.Change) error {
		now, ok := c.Get(records.KindRunning, id)
		if !ok || !bytes.Equal(now.Value, leaseValue) {
			return nil
		}
		record, ok := c.Get(records.KindResponse, id)
		if !ok || json.Unmarshal(record.Value, &s) != nil || !s.running() {
			c.Delete(records.KindRunning, id)
			return nil
		}
		acquired = true
		return b.renewLease(c, id, time.Now().Add(p.Silence))
	}); err != nil || !acquired || p.resume(id, s, b.owner) || p.ends.Load() {
		return
	}
	s.fail()
	if err := p.store.Change(func(c *records.Change) error {
		if b.leased = true; !b.hasLease(c, id) {
			return nil
		}
		c.Delete(records.KindRunning, id)
		return putResponse(c, id, s)
	}); err != nil {
		p.Log.Error("a lost background response is not stored", "id", id, "error", err)
	}
}

func (p *API) resume(id string, s storedResponse, owner string) bool {
	if len(s.Tokens) == 0 || s.Log == nil {
		return false
	}
	o, f := fields.ParseObject(s.Request)
	if f != nil {
		return false
	}
	req := p.parse(o)
	if o.Fault() != nil || !req.resumable() {
		return false
	}
	var before struct {
		CreatedAt int64 `json:"created_at"`
		Model     string
	}
	_ = json.Unmarshal(s.Body, &before) // our own
	r := &form{api: p, req: req, log: s.Log.reopen(), request: s.Request}
	a, err := p.NewDetached(&req.Request, r, id, p.Keys.Owner(p.owner))
	if err != nil {
		return false
	}
	a.Created, a.Model = before.CreatedAt, before.Model
	a.Exchange.Client, a.Exchange.Key = p.owner, p.Keys.Owner(p.owner)
	r.replay = r.log.logged()
	r.sequence = r.log.last() + 1
	r.job = newJob(r.log, a.Cancel, owner)
	r.job.leased = true
	r.job.body.Store(&s.Body)
	req.Background = r.background
	req.Turns[0].AllowLoops = req.AllowLoops || p.AllowLoops
	a.Exchange.LimitCache(&req.Turns[0])
	req.Turns[0].Sampled, req.Turns[0].Salt = s.Tokens, s.Salt // with the client in it
	req.Turns[0].Pages.Add(s.Pages)
	req.response.ID = id
	r.queue(a)
	// for the log line; it is well-formed
	request, _ := http.NewRequest(http.MethodPost, "/v1/responses", nil)
	request.Pattern = request.URL.Path
	p.Log.Info("a background response continues", "id", id, "tokens", len(s.Tokens))
	go r.runJob(request)
	return true
}

// alreadyLogged is the part of a repeated stream that the log already has: the number of events
// that are not deltas, and the bytes of deltas after the last of them.
type alreadyLogged struct{ events, text int }

func (l *eventLog) logged() *alreadyLogged {
	r := &alreadyLogged{}
	for _, e := range l.entries {
		if e.Run == nil {
			r.events, r.text = r.events+1, 0
		} else {
			r.text += len(e.Run.Text)
		}
	}
	return r
}

// isLogged tells whether the log has the event. It removes the part of a delta that the log has.
func (r *alreadyLogged) isLogged(e *streamEvent) bool {
	switch {
	case r == nil:
		return false
	case e.Delta == nil:
		r.events--
		return r.events >= 0
	case r.events > 0:
		return true
	case len(*e.Delta) <= r.text:
		r.text -= len(*e.Delta)
		return true
	}
	e.Delta, r.text = new((*e.Delta)[r.text:]), 0
	return false
}

// repeatableID is an id that is the same when the response is repeated.
func (c *composer) repeatableID(prefix string) string {
	if c.seed == "" {
		return answer.NewID(prefix)
	}
	c.idCount++
	sum := sha256.Sum256([]byte(c.seed + " " + strconv.Itoa(c.idCount)))
	return prefix + hex.EncodeToString(sum[:16])
}
