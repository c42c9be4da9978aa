// Steps on a device that chooses tokens give the texts that the host's sampling gives, and the
// device does not wait for the host.

package sched

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/sched/simtest"
)

// startOnDevice is start over an engine whose device chooses tokens.
func startOnDevice(t testing.TB, o Options) (*Scheduler, *simtest.Device) {
	t.Helper()
	if o.Pages == 0 {
		o.Pages = 512
	}
	if o.MaxNumBatchedTokens == 0 {
		o.MaxNumBatchedTokens = 512
	}
	dev := simtest.NewDevice(newSim(o, 97, 128))
	s := New(dev, o)
	t.Cleanup(func() {
		s.Close()
		if s.pool.Used() != 0 {
			t.Errorf("%d pages are lost", s.pool.Used())
		}
		if !dev.Idle() {
			t.Error("a step or a sample is left on the device")
		}
	})
	return s, dev
}

func TestInterleavingsOnDevice(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var all Stats
	scenarios := uint64(100)
	if testing.Short() {
		scenarios = 30
	}
	for range scenarios {
		stats := scenarioOn(t, rng, nil,
			func(e *simtest.Engine) StepEngine { return simtest.NewDevice(e) })
		all.Preemptions += stats.Preemptions
		all.Cancelled += stats.Cancelled
		all.Steps += stats.Steps
		all.Ahead += stats.Ahead
	}
	t.Logf("%+v", all.Counts)
	if all.Preemptions < 15*scenarios/100 || all.Cancelled < 20*scenarios/100 ||
		all.Ahead < all.Steps/2 {
		t.Errorf("%+v: the scenarios do not test enough", all.Counts)
	}
}

// TestTheDeviceIsAStepAhead: every step but the first is queued before the token of the one before
// it is asked for.
func TestTheDeviceIsAStepAhead(t *testing.T) {
	s, dev := startOnDevice(t, Options{})
	got := drain(t, submit(t, s, t.Context(), TokenRequest{Prompt: prompt(9), MaxTokens: 6}))
	if len(got) != 6 {
		t.Fatalf("%v", got)
	}
	want := "queue sample queue wait sample queue wait sample queue wait sample queue wait " +
		"sample queue wait sample wait"
	if calls := strings.Join(dev.Calls, " "); calls != want {
		t.Errorf("%s\nnot %s", calls, want)
	}
	if dev.Overlaps != 5 {
		t.Errorf("%d steps were queued ahead", dev.Overlaps)
	}
}

// TestMasksOnDevice: the mask of a token is made after the token before it is known, and before it
// is chosen.
func TestMasksOnDevice(t *testing.T) {
	s, _ := startOnDevice(t, Options{})
	var seen [][]int32
	r := TokenRequest{Prompt: prompt(5), MaxTokens: 30, Params: sample.Params{Temperature: 1,
		TopP: 1,
		Seed: 4, Logprobs: -1}}
	r.Constraint = &simtest.Constraint{Allow: func(generated []int32) []uint64 {
		seen = append(seen, slices.Clone(generated))
		mask := []uint64{0, 0}
		for _, id := range []int{len(generated), len(generated) + 40} {
			mask[id/64] |= 1 << (id % 64)
		}
		return mask
	}}
	got := drain(t, submit(t, s, t.Context(), r))
	for i, id := range got {
		if int(id) != i && int(id) != i+40 {
			t.Errorf("token %d is %d", i, id)
		}
		if !slices.Equal(seen[i], got[:i]) {
			t.Errorf("the mask of token %d was made after %v", i, seen[i])
		}
	}
	if len(got) != 30 || len(seen) != 30 {
		t.Errorf("%d tokens, %d masks", len(got), len(seen))
	}
}

// TestFollowOnDevice: tokens that follow by themselves replace what the step that was queued ahead
// chose.
func TestFollowOnDevice(t *testing.T) {
	follow := func(generated []int32) []int32 {
		if len(generated)%4 == 2 {
			return []int32{8, 9}
		}
		return nil
	}
	r := TokenRequest{Prompt: prompt(12), MaxTokens: 25,
		Constraint: &simtest.Constraint{Follow: follow},
		Params:     sample.Params{Temperature: 1, TopP: 1, Seed: 8, Logprobs: -1}}
	host, _ := start(t, Options{})
	want := drain(t, submit(t, host, t.Context(), r))
	s, dev := startOnDevice(t, Options{})
	got := drain(t, submit(t, s, t.Context(), r))
	if !slices.Equal(got, want) || dev.Overlaps == 0 {
		t.Errorf("%v on the device, %v on the host", got, want)
	}
}

// TestLongPenaltiesAreSampledOnTheHost: a text whose penalties change more logits than the device
// has room for.
func TestLongPenaltiesAreSampledOnTheHost(t *testing.T) {
	o := Options{Settings: engine.Settings{MaxNumBatchedTokens: 1}}
	r := TokenRequest{Prompt: prompt(97), MaxTokens: 3,
		Params: sample.Params{RepetitionPenalty: 1.2,
			Logprobs: -1, LogitBias: map[int32]float32{}}}
	s, dev := startOnDevice(t, o)
	if got := drain(t, submit(t, s, t.Context(), r)); len(got) != 3 || len(dev.Calls) == 0 {
		t.Fatalf("%v, %v", got, dev.Calls)
	}
	if s.editable([]*sequence{{sampler: sample.New(r.Params, 97,
		prompt(97))}}) != (97 < engine.MostEdits(1)) {
		t.Error("97 edits")
	}
	wide := sample.New(sample.Params{RepetitionPenalty: 2}, 1<<20, manyIDs(engine.MostEdits(1)))
	if s.editable([]*sequence{{sampler: wide}}) {
		t.Errorf("%d edits of %d: on the device", wide.MaxEdits(), engine.MostEdits(1))
	}
}

func manyIDs(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i)
	}
	return ids
}

// TestFaultsOnDevice: whichever call fails, the running request ends with the error, nothing is
// left on the device, and the next request gets its own tokens.
func TestFaultsOnDevice(t *testing.T) {
	r := TokenRequest{Prompt: prompt(40), MaxTokens: 8, Params: sample.Params{Temperature: 1,
		TopP: 1,
		Seed: 5, Logprobs: -1}}
	for _, call := range []string{"queue", "sample", "wait"} {
		for nth := 1; nth <= 3; nth++ {
			t.Run(fmt.Sprint(call, " ", nth), func(t *testing.T) {
				s, dev := startOnDevice(t, Options{})
				want, _ := alone(dev.Engine, s.o.MaxModelLen, r)
				broken, n := errors.New("the card fell off"), 0
				dev.Fail = func(name string) error {
					if name != call {
						return nil
					}
					if n++; n == nth {
						return broken
					}
					return nil
				}
				st := submit(t, s, t.Context(), r)
				drain(t, st)
				var e *EngineError
				if st.Finish() != FinishError || !errors.As(st.Err(), &e) || !errors.Is(e, broken) {
					t.Errorf("%q, %v", st.Finish(), st.Err())
				}
				got := drain(t, submit(t, s, t.Context(), r))
				for i := range want {
					if i >= len(got) || got[i] != want[i].ID {
						t.Fatalf("%v after the fault, not %v", got, want)
					}
				}
			})
		}
	}
}

// TestNothingAllowedOnDevice: a mask without a token ends the request, and a neighbour goes on.
func TestNothingAllowedOnDevice(t *testing.T) {
	s, _ := startOnDevice(t, Options{})
	bad := TokenRequest{Prompt: prompt(5), MaxTokens: 9,
		Constraint: &simtest.Constraint{Allow: func(generated []int32) []uint64 {
			if len(generated) == 3 {
				return []uint64{0, 0}
			}
			return nil
		}}}
	good := submit(t, s, t.Context(), TokenRequest{Prompt: prompt(7), MaxTokens: 20})
	st := submit(t, s, t.Context(), bad)
	if got := drain(t, st); len(got) != 3 || !errors.Is(st.Err(), sample.ErrNothingAllowed) {
		t.Errorf("%v, %v", got, st.Err())
	}
	if got := drain(t, good); len(got) != 20 || good.Err() != nil {
		t.Errorf("%v, %v", got, good.Err())
	}
}
