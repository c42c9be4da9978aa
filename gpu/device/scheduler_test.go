package device

import (
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/sched/simtest"
)

// The scheduler on a card: tokens chosen there, a step ahead, are those that the host chooses from
// the same logits.

// hostSampled is an engine whose tokens are sampled on the host.
type hostSampled struct{ *engine.InProcess }

func (h hostSampled) Caps() engine.Caps {
	caps := h.InProcess.Caps()
	caps.Samples = false
	return caps
}

// turns are three requests: a greedy one, one with everything that sampling knows, one under masks.
func turns(vocab int) []sched.TokenRequest {
	return []sched.TokenRequest{
		{Prompt: []int32{5, 6, 7}, MaxTokens: 6, Params: sample.Params{Logprobs: -1}},
		{Prompt: []int32{9}, MaxTokens: 6, Params: sample.Params{Temperature: 1, TopP: 0.9,
			TopK: 40, MinP: 0.01, RepetitionPenalty: 1.2, FrequencyPenalty: 0.5,
			LogitBias: map[int32]float32{3: -100, 4: 2}, Seed: 7, Logprobs: 2}},
		{Prompt: []int32{1, 2}, MaxTokens: 6, Params: sample.Params{Temperature: 1, TopP: 1,
			Seed: 3, Logprobs: -1},
			Constraint: &simtest.Constraint{Allow: func(generated []int32) []uint64 {
				return only(vocab, len(generated), 60+len(generated))
			}}},
	}
}

// texts runs the turns together.
func texts(t *testing.T, eng sched.StepEngine, vocab int) (all [][]sched.Token) {
	t.Helper()
	s := sched.New(eng, sched.Options{Settings: engine.Settings{Pages: 16,
		MaxNumBatchedTokens: 8, MaxNumSeqs: 4}})
	defer s.Close()
	var streams []*sched.Stream
	for _, r := range turns(vocab) {
		st := hosttest.Must(s.Submit(t.Context(), r))(t)
		streams = append(streams, st)
	}
	for _, st := range streams {
		var text []sched.Token
		for tok, ok := st.Next(t.Context()); ok; tok, ok = st.Next(t.Context()) {
			text = append(text, tok)
		}
		if st.Err() != nil {
			t.Error(st.Err())
		}
		all = append(all, text)
	}
	return all
}

func TestSchedulerOnDevice(t *testing.T) {
	for _, kv := range []string{"f32", engine.KVFP8} {
		t.Run(kv, func(t *testing.T) { schedulerOnDevice(t, kv) })
	}
}

func schedulerOnDevice(t *testing.T, kv string) {
	dev, f := open(t, driver.CUDA)
	eng := hosttest.Must(engine.New(dev, tiny(t), engine.Settings{Pages: 16, MaxNumBatchedTokens: 8,
		KVCacheDtype: kv}))(t)
	defer eng.Close()
	vocab := eng.Spec().Vocab
	before := len(f.Trace())
	got := texts(t, eng, vocab)
	calls := strings.Join(slices.DeleteFunc(f.Trace()[before:],
		func(name string) bool { return name == "cuCtxSetCurrent" }), " ")
	want := texts(t, hostSampled{eng}, vocab)
	for i := range want {
		if len(want[i]) != 6 || len(got[i]) != len(want[i]) {
			t.Fatalf("turn %d has %d tokens on the card, %d on the host", i, len(got[i]),
				len(want[i]))
		}
		for j := range want[i] {
			g, w := got[i][j], want[i][j]
			if d := g.Logprob - w.Logprob; g.ID != w.ID || d > 1e-4 || d < -1e-4 ||
				len(g.Top) != len(w.Top) {
				t.Errorf("turn %d, token %d: %+v on the card, %+v on the host", i, j, g, w)
			}
		}
	}
	if strings.Count(calls, "cuGraphLaunch") < 6 {
		t.Errorf("few steps: %s", calls)
	}
}

// TestSchedulerIsAStepAhead: without logprobs the next forward pass is launched before the tokens
// of this one are waited for.
func TestSchedulerIsAStepAhead(t *testing.T) {
	dev, f := open(t, driver.CUDA)
	eng := hosttest.Must(engine.New(dev, tiny(t),
		engine.Settings{Pages: 16, MaxNumBatchedTokens: 8}))(t)
	defer eng.Close()
	s := sched.New(eng, sched.Options{Settings: engine.Settings{Pages: 16,
		MaxNumBatchedTokens: 8, MaxNumSeqs: 4}})
	defer s.Close()
	st, err := s.Submit(t.Context(), sched.TokenRequest{Prompt: []int32{5, 6}, MaxTokens: 5,
		Params: sample.Params{Logprobs: -1}})
	hosttest.Check(t, err)
	for _, ok := st.Next(t.Context()); ok; _, ok = st.Next(t.Context()) {
	}
	var order strings.Builder
	for _, name := range f.Trace() {
		switch name {
		case "cuGraphLaunch":
			order.WriteByte('F') // a forward pass
		case "cuMemcpyDtoHAsync_v2":
			order.WriteByte('t') // the tokens set out
		case "cuMemcpyDtoDAsync_v2":
			order.WriteByte('c') // a token passes to the next step inside the card
		}
	}
	if got := order.String(); got != "FtcFtcFtcFtcFt" {
		t.Errorf("%s", got)
	}
	if n := f.Calls("cuMemcpyDtoHAsync_v2"); n != 5 {
		t.Errorf("%d copies to the host: only the tokens come back", n)
	}
}
