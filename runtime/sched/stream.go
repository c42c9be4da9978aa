// The reader's end of a request.
//
// What must stay true: the scheduler's loop never waits for a reader. Tokens go into a buffer that
// can hold the whole sequence (bounded by the context length), so a slow reader costs memory but no
// time.

package sched

import (
	"context"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/engine"
)

// Stream yields the tokens of one request to one reader. Finish, Err and Timing are safe for
// concurrent use.
type Stream struct {
	ctx    context.Context // given to Submit; cancelling it ends the request
	now    func() time.Time
	signal chan struct{} // capacity 1: something new is in the buffer, or the stream ended

	mu     sync.Mutex
	buffer []Token
	read   int // how many tokens of buffer Next has returned
	finish FinishReason
	err    error
	times  struct{ submitted, admitted, first, end time.Time }
	prompt []engine.SampledToken
	timing Timing // only its counts; the durations follow from times

	progress bool // see TokenRequest
}

// Timing says how a request's time was spent, so far or in all. Queued + Prefill = TTFT.
type Timing struct {
	Queued  time.Duration // until it was first admitted
	Prefill time.Duration // from there to the first token
	TTFT    time.Duration // until the first token
	Decode  time.Duration // from the first token to the last

	Prompt    int // tokens
	Cached    int // of Prompt, found in whole pages of the prefix cache
	Generated int // tokens, forced ones included
	// tokens of Request.Prediction that were tried, by whether they were right
	Accepted, Rejected int
}

func newStream(ctx context.Context, prompt int, now func() time.Time) *Stream {
	st := &Stream{ctx: ctx, now: now, signal: make(chan struct{}, 1)}
	st.timing.Prompt = prompt
	st.times.submitted = now()
	return st
}

// Next waits for the next token. It returns false if no more will come (Finish says why), or if ctx
// was cancelled first (Finish is empty then, unless the request has ended too).
func (st *Stream) Next(ctx context.Context) (Token, bool) {
	for {
		st.mu.Lock()
		if st.read < len(st.buffer) {
			t := st.buffer[st.read]
			st.buffer[st.read].Top = nil
			if st.read++; st.read == len(st.buffer) {
				st.buffer, st.read = st.buffer[:0], 0
			}
			st.mu.Unlock()
			return t, true
		}
		done := st.finish != ""
		st.mu.Unlock()
		if done {
			return Token{}, false
		}
		select {
		case <-st.signal:
		case <-st.ctx.Done():
			st.endIfCancelled()
		case <-ctx.Done():
			st.endIfCancelled()
			return Token{}, false
		}
	}
}

// endIfCancelled ends the stream of a cancelled request at once, before the loop notices it.
func (st *Stream) endIfCancelled() {
	if st.ctx.Err() != nil {
		st.end(FinishCancelled, nil, st.now())
	}
}

// Finish says why the stream ended, "" while it runs.
func (st *Stream) Finish() FinishReason {
	st.endIfCancelled()
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.finish
}

func (st *Stream) Err() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.err
}

// Timing returns the durations up to now, or up to the end of the request.
func (st *Stream) Timing() Timing {
	st.mu.Lock()
	defer st.mu.Unlock()
	t, times := st.timing, st.times
	now := times.end
	if now.IsZero() {
		now = st.now()
	}
	until := func(mark time.Time) time.Time {
		if mark.IsZero() {
			return now
		}
		return mark
	}
	admitted, first := until(times.admitted), until(times.first)
	t.Queued = admitted.Sub(times.submitted)
	t.Prefill = first.Sub(admitted)
	t.TTFT = first.Sub(times.submitted)
	t.Decode = now.Sub(first)
	return t
}

// admit notes when the request was first admitted, and tells whether this is the first time: a
// preempted request is admitted again. cached is how many prompt tokens were found in the cache.
func (st *Stream) admit(now time.Time, cached int) (first bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if first = st.times.admitted.IsZero(); first {
		st.times.admitted = now
		st.timing.Cached = cached
	}
	return first
}

func (st *Stream) push(t Token, now time.Time) {
	st.mu.Lock()
	if st.finish == "" {
		if st.read > 0 && len(st.buffer) == cap(st.buffer) {
			st.buffer = st.buffer[:copy(st.buffer, st.buffer[st.read:])]
			st.read = 0
		}
		st.buffer = append(st.buffer, t)
		if t.Prefilled == 0 {
			st.timing.Generated++
		}
		if t.Prefilled == 0 && st.times.first.IsZero() {
			st.times.first = now
		}
	}
	st.mu.Unlock()
	st.wake()
}

// end ends the stream. Only the first call has an effect.
func (st *Stream) end(f FinishReason, err error, now time.Time) {
	st.mu.Lock()
	if st.finish == "" {
		st.finish, st.err, st.times.end = f, err, now
	}
	st.mu.Unlock()
	st.wake()
}

func (st *Stream) wake() {
	select {
	case st.signal <- struct{}{}:
	default:
	}
}
