package multi_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/gpu/multi"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Several cards of the fake driver, their kernels emulated.

// fake opens a machine with several cards, each with so many bytes; 0 for plenty.
func fake(t testing.TB, api driver.API, cards int, memory int64) *drivertest.Fake {
	t.Helper()
	f := hosttest.Must(drivertest.Open(api, machine(cards, memory)))(t)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func machine(cards int, memory int64) drivertest.Machine {
	if memory == 0 {
		memory = 1 << 34
	}
	return drivertest.Machine{Devices: cards, Name: "Fake H100", Major: 9, Memory: memory}
}

// cardsOf opens every card. KFD, which names an AMD card, is not faked.
func cardsOf(f *drivertest.Fake, n int, plain bool) (list []engine.Device, err error) {
	arch := map[driver.API]string{driver.CUDA: "sm_90", driver.HIP: "gfx942"}[f.API()]
	for i := range n {
		dev, err := device.Open(f.Driver, device.Options{Index: i, Arch: arch, Reference: plain})
		if err != nil {
			for _, d := range list {
				err = errors.Join(err, d.Close())
			}
			return nil, err
		}
		list = append(list, dev)
	}
	return list, nil
}

// overCards is a split over fake cards; the test checks that nothing of them is left.
func overCards(t testing.TB, f *drivertest.Fake, plain bool, streams func(rows int) bool,
	w way) *multi.Device {
	t.Helper()
	cards := hosttest.Must(cardsOf(f, len(w.ends), plain))(t)
	dev := hosttest.Must(multi.New(planned(w.ends, w.hosted...), cards, host(t), streams))(t)
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		if left := f.Leaks(); left != "" {
			t.Errorf("not given back: %s", left)
		}
	})
	return dev
}

// steps are a prompt of three rows and two tokens after it.
func steps() []*engine.Batch {
	one := func(start int32, tokens ...int32) *engine.Batch {
		n := int32(len(tokens))
		return &engine.Batch{Tokens: tokens, LogitRows: []int32{n - 1},
			Seqs: []engine.SeqRows{{Start: start, Rows: n, Full: []int32{1}, Window: []int32{2}}}}
	}
	return []*engine.Batch{one(0, 5, 6, 7), one(3, 9), one(4, 2)}
}

// run gives the logits of steps.
func run(t testing.TB, dev engine.Device, ckpt *checkpoint.Checkpoint,
	o engine.Settings) ([]float32, error) {
	o.Pages, o.MaxNumBatchedTokens = 4, 4
	eng, err := engine.New(dev, ckpt, o)
	if err != nil {
		return nil, err
	}
	var all []float32
	for _, b := range steps() {
		logits := make([]float32, eng.Spec().Vocab)
		if err = eng.Step(t.Context(), b, logits); err != nil {
			break
		}
		all = append(all, logits...)
	}
	return all, errors.Join(err, eng.Close())
}

// across is how far a logit may be from one card's where experts are the host's or streamed: other
// kernels, other orders of sums. In the 8-bit mode a sum that moves by a bit may round to the next
// step.
const (
	across     = 1e-4
	acrossInt8 = 2e-2
)

func worst(a, b []float32) (d float64) {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	for i := range a {
		if x := math.Abs(float64(a[i]) - float64(b[i])); !(x <= d) {
			d = x
		}
	}
	return d
}

// TestCards: a golden checkpoint over two and three cards of NVIDIA and two of AMD, with the
// experts of layers on the host and streamed to the card. Cards alone give the bits of one card.
func TestCards(t *testing.T) {
	holdCards(t, driver.CUDA, "T2", []way{{ends: []int{1, 2, 3}},
		{ends: []int{2, 3}, hosted: []int{0, 2}}}, engine.Settings{})
	holdCards(t, driver.HIP, "T2", []way{{ends: []int{1, 3}}}, engine.Settings{})
}

// TestCardsLong: every placement of both models, in every mode.
func TestCardsLong(t *testing.T) {
	drivertest.Long(t)
	for _, compute := range []string{engine.Exact, engine.Int8} {
		for _, api := range []driver.API{driver.CUDA, driver.HIP} {
			holdCards(t, api, "T2", ways(3), engine.Settings{Compute: compute})
			holdCards(t, api, "T1", ways(4), engine.Settings{Compute: compute})
		}
	}
}

func holdCards(t *testing.T, api driver.API, model string, list []way, o engine.Settings) {
	ckpt := opened(t, testdata+model+"/checkpoint")
	f := fake(t, api, 3, 0)
	one := hosttest.Must(cardsOf(f, 1, false))(t)
	want, err := run(t, one[0], ckpt, o)
	hosttest.Check(t, errors.Join(err, one[0].Close()))
	for _, w := range list {
		for _, streamed := range []bool{false, true} {
			if streamed && len(w.hosted) == 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s/%s/%v/streamed %v", api, model, o.Compute, w, streamed),
				func(t *testing.T) {
					allowed := 0.0
					var how func(rows int) bool
					if streamed {
						how = always
					}
					if len(w.hosted) > 0 {
						allowed = across
						if o.Compute == engine.Int8 {
							allowed = acrossInt8
						}
					}
					got, err := run(t, overCards(t, f, false, how, w), ckpt, o)
					if d := worst(want, got); err != nil || d > allowed {
						t.Errorf("a logit moved by %.2g, %v", d, err)
					}
				})
		}
	}
}

// TestCrossings: live buffers cross between two cards, by one copy from card to card for each
// buffer, and nothing passes through the host.
func TestCrossings(t *testing.T) {
	f := fake(t, driver.CUDA, 2, 0)
	dev := overCards(t, f, false, nil, way{ends: []int{1, 2}})
	eng := hosttest.Must(engine.New(dev, tiny(t),
		engine.Settings{Pages: 4, MaxNumBatchedTokens: 4}))(t)
	before := len(f.Trace())
	hosttest.Check(t, eng.Step(t.Context(), steps()[0], make([]float32, eng.Spec().Vocab)))
	var calls []string
	for _, name := range f.Trace()[before:] {
		if strings.Contains(name, "Memcpy") || name == "cuGraphLaunch" {
			calls = append(calls, name)
		}
	}
	want := []string{"cuMemcpyHtoDAsync_v2", "cuGraphLaunch", // the state, layer 0
		"cuMemcpyPeerAsync", "cuMemcpyPeerAsync", // the residual stream, the angles
		// the state, layer 1, the logits
		"cuMemcpyHtoDAsync_v2", "cuGraphLaunch", "cuMemcpyDtoHAsync_v2"}
	if !slices.Equal(calls, want) {
		t.Errorf("%v", calls)
	}
	hosttest.Check(t, eng.Close())
}

// TestSmallCards: a model that one card has no room for runs on two, and each holds no more than
// its part.
func TestSmallCards(t *testing.T) {
	ckpt := opened(t, testdata+"T2/checkpoint")
	room := ckpt.Spec.WeightBytes() * 9 / 10
	f := fake(t, driver.CUDA, 2, room)
	one, err := cardsOf(f, 1, false)
	hosttest.Check(t, err)
	o := engine.Settings{MaxLogits: 1}
	_, err = run(t, one[0], ckpt, o)
	if !errors.Is(err, driver.ErrOutOfMemory) {
		t.Fatalf("one card of %d bytes: %v", room, err)
	}
	hosttest.Check(t, one[0].Close())
	if left := f.Leaks(); left != "" {
		t.Fatal(left)
	}
	for _, w := range []way{{ends: []int{2, 3}}, {ends: []int{3}, hosted: []int{0, 1, 2}}} {
		t.Run(w.String(), func(t *testing.T) {
			hosttest.Must(run(t, overCards(t, f, false, nil, w), ckpt, o))(t)
		})
	}
}

// TestCardFails: a function of the driver that two cards need fails: opening, loading, in a step,
// closing. The error says so, and nothing is left.
func TestCardFails(t *testing.T) {
	cardFails(t, func(name string, calls []int) []int {
		if !slices.Contains([]string{"cuGraphLaunch", "cuMemcpyPeerAsync", "cuStreamWaitEvent",
			"cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize", "cuEventRecord",
			"cuMemAlloc_v2"}, name) {
			return nil // one card's tests fail them all
		}
		return calls[len(calls)*2/3:][:1]
	})
}

// TestCardFailsLong: each function, at every call.
func TestCardFailsLong(t *testing.T) {
	drivertest.Long(t)
	cardFails(t, func(_ string, calls []int) []int { return calls })
}

func cardFails(t *testing.T, some func(name string, calls []int) []int) {
	f := fake(t, driver.CUDA, 2, 0)
	ckpt := tiny(t)
	life := func() (err error) {
		cards, err := cardsOf(f, 2, true)
		if err != nil {
			return err
		}
		h := host(t)
		dev, err := multi.New(planned([]int{1, 2}, 1), cards, h,
			func(rows int) bool { return rows > 1 })
		if err != nil {
			return errors.Join(err, h.Close())
		}
		defer func() { err = errors.Join(err, dev.Close()) }()
		_, err = run(t, dev, ckpt, engine.Settings{})
		return err
	}
	hosttest.Check(t, life())
	at := map[string][]int{}
	trace := f.Trace()
	for i, name := range trace {
		at[name] = append(at[name], i)
	}
	frees := func(name string) bool {
		return slices.ContainsFunc([]string{"Free", "Destroy", "Unload", "Release"},
			func(s string) bool { return strings.Contains(name, s) })
	}
	for name, calls := range at {
		for _, i := range some(name, calls) {
			if i+1 < len(trace) && !frees(name) && frees(trace[i+1]) {
				continue // the card could not be made current to give something back
			}
			f.RestartAs(machine(2, 0))
			f.FailCall("", i+1, 46)
			err := life()
			var e *driver.Error
			if !errors.As(err, &e) || e.Code != 46 {
				t.Errorf("call %d, %s: %v", i, name, err)
			}
			if left := f.Leaks(); left != "" {
				t.Errorf("call %d, %s, leaves %s", i, name, left)
			}
		}
	}
}

// stepped is an engine over a device, and the logits of its first step.
func stepped(t *testing.T, dev engine.Device) (*engine.InProcess, []float32) {
	t.Helper()
	eng := hosttest.Must(engine.New(dev, tiny(t),
		engine.Settings{Pages: 4, MaxNumBatchedTokens: 4}))(t)
	logits := make([]float32, eng.Spec().Vocab)
	hosttest.Check(t, eng.Step(t.Context(), steps()[0], logits))
	return eng, logits
}

// TestGoesOn: after a step in which a card failed, the next one is as if nothing had been.
func TestGoesOn(t *testing.T) {
	f := fake(t, driver.CUDA, 2, 0)
	dev := overCards(t, f, true, nil, way{ends: []int{1, 2}, hosted: []int{0}})
	eng, want := stepped(t, dev)
	got := make([]float32, len(want))
	for _, name := range []string{"cuGraphLaunch", "cuMemcpyPeerAsync", "cuMemcpyDtoHAsync_v2",
		"cuMemcpyHtoDAsync_v2", "cuStreamWaitEvent", "cuStreamSynchronize"} {
		f.FailCall(name, 1, 1)
		if err := eng.Step(t.Context(), steps()[0], got); err == nil ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s failed: %v", name, err)
		}
		if err := eng.Step(t.Context(), steps()[0], got); err != nil || !slices.Equal(want, got) {
			t.Errorf("after %s: %v, the same logits: %v", name, err, slices.Equal(want, got))
		}
	}
	hosttest.Check(t, eng.Close())
}
