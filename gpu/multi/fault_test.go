package multi_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/multi"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Faults other than those of a card's calls: the host's half of a step, and a card that is gone for
// good.

var errHalf = errors.New("the host's half failed")

// brittle is a device whose steps fail on demand.
type brittle struct {
	engine.Device
	broken *atomic.Bool
}

type brittleStep struct {
	engine.Step
	broken *atomic.Bool
}

func (d brittle) Compile(p *engine.Program) (engine.Step, error) {
	s, err := d.Device.Compile(p)
	if err != nil {
		return nil, err
	}
	return brittleStep{s, d.broken}, nil
}

func (s brittleStep) Forward(b *engine.Batch, logits []float32, times []int64) error {
	if s.broken.Load() {
		return errHalf
	}
	return s.Step.Forward(b, logits, times)
}

// TestHostFails: a step ends with the host's error and says which operations were on the way; a
// step that was queued says it when its tokens are to be chosen; and what follows is as if nothing
// had been.
func TestHostFails(t *testing.T) {
	f := fake(t, driver.CUDA, 2, 0)
	cards := hosttest.Must(cardsOf(f, 2, false))(t)
	var broken atomic.Bool
	dev := hosttest.Must(multi.New(planned([]int{1, 2}, 0, 1), cards, brittle{host(t), &broken},
		nil))(t)
	eng, want := stepped(t, dev)
	got := make([]float32, len(want))
	for range 2 {
		broken.Store(true)
		if err := eng.Step(t.Context(), steps()[0], got); !errors.Is(err, errHalf) ||
			!strings.Contains(err.Error(), "cpu, 1 thread") ||
			!strings.Contains(err.Error(), " to ") {
			t.Errorf("a step: %v", err)
		}
		if err := eng.Queue(t.Context(), steps()[0], nil); err != nil {
			t.Error(err)
		}
		if err := eng.Sample([]engine.SamplingParams{{}}); !errors.Is(err, errHalf) {
			t.Errorf("a choice behind a failed pass: %v", err)
		}
		broken.Store(false)
		if err := eng.Step(t.Context(), steps()[0], got); err != nil || !slices.Equal(want, got) {
			t.Errorf("afterwards: %v, the same logits: %v", err, slices.Equal(want, got))
		}
	}
	if err := errors.Join(eng.Close(), dev.Close()); err != nil {
		t.Error(err)
	}
	if left := f.Leaks(); left != "" {
		t.Errorf("not given back: %s", left)
	}
}

// TestCardIsLost: a card that is gone in the middle of a step is told as such, whichever it is and
// wherever it is noticed, so that whoever opened the cards opens them anew; and everything can be
// closed behind it.
func TestCardIsLost(t *testing.T) {
	const lost = 719 // CUDA_ERROR_LAUNCH_FAILED: nothing goes on in this context
	for _, name := range []string{"cuGraphLaunch", "cuMemcpyPeerAsync", "cuStreamSynchronize",
		"cuMemcpyHtoDAsync_v2"} {
		t.Run(name, func(t *testing.T) { // one fake machine at a time
			f := fake(t, driver.CUDA, 2, 0)
			dev := overCards(t, f, true, nil, way{ends: []int{1, 2}, hosted: []int{0}})
			eng := hosttest.Must(engine.New(dev, tiny(t),
				engine.Settings{Pages: 4, MaxNumBatchedTokens: 4}))(t)
			f.FailCall(name, 1, lost)
			if err := eng.Step(t.Context(), steps()[0],
				make([]float32, eng.Spec().Vocab)); !errors.Is(err, driver.ErrLost) {
				t.Error(err)
			}
			hosttest.Check(t, eng.Close())
		})
	}
}
