package multi_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/sched/simtest"
)

// Tokens chosen on the last card: the scheduler, a step ahead, gets those that the host chooses
// from the same logits.

// hostSampled is an engine whose tokens are sampled on the host.
type hostSampled struct{ *engine.InProcess }

func (h hostSampled) Caps() engine.Caps {
	caps := h.InProcess.Caps()
	caps.Samples = false
	return caps
}

// texts runs three turns together: a greedy one, one with everything that sampling knows, one under
// masks.
func texts(t *testing.T, eng sched.StepEngine, vocab int) (all [][]int32, err error) {
	t.Helper()
	s := sched.New(eng, sched.Options{Settings: engine.Settings{Pages: 16,
		MaxNumBatchedTokens: 8, MaxNumSeqs: 4}})
	defer s.Close()
	only := func(generated []int32) []uint64 {
		mask := make([]uint64, (vocab+63)/64)
		for _, id := range []int{len(generated), 60 + len(generated)} {
			mask[id/64] |= 1 << (id % 64)
		}
		return mask
	}
	var streams []*sched.Stream
	for _, r := range []sched.TokenRequest{
		{Prompt: []int32{5, 6, 7}, MaxTokens: 6, Params: sample.Params{Logprobs: -1}},
		{Prompt: []int32{9}, MaxTokens: 6, Params: sample.Params{Temperature: 1, TopP: 0.9,
			TopK: 40, RepetitionPenalty: 1.2, Seed: 7, Logprobs: -1}},
		{Prompt: []int32{1, 2}, MaxTokens: 6, Params: sample.Params{Temperature: 1, TopP: 1,
			Seed: 3, Logprobs: -1}, Constraint: &simtest.Constraint{Allow: only}},
	} {
		st := hosttest.Must(s.Submit(t.Context(), r))(t)
		streams = append(streams, st)
	}
	for _, st := range streams {
		var text []int32
		for tok, ok := st.Next(t.Context()); ok; tok, ok = st.Next(t.Context()) {
			text = append(text, tok.ID)
		}
		err = errors.Join(err, st.Err())
		all = append(all, text)
	}
	return all, err
}

func TestSampling(t *testing.T) {
	f := fake(t, driver.CUDA, 2, 0)
	dev := overCards(t, f, false, nil, way{ends: []int{1, 2}, hosted: []int{1}})
	eng := hosttest.Must(engine.New(dev, tiny(t),
		engine.Settings{Pages: 16, MaxNumBatchedTokens: 8}))(t)
	if !eng.Caps().Samples {
		t.Error("the last card samples, the split does not")
	}
	got, err := texts(t, eng, eng.Spec().Vocab)
	if err != nil {
		t.Error(err)
	}
	want, err := texts(t, hostSampled{eng}, eng.Spec().Vocab)
	if err != nil {
		t.Error(err)
	}
	for i := range want {
		if len(want[i]) != 6 || !slices.Equal(got[i], want[i]) {
			t.Errorf("turn %d: %v on the cards, %v on the host", i, got[i], want[i])
		}
	}
	// A card that fails ends the turns with its error, and what follows is as before.
	for _, call := range []string{"cuGraphLaunch", "cuMemcpyPeerAsync", "cuEventSynchronize"} {
		f.FailCall(call, 3, 1)
		if _, err := texts(t, eng, eng.Spec().Vocab); err == nil {
			t.Errorf("%s failed, the turns did not", call)
		}
	}
	if again, err := texts(t, eng, eng.Spec().Vocab); err != nil ||
		!slices.EqualFunc(again, got, slices.Equal) {
		t.Errorf("after failures: %v, %v", again, err)
	}
	hosttest.Check(t, eng.Close())
}

// TestQueueNeedsASample: the calls out of their order.
func TestQueueNeedsASample(t *testing.T) {
	dev := overCards(t, fake(t, driver.CUDA, 2, 0), true, nil, way{ends: []int{1, 2}})
	eng := hosttest.Must(engine.New(dev, tiny(t),
		engine.Settings{Pages: 4, MaxNumBatchedTokens: 4}))(t)
	if err := eng.Queue(t.Context(), steps()[0], []int32{0, -1, -1}); err == nil {
		t.Error("a token of no sample: accepted")
	}
	if err := eng.Wait(make([]engine.SampledToken, 1)); err == nil {
		t.Error("nothing to wait for: waited")
	}
	if err := eng.Queue(t.Context(), steps()[0], nil); err != nil { // and then it is not sampled
		t.Error(err)
	}
	if err := eng.Close(); err != nil {
		t.Error(err)
	}
	if err := eng.Queue(t.Context(), steps()[0], nil); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("queued on a closed engine: %v", err)
	}
}
