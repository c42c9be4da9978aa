//go:build linux

package worker

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/gpu/multi"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Several devices in one worker, and the CPU that computes experts among them.

// cutAt is how a test places a model.
type cutAt struct {
	Ends    []int // the layer after the last one of each card
	Hosted  []int // layers whose experts the CPU computes
	Streams int   // from how many rows on they are copied to the card; 0: never
}

// kind is a worker with that.
func (c cutAt) kind(t testing.TB, of string) string {
	t.Helper()
	text := hosttest.Must(json.Marshal(c))(t)
	return "placed:" + of + ":" + string(text)
}

// openPlaced is the worker's side: CPUs in the place of cards, or cards of the fake driver's.
func openPlaced(where string) (dev engine.Device, said string, err error) {
	kind, text, _ := strings.Cut(where, ":")
	var c cutAt
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return nil, "", err
	}
	dev, err = c.open(kind)
	return dev, "layers on " + kind, err
}

func (c cutAt) open(kind string) (engine.Device, error) {
	var cards []engine.Device
	var f *drivertest.Fake
	if kind != "cpu" {
		var err error
		if f, err = drivertest.Open(driver.CUDA, drivertest.Machine{Devices: len(c.Ends),
			Name: "Fake H100", Major: 9, Memory: 1 << 34}); err != nil {
			return nil, err
		}
	}
	var plan multi.Plan
	from := 0
	for i, end := range c.Ends {
		share := multi.Share{Card: i, From: from, To: end}
		for _, layer := range c.Hosted {
			if layer >= from && layer < end {
				share.CPUExperts = append(share.CPUExperts, layer)
			}
		}
		plan.Shares, from = append(plan.Shares, share), end
		dev, err := cpu.New(1)
		if f != nil {
			dev, err = device.Open(f.Driver, device.Options{Index: i, Arch: "sm_90"})
		}
		if err != nil {
			return nil, err
		}
		cards = append(cards, dev)
	}
	host, err := cpu.New(1)
	if err != nil {
		return nil, err
	}
	var streams func(rows int) bool
	if c.Streams > 0 {
		streams = func(rows int) bool { return rows >= c.Streams }
	}
	dev, err := multi.New(plan, cards, host, streams)
	if err != nil || f == nil {
		return dev, err
	}
	return &fakeSplit{dev, f}, nil
}

// fakeSplit is a split over the fake driver's cards.
type fakeSplit struct {
	*multi.Device
	f *drivertest.Fake
}

func (d *fakeSplit) Close() error {
	if err := d.Device.Close(); err != nil {
		return err
	}
	if left := d.f.Leaks(); left != "" {
		return errors.New("not given back: " + left)
	}
	return d.f.Close()
}

// TestPlaced: wherever a model lies, the worker's steps give what the same devices give here, bit
// for bit, at one message each way for a step.
func TestPlaced(t *testing.T) {
	ckpt := tiny(t)
	for what, x := range map[string]struct {
		kind string
		cut  cutAt
		o    engine.Settings
	}{
		"two": {"cpu", cutAt{Ends: []int{1, 2}}, engine.Settings{}},
		"experts on the CPU": {"cpu", cutAt{Ends: []int{2}, Hosted: []int{1}},
			engine.Settings{Compute: engine.Int8}},
		"weights of no file": {"cpu", cutAt{Ends: []int{1, 2}, Hosted: []int{0}},
			engine.Settings{Dense: engine.DenseQ8}},
		"streamed": {"cpu", cutAt{Ends: []int{1, 2}, Hosted: []int{0, 1},
			Streams: 2}, engine.Settings{}},
		"cards": {"CUDA", cutAt{Ends: []int{1, 2}, Hosted: []int{1}},
			engine.Settings{Compute: engine.Rounded}},
		"cards, 8-bit dense weights": {"CUDA", cutAt{Ends: []int{1, 2}},
			engine.Settings{Compute: engine.Rounded, Dense: engine.DenseQ8}},
	} {
		t.Run(what, func(t *testing.T) {
			x.o.Pages, x.o.MaxNumBatchedTokens = 4, 2
			here := hosttest.Must(x.cut.open(x.kind))(t)
			want, err := stepsOf(t, engine.On(here), ckpt, x.o)
			if err = errors.Join(err, here.Close()); err != nil {
				t.Fatal(err)
			}
			told := &said{}
			dev := opened(t, x.cut.kind(t, x.kind), Options{Notify: told.log})
			if told.String() != "layers on "+x.kind || !dev.Several() ||
				dev.c.stepDeadline() != severalDeadline {
				t.Errorf("told %q, several: %v", told, dev.Several())
			}
			got, err := stepsOf(t, dev, ckpt, x.o)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%v, the same logits: %v", err, slices.Equal(got, want))
			}
			if c := dev.Traffic(); c != (Traffic{3, 3, 3}) {
				t.Errorf("3 steps were %+v", c)
			}
		})
	}
}

// stepsOf are the logits of a prompt and two tokens.
func stepsOf(t testing.TB, b engine.Backend, ckpt *checkpoint.Checkpoint,
	o engine.Settings) (all []float32, err error) {
	eng, err := b.Load(t.Context(), ckpt, o, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	for _, b := range []*engine.Batch{rows(0, 15, 16), rows(2, 17), rows(3, 9)} {
		logits := make([]float32, ckpt.Spec.Vocab)
		if err := eng.Step(t.Context(), b, logits); err != nil {
			return nil, err
		}
		all = append(all, logits...)
	}
	return all, nil
}

// TestPlacedSuite: the suite of every device, with a cut between the layers of one slot of a page,
// and experts in all places; taps are read where they were written; the pool is read and written as
// one.
func TestPlacedSuite(t *testing.T) {
	dev := opened(t, cutAt{Ends: []int{1, 3}, Hosted: []int{0, 2}, Streams: 100}.kind(t, "cpu"),
		Options{})
	config := enginetest.Config{Backend: dev, Dir: testdata + "T2"}
	for _, check := range enginetest.Programs(config) {
		if err := check.Run(t.Context()); err != nil {
			t.Errorf("%s: %v", check.Name, err)
		}
	}
	taps := 0
	config = enginetest.Config{Backend: opened(t,
		cutAt{Ends: []int{1, 3, 4}, Hosted: []int{1, 2}}.kind(t, "cpu"), Options{}), Dir: testdata +
		"T1"}
	if err := enginetest.Intermediates(t.Context(), config,
		func(string, float64) { taps++ }); err != nil || taps == 0 {
		t.Errorf("%d taps: %v", taps, err)
	}
	eng := hosttest.Must(dev.Load(t.Context(), tinyOf(t, 3),
		engine.Settings{Pages: 3, MaxNumBatchedTokens: 1}, nil))(t)
	want := make([]byte, eng.Cache().Bytes())
	for i := range want {
		want[i] = byte(i * i >> 5)
	}
	got := make([]byte, len(want))
	if err := errors.Join(eng.Cache().Write(0, want), eng.Cache().Read(0, got),
		eng.Close()); err != nil || !slices.Equal(got, want) {
		t.Errorf("the pool: %v", err)
	}
}
