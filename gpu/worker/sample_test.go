//go:build linux

package worker

import (
	"errors"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sample"
)

// Tokens chosen in the worker: the same as the host chooses, one step ahead, with one message each
// way for each step.

// TestSampleThere walks a chain of steps, each fed by the one before inside the card, and holds
// every token to the host's choice.
func TestSampleThere(t *testing.T) {
	dev := opened(t, "CUDA", Options{})
	ckpt := tiny(t)
	eng := hosttest.Must(dev.Load(t.Context(), ckpt, small, nil))(t)
	defer func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}()
	if !eng.Caps().Samples {
		t.Fatal("the device does not choose tokens")
	}
	vocab := ckpt.Spec.Vocab
	odd := make([]uint64, (vocab+63)/64)
	for i := range odd {
		odd[i] = 0xaaaaaaaaaaaaaaaa
	}
	const steps = 6
	choice := func(i int) engine.SamplingParams {
		c := engine.SamplingParams{Draw: engine.Draw{Temperature: 1, TopP: 1, Seed: 5,
			Position: int64(2 + i)}, Logprobs: -1}
		if i%2 == 1 {
			c.Mask, c.Logprobs = odd, 2
		}
		return c
	}
	must := func(err error) {
		t.Helper()
		hosttest.Check(t, err)
	}
	before := dev.Traffic()
	var tokens []int32
	var got [1]engine.SampledToken
	must(eng.Queue(t.Context(), rows(0, 5, 6), nil))
	must(eng.Sample([]engine.SamplingParams{choice(0)}))
	for i := range steps {
		if i+1 < steps {
			must(eng.Queue(t.Context(), rows(int32(2+i), 0), []int32{0}))
		}
		must(eng.Wait(got[:]))
		tokens = append(tokens, got[0].ID)
		if n := len(got[0].Top); n != 2*(i%2) {
			t.Errorf("step %d has %d rivals", i, n)
		}
		if i+1 < steps {
			must(eng.Sample([]engine.SamplingParams{choice(i + 1)}))
		}
	}
	after := dev.Traffic()
	if n := after.Steps - before.Steps; n != steps {
		t.Errorf("%d steps were counted, not %d", n, steps)
	}
	// The first step has no choice before it, and behind the last one's there is no step: one
	// message more goes there in all.
	if sent, received := after.Sent-before.Sent, after.Received-before.Received; sent != steps+1 ||
		received != steps {
		t.Errorf("%d steps took %d messages there and %d back", steps, sent, received)
	}
	logits := make([]float32, vocab)
	must(eng.Step(t.Context(), rows(0, 5, 6), logits))
	for i, token := range tokens {
		p, mask := sample.Params{Temperature: 1, TopP: 1, Seed: 5}, []uint64(nil)
		if i%2 == 1 {
			p.Logprobs, mask = 2, odd
		}
		want, err := sample.New(p, vocab, nil).Next(slices.Clone(logits), 2+i, mask)
		must(err)
		if want.ID != token {
			t.Errorf("token %d is %d, the host's is %d", i, token, want.ID)
		}
		must(eng.Step(t.Context(), rows(int32(2+i), token), logits))
	}
}

// TestSampleRefusals: what is wrong with a choice, or with a batch that nobody waited for, is told
// when its tokens are waited for; then it goes on.
func TestSampleRefusals(t *testing.T) {
	dev := opened(t, "CUDA", Options{})
	ckpt := tiny(t)
	eng := hosttest.Must(dev.Load(t.Context(), ckpt, small, nil))(t)
	var got [1]engine.SampledToken
	if err := eng.Wait(got[:]); err == nil {
		t.Error("nothing was sampled, and it was waited for")
	}
	one := []engine.SamplingParams{{Logprobs: -1}}
	// Nothing is queued yet: later there is, since a refused choice leaves its batch queued.
	if err := errors.Join(eng.Sample(one), eng.Wait(got[:])); err == nil ||
		errors.Is(err, ErrLost) {
		t.Errorf("no batch: %v", err)
	}
	for what, run := range map[string]func() error{
		"another length": func() error {
			return errors.Join(eng.Queue(t.Context(), rows(0, 5), nil),
				eng.Sample(append(one, one...)))
		},
		"a bad batch": func() error {
			return errors.Join(eng.Queue(t.Context(), rows(0, int32(ckpt.Spec.Vocab)), nil),
				eng.Sample(one))
		},
		"from other rows": func() error {
			return errors.Join(eng.Queue(t.Context(), rows(0, 5),
				[]int32{0, 0}), eng.Sample(one))
		},
		"an edit too high": func() error {
			return errors.Join(eng.Queue(t.Context(), rows(0, 5), nil),
				eng.Sample([]engine.SamplingParams{{Edits: []engine.Edit{{ID: 1 << 30}}}}))
		},
	} {
		if err := errors.Join(run(), eng.Wait(got[:])); err == nil || errors.Is(err, ErrLost) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for range 3 * slots { // batches without a choice use up no slot
		hosttest.Check(t, eng.Queue(t.Context(), rows(0, 5), nil))
	}
	// a read between comes to no harm
	if err := errors.Join(eng.Sample(one), eng.Cache().Read(0, make([]byte, 4)),
		eng.Wait(got[:])); err != nil {
		t.Error(err)
	}
	hosttest.Check(t, eng.Close())
}
