package device

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Every call of the driver may fail. The error names it, and everything is freed.

// runLife opens a device, loads a model, prefills, decodes, samples twice and closes.
func runLife(t *testing.T, f *drivertest.Fake, ckpt *checkpoint.Checkpoint) (err error) {
	dev, err := Open(f.Driver, Options{Arch: arch(f.API())})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	eng, err := engine.New(dev, ckpt, engine.Settings{Pages: 4, MaxNumBatchedTokens: 2})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	logits := make([]float32, ckpt.Spec.Vocab)
	for _, b := range []*engine.Batch{prompt(), next()} {
		if err := eng.Step(t.Context(), b, logits); err != nil {
			return err
		}
	}
	if err := eng.Queue(t.Context(), next(), nil); err != nil {
		return err
	}
	if err := eng.Sample([]engine.SamplingParams{{Draw: engine.Draw{Temperature: 1, TopP: 0.9},
		Logprobs: 1, Mask: []uint64{^uint64(0), ^uint64(0)}}}); err != nil {
		return err
	}
	if err := eng.Queue(t.Context(), next(), []int32{0}); err != nil {
		return err
	}
	if err := eng.Sample([]engine.SamplingParams{{Logprobs: -1}}); err != nil {
		return err
	}
	var chosen [1]engine.SampledToken
	for range 2 {
		if err := eng.Wait(chosen[:]); err != nil {
			return err
		}
	}
	return nil
}

// isFree reports whether a function gives something back. Such a call does its work and may still
// report an error. Nothing can be given back if making the device current fails before it.
func isFree(name string) bool {
	for _, word := range []string{"Free", "Destroy", "Unload", "Release"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// TestEveryCallFails: each function the driver has, at its last call, in the step gpu also at its
// first and one in the middle.
func TestEveryCallFails(t *testing.T) {
	everyCallFails(t, func(calls []int) []int {
		n := len(calls)
		return slices.Compact(drivertest.Some(1, []int{calls[n-1], calls[0], calls[n/2]}))
	})
}

// TestEveryCallFailsLong: every single call.
func TestEveryCallFailsLong(t *testing.T) {
	drivertest.Long(t)
	everyCallFails(t, func(calls []int) []int { return calls })
}

func everyCallFails(t *testing.T, some func(calls []int) []int) {
	ckpt := tiny(t)
	for _, api := range apis {
		t.Run(string(api), func(t *testing.T) {
			f := hosttest.Must(drivertest.Open(api, drivertest.Machine{}))(t)
			defer f.Close()
			hosttest.Check(t, runLife(t, f, ckpt))
			trace := f.Trace()
			at := map[string][]int{}
			for i, name := range trace {
				at[name] = append(at[name], i)
			}
			if len(at) < 25 {
				t.Errorf("only %d functions are called", len(at))
			}
			tried := 0
			for name, calls := range at {
				for _, i := range some(calls) {
					tried++
					f.Restart()
					f.FailCall("", i+1, 46)
					err := runLife(t, f, ckpt)
					var e *driver.Error
					if !errors.As(err, &e) || e.Code != 46 || e.Call != name {
						t.Errorf("call %d, %s: %v", i, name, err)
					}
					if left := f.Leaks(); left != "" && !(i+1 < len(trace) && !isFree(name) &&
						isFree(trace[i+1])) {
						t.Errorf("call %d, %s, leaves %s", i, name, left)
					}
				}
			}
			t.Logf("%d of %d calls failed", tried, len(trace))
		})
	}
}

// TestStepAfterFailure: after a call has failed in the middle of a step, the next step gives the
// same logits.
func TestStepAfterFailure(t *testing.T) {
	dev, f := open(t, driver.CUDA)
	eng := hosttest.Must(engine.New(dev, tiny(t),
		engine.Settings{Pages: 4, MaxNumBatchedTokens: 2}))(t)
	want, got := make([]float32, eng.Spec().Vocab), make([]float32, eng.Spec().Vocab)
	hosttest.Check(t, eng.Step(t.Context(), prompt(), want))
	for _, name := range []string{"cuMemcpyHtoDAsync_v2", "cuGraphLaunch", "cuMemcpyDtoHAsync_v2",
		"cuStreamSynchronize"} {
		f.FailCall(name, 1, 1)
		if err := eng.Step(t.Context(), next(), got); err == nil {
			t.Errorf("%s failed, the step did not", name)
		}
		if err := eng.Step(t.Context(), prompt(), got); err != nil || !slices.Equal(want, got) {
			t.Errorf("after %s: %v, the same logits: %v", name, err, slices.Equal(want, got))
		}
	}
	hosttest.Check(t, eng.Close())
}

// TestMemoryFull: the error of a card that is too small has its name, and nothing is leaked.
func TestMemoryFull(t *testing.T) {
	f, err := drivertest.Open(driver.CUDA, drivertest.Machine{Devices: 1, Name: "Small Card",
		Major: 9, Memory: 100 << 10})
	hosttest.Check(t, err)
	defer f.Close()
	err = runLife(t, f, tiny(t))
	if !errors.Is(err, driver.ErrOutOfMemory) || !strings.Contains(err.Error(), "Small Card") {
		t.Errorf("%v", err)
	}
	if left := f.Leaks(); left != "" {
		t.Error(left)
	}
}
