// Following turns: from blocking Next calls to batches of events with a heartbeat.
//
// A turn can be silent for minutes (queue, prefill of a long prompt) and then yield faster than a
// socket accepts. run turns both into calls of one goroutine: batch with everything that is ready,
// onIdle after a time without events. Every event costs a write, a wake-up of the client and a line
// of JSON around the text. For a thousand streams that would keep two cores busy, so when many are
// open each waits a little between two writes.
//
// What must stay true: run returns only after every turn has delivered its Done, so no goroutine is
// left and every turn is counted. Once a batch has failed the turns' context is cancelled, and of
// the rest only each Done is reported. The first piece of a turn, its calls and its end are never
// delayed; nothing is delayed longer than maxDelay or, with a configured number of tokens per
// event, the heartbeat.

package answer

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

// arrival is an event of one of the turns that answer a request; choice is the turn's number.
type arrival struct {
	choice int
	event  session.Event
}

// maxBatch bounds the events of one batch; further events of a turn wait in the scheduler.
const maxBatch = 256

type follower struct {
	turns   []session.Turn
	cancel  context.CancelFunc // ends the turns
	silence time.Duration      // without events, after which onIdle is called
	batch   func([]arrival) error
	onIdle  func() error // nil: nothing to do
	// dropped receives the end of a turn whose last events were dropped
	dropped func(choice int, d session.Done)
	pace    *pace // nil: a batch is passed on at once
	// onIdle is called regularly, even during events: the client sees none yet
	notStreamed bool
}

func (f follower) run() error {
	arrivals := make(chan arrival, maxBatch)
	done := make(chan struct{}, len(f.turns))
	for i, t := range f.turns {
		go func() {
			for e, ok := t.Next(); ok; e, ok = t.Next() {
				arrivals <- arrival{i, e}
			}
			done <- struct{}{}
		}()
	}
	go func() {
		for range f.turns {
			<-done
		}
		close(arrivals)
	}()
	timer := time.NewTimer(f.silence)
	defer timer.Stop()
	var failed error
	var sent time.Time // of the last batch
	for {
		var err error
		arrived := false
		select {
		case a, ok := <-arrivals:
			if !ok {
				return failed
			}
			if failed != nil {
				if d, ok := a.event.(session.Done); ok {
					f.dropped(a.choice, d)
				}
				continue
			}
			batch := drain([]arrival{a}, arrivals)
			if f.pace != nil && !sent.IsZero() {
				batch = f.collect(batch, arrivals, sent)
			}
			// that a prompt is read delays no heartbeat and no first piece
			if arrived = slices.ContainsFunc(batch, func(a arrival) bool {
				_, reads := a.event.(session.Prefill)
				return !reads
			}); arrived {
				sent = time.Now()
			}
			if err = f.batch(merge(batch)); err == nil && !arrived {
				continue
			}
		case <-timer.C:
			if failed == nil && f.onIdle != nil {
				err = f.onIdle()
			}
		}
		if err != nil {
			failed = err
			f.cancel()
		}
		if !arrived || !f.notStreamed {
			timer.Reset(f.silence)
		}
	}
}

// collect adds events to a batch until its stream may be written again.
func (f follower) collect(batch []arrival, arrivals <-chan arrival, sent time.Time) []arrival {
	enough, until := f.pace.nextWrite(sent, f.silence)
	wait := time.Until(until)
	if wait <= 0 || isUrgent(batch) {
		return batch
	}
	clock := time.NewTimer(wait)
	defer clock.Stop()
	for countText(batch) < enough && !isUrgent(batch) {
		select {
		case a, ok := <-arrivals:
			if !ok {
				return batch // run meets the closed channel again
			}
			batch = drain(append(batch, a), arrivals)
		case <-clock.C:
			return batch
		}
	}
	return batch
}

// drain adds the events that have already arrived.
func drain(batch []arrival, arrivals <-chan arrival) []arrival {
	for len(batch) < maxBatch {
		select {
		case a, ok := <-arrivals:
			if !ok {
				return batch // run meets the closed channel again
			}
			batch = append(batch, a)
		default:
			return batch
		}
	}
	return batch
}

// merge joins adjacent events that continue the same text.
func merge(batch []arrival) []arrival {
	out := batch[:1]
	for _, a := range batch[1:] {
		last := &out[len(out)-1]
		if last.choice == a.choice {
			if joined, ok := join(last.event, a.event); ok {
				last.event = joined
				continue
			}
		}
		out = append(out, a)
	}
	return out
}

func join(x, y session.Event) (session.Event, bool) {
	switch x := x.(type) {
	case session.Reasoning:
		if y, ok := y.(session.Reasoning); ok {
			return session.Reasoning{Text: x.Text + y.Text}, true
		}
	case session.Prefill: // the latest counts
		y, ok := y.(session.Prefill)
		return y, ok
	case session.Counts:
		y, ok := y.(session.Counts)
		return y, ok
	case session.Commentary:
		if y, ok := y.(session.Commentary); ok {
			return session.Commentary{Text: x.Text + y.Text}, true
		}
	case session.Answer:
		if y, ok := y.(session.Answer); ok {
			return session.Answer{Text: x.Text + y.Text,
				Logprobs: append(x.Logprobs[:len(x.Logprobs):len(x.Logprobs)], y.Logprobs...),
				Tokens:   append(x.Tokens[:len(x.Tokens):len(x.Tokens)], y.Tokens...)}, true
		}
	case session.CallArguments:
		if y, ok := y.(session.CallArguments); ok && x.Index == y.Index {
			return session.CallArguments{Index: x.Index, Text: x.Text + y.Text}, true
		}
	}
	return nil, false
}

const (
	maxWritesPerSecond = 5000                   // of all streams together; about a tenth of a core
	minDelay           = 5 * time.Millisecond   // shorter waits are skipped
	maxDelay           = 250 * time.Millisecond // text still appears to flow
)

// pace is shared by the streams of a port.
type pace struct {
	tokens int // in one event; 0: by the load
	open   atomic.Int64
}

// enter counts a stream until leave is called.
func (p *pace) enter() (leave func()) {
	p.open.Add(1)
	return func() { p.open.Add(-1) }
}

func (p *pace) gap() time.Duration {
	d := time.Duration(p.open.Load()) * time.Second / maxWritesPerSecond
	if d < minDelay {
		return 0
	}
	return min(d, maxDelay)
}

// nextWrite returns the pieces of text that the next write waits for, and its latest time; last is
// the time of the last write.
func (p *pace) nextWrite(last time.Time, heartbeat time.Duration) (pieces int, until time.Time) {
	if p.tokens > 0 {
		return p.tokens, last.Add(heartbeat)
	}
	return maxBatch, last.Add(p.gap())
}

// countText counts the pieces of text in a batch, at least one for each token with text.
func countText(batch []arrival) (n int) {
	for _, a := range batch {
		if isText(a.event) {
			n++
		}
	}
	return n
}

// isUrgent tells that the batch has something a client acts on.
func isUrgent(batch []arrival) bool {
	return slices.ContainsFunc(batch, func(a arrival) bool {
		_, counts := a.event.(session.Counts)
		return !counts && !isText(a.event)
	})
}

func isText(e session.Event) bool {
	switch e.(type) {
	case session.Reasoning, session.Commentary, session.Answer, session.CallArguments:
		return true
	}
	return false
}
