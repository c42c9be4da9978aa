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

// advance samples the batch queued before, queues the next one, and waits for the tokens. Without
// sampling it has no answer, so an error is kept for the next advance that has one.
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
			s.pendingErr = err
			return nil, nil
		}
		return nil, err
	}
	var fault error
	if sampled {
		if fault = s.pendingErr; fault == nil {
			fault = s.eng.Sample(choices)
		}
		s.pendingErr = nil
	}
	if queued {
		s.pendingErr = s.eng.Queue(context.Background(), &s.batch, from)
	}
	switch {
	case !sampled:
		return nil, nil
	case fault != nil:
		return nil, fault
	}
	chosen := make([]engine.SampledToken, len(choices))
	if err := s.eng.Wait(chosen); err != nil {
		return nil, err
	}
	w := codec{slot: s.shared.answer(s.number)}
	tokensIn(&w, &chosen)
	if w.bad {
		return nil, errSlotFull
	}
	return &message{kind: done, shared: uint32(answerBytes - len(w.slot))}, nil
}

// tap writes the tap to the memory of logits, and answers with its length.
func (s *server) tap(t tapText) (*message, error) {
	if t.Rows < 0 || t.Rows > mostRows {
		return nil, fmt.Errorf("%d rows of a tap", t.Rows)
	}
	data, err := s.eng.Tap(t.Name, t.Rows)
	if err != nil {
		return nil, err
	}
	if copy(s.shared.bytes[slotsBytes:], data) < len(data) {
		return nil, errSlotFull
	}
	return reply(bytesText{Bytes: int64(len(data))})
}

// inCache refuses bytes that are not a piece of the KV pool.
func (s *server) inCache(t bytesText) error {
	if t.Bytes < 0 || t.Bytes > pieceBytes {
		return fmt.Errorf("%d bytes of a pool", t.Bytes)
	}
	return engine.Inside(t.Offset, int(t.Bytes), s.eng.Cache().Bytes())
}

func (s *server) readCache(t bytesText) (*message, error) {
	if err := s.inCache(t); err != nil {
		return nil, err
	}
	return &message{kind: done, shared: uint32(t.Bytes)},
		s.eng.Cache().Read(t.Offset, s.shared.answer(s.number)[:t.Bytes])
}

func (s *server) writeCache(t bytesText, sent uint32) (*message, error) {
	if err := s.inCache(t); err != nil {
		return nil, err
	}
	if int64(sent) != t.Bytes {
		return nil, fmt.Errorf("%d bytes are sent to be written, %d are said", sent, t.Bytes)
	}
	return &message{kind: done}, s.eng.Cache().Write(t.Offset, s.shared.slot(s.number)[:t.Bytes])
}
