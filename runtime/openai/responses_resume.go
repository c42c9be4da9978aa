// Another process takes over a background response whose process has ended, and goes on with it.
//
// While a response runs its record has the request and the tokens sampled so far, and a small
// record of kind running says until when its process vouches for it. When that time is over,
// whoever deletes the small record takes the response over: the turn is begun with the stored
// tokens, which make the same events again, and goes on behind them. What must stay true: one
// process writes a response at a time; what a client can have read of the events is in the store,
// so they go on with the next number; a response that cannot be taken up ends as failed.

package openai

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

// lease is the value of a record of kind running.
type lease struct {
	Owner string
	Until time.Time
}

// hold says that this process goes on writing the response; false: another one has taken it over.
func (r *responsesForm) hold(until time.Time) bool {
	store := r.port.Store
	if record, ok := store.Get(session.KindRunning, r.response.ID); ok {
		var now lease
		if json.Unmarshal(record.Value, &now) == nil && now.Owner != r.job.owner {
			return false
		}
	}
	value, _ := marshal(lease{r.job.owner, until}) // our own type
	store.Put(session.Record{Kind: session.KindRunning, Key: r.response.ID, Value: value})
	return true
}

// TakeOver takes up the background responses that other processes have left, until ctx ends.
func (h *Handler) TakeOver(ctx context.Context) {
	clock := time.NewTicker(h.port.Silence / 3)
	defer clock.Stop()
	for {
		for _, record := range h.port.Store.List(session.KindRunning) {
			var left lease
			if json.Unmarshal(record.Value, &left) != nil || time.Now().Before(left.Until) ||
				h.port.jobs.get(record.Key) != nil {
				continue
			}
			if h.port.Store.Delete(session.KindRunning, record.Key) { // by one process only
				h.port.takeOver(record.Key)
			}
		}
		select {
		case <-clock.C:
		case <-ctx.Done():
			return
		}
	}
}

// takeOver goes on with a response, or ends it as failed.
func (p *port) takeOver(id string) {
	record, ok := p.Store.Get(session.KindResponse, id)
	var s storedResponse
	if !ok || record.Key != id || json.Unmarshal(record.Value, &s) != nil || !s.running() {
		return
	}
	if !p.resume(id, s) {
		s.lost()
		if err := putResponse(p.Store, id, s); err != nil {
			p.Log.Error("a lost background response is not stored", "id", id, "error", err)
		}
	}
}

func (p *port) resume(id string, s storedResponse) bool {
	if len(s.Tokens) == 0 || s.Log == nil {
		return false
	}
	o, f := parseObject(s.Request)
	if f != nil {
		return false
	}
	req := parseResponses(o, &p.Options)
	if o.c.first != nil || len(req.wanted) > 0 || req.compactAt != 0 {
		return false
	}
	ctx, cancel := context.WithCancel(context.Background())
	runner, err := p.Models.Get(ctx, req.model)
	if err != nil {
		cancel()
		return false
	}
	var before struct {
		CreatedAt int64 `json:"created_at"`
		Model     string
	}
	_ = json.Unmarshal(s.Body, &before) // our own
	r := &responsesForm{req: req, log: s.Log.reopened(), request: s.Request}
	r.replay = r.log.remade()
	r.sequence = r.log.last() + 1
	r.job = newJob(r.log, cancel)
	r.job.body.Store(&s.Body)
	a := &answer{req: &req.request, form: r, port: p, runner: runner, ctx: ctx, cancel: cancel,
		exchange: &exchange{ResponseWriter: nowhere{}, path: "/v1/responses", id: id,
			released: func() {}},
		dones: make([]*session.Done, 1), created: before.CreatedAt, model: before.Model}
	req.background = r.background
	req.turns[0].AllowLoops = req.loops || p.AllowLoops
	req.turns[0].Sampled = s.Tokens
	req.response.ID = id
	r.queue(a)
	// for the log line; it is well-formed
	asked, _ := http.NewRequestWithContext(ctx, http.MethodPost, "/v1/responses", nil)
	p.Log.Info("a background response goes on", "id", id, "tokens", len(s.Tokens))
	go r.runAlone(ctx, asked)
	return true
}

// remade is how much of a stream the log already has while the stream is made again: the number of
// events that are not deltas, and the bytes of deltas behind the last of them.
type remade struct{ events, text int }

func (l *eventLog) remade() *remade {
	r := &remade{}
	for _, e := range l.entries {
		if e.Run == nil {
			r.events, r.text = r.events+1, 0
		} else {
			r.text += len(e.Run.Text)
		}
	}
	return r
}

// old tells whether the log has the event. It removes the part of a delta that the log has.
func (r *remade) old(e *streamEvent) bool {
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
	rest := (*e.Delta)[r.text:]
	e.Delta, r.text = &rest, 0
	return false
}

// madeID is an id that comes out the same when the response is made again.
func (c *composer) madeID(prefix string) string {
	if c.seed == "" {
		return newID(prefix)
	}
	c.made++
	sum := sha256.Sum256([]byte(c.seed + " " + strconv.Itoa(c.made)))
	return prefix + hex.EncodeToString(sum[:16])
}
