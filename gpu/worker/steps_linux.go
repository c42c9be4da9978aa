package worker

import (
	"context"
	"fmt"

	"github.com/ossrun/ossrun/runtime/engine"
)

// Steps on the worker's side. The engine checks batches and choices itself.

func (s *server) step(m *message) (*message, error) {
	r := codec{slot: s.shared.slot(m.number)[:m.shared], reads: true}
	var n int
	value(&r, &n)
	batchIn(&r, &s.batch)
	if err := r.end(); err != nil {
		return nil, err
	}
	if want := len(s.batch.LogitRows) * s.eng.Spec().Vocab; n != want {
		return nil, fmt.Errorf("%d logits are asked for, the step gives %d", n, want)
	}
	logits, err := s.shared.logits(n)
	if err != nil {
		return nil, err
	}
	if m.kind == step {
		return &message{kind: done}, s.eng.Step(context.Background(), &s.batch, logits)
	}
	times, err := s.eng.Measure(context.Background(), &s.batch, logits)
	if err != nil {
		return nil, err
	}
	return reply(timesText{times})
}

// advance samples the tokens of the batch queued before, then queues the next one, then waits for
// the tokens. If it does not sample, nobody waits for an answer, so an error is kept for the next
// advance that does.
func (s *server) advance(m *message) (*message, error) {
	r := codec{slot: s.shared.slot(m.number)[:m.shared], reads: true}
	var choices []engine.SamplingParams
	var from []int32
	var sampled, queued bool
	if flag(&r, &sampled); sampled {
		choicesIn(&r, &choices)
	}
	if flag(&r, &queued); queued {
		batchIn(&r, &s.batch)
		list(&r, &from)
	}
	if err := r.end(); err != nil {
		if !sampled {
			s.unsaid = err
			return nil, nil
		}
		return nil, err
	}
	var fault error
	if sampled {
		if fault = s.unsaid; fault == nil {
			fault = s.eng.Sample(choices)
		}
		s.unsaid = nil
	}
	if queued {
		s.unsaid = s.eng.Queue(context.Background(), &s.batch, from)
	}
	switch {
	case !sampled:
		return nil, nil
	case fault != nil:
		return nil, fault
	}
	return s.tokens(m.number, len(choices))
}

// tokens waits for a choice and writes what came of it.
func (s *server) tokens(number uint32, n int) (*message, error) {
	chosen := make([]engine.SampledToken, n)
	if err := s.eng.Wait(chosen); err != nil {
		return nil, err
	}
	w := codec{slot: s.shared.answer(number)}
	tokensIn(&w, &chosen)
	if w.bad {
		return nil, errSlotFull
	}
	return &message{kind: done, shared: uint32(answerBytes - len(w.slot))}, nil
}

// tap answers with a piece of the tap, and its full length.
func (s *server) tap(m *message) (*message, error) {
	t, err := ask[tapText](m)
	if err != nil {
		return nil, err
	}
	if t.Rows < 0 || t.Rows > mostRows {
		return nil, fmt.Errorf("%d rows of a tap", t.Rows)
	}
	data, err := s.eng.Tap(t.Name, t.Rows)
	if err != nil {
		return nil, err
	}
	if t.Offset < 0 || t.Offset > int64(len(data)) {
		return nil, fmt.Errorf("a tap of %d bytes from %d on", len(data), t.Offset)
	}
	a, err := reply(bytesText{t.Offset, int64(len(data))})
	a.shared = uint32(copy(s.shared.answer(m.number), data[t.Offset:]))
	return a, err
}

func (s *server) cache(m *message) (*message, error) {
	t, err := ask[bytesText](m)
	if err != nil {
		return nil, err
	}
	pool := s.eng.Cache()
	if t.Offset < 0 || t.Bytes < 0 || t.Bytes > pieceBytes || t.Offset > pool.Bytes()-t.Bytes {
		return nil, fmt.Errorf("%d bytes at %d of a pool of %d", t.Bytes, t.Offset, pool.Bytes())
	}
	if m.kind == readCache {
		err := pool.Read(t.Offset, s.shared.answer(m.number)[:t.Bytes])
		return &message{kind: done, shared: uint32(t.Bytes)}, err
	}
	if int64(m.shared) != t.Bytes {
		return nil, fmt.Errorf("%d bytes are sent to be written, %d are said", m.shared, t.Bytes)
	}
	return &message{kind: done}, pool.Write(t.Offset, s.shared.slot(m.number)[:t.Bytes])
}
