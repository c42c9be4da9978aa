//go:build linux

package worker

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/fakedriver"
	"github.com/ossrun/ossrun/gpu/placement"
	"github.com/ossrun/ossrun/gpu/split"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
)

// Several devices in one worker, and the CPU that computes experts among them.

// cutAt is how a test places a model.
type cutAt struct {
	Ends    []int // the layer behind the last one of each card
	Hosted  []int // layers whose experts the CPU computes
	Streams int   // from how many rows on they are copied to the card; 0: never
}

func (c cutAt) text(t testing.TB) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// openPlaced is the worker's side: CPUs in the place of cards, or cards of the fake driver's.
func openPlaced(kind string, place json.RawMessage) (engine.Device, []string, error) {
	var c cutAt
	if err := json.Unmarshal(place, &c); err != nil {
		return nil, nil, err
	}
	dev, err := c.open(kind)
	return dev, []string{"layers on " + kind}, err
}

func (c cutAt) open(kind string) (engine.Device, error) {
	var cards []engine.Device
	var f *fakedriver.Fake
	if kind != "cpu" {
		var err error
		if f, err = fakedriver.Open(driver.CUDA, fakedriver.Machine{Devices: len(c.Ends), Name: "Fake H100", Major: 9, Memory: 1 << 34}); err != nil {
			return nil, err
		}
	}
	var plan placement.Plan
	from := 0
	for i, end := range c.Ends {
		share := placement.Share{Card: i, From: from, To: end}
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
	o := split.Options{}
	if c.Streams > 0 {
		o.Streams = func(rows int) bool { return rows >= c.Streams }
	}
	dev, err := split.New(plan, cards, host, o)
	if err != nil || f == nil {
		return dev, err
	}
	return &fakeSplit{dev, f}, nil
}

// fakeSplit is a split over the fake driver's cards.
type fakeSplit struct {
	*split.Device
	f *fakedriver.Fake
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

// placed starts a worker with several devices, which the test closes.
func placed(t testing.TB, kind string, c cutAt) *Placed {
	t.Helper()
	dev, ok := opened(t, kind, Options{Wanted: Wanted{Place: c.text(t)}}).Placed()
	if !ok {
		t.Fatal("several devices are one")
	}
	return dev
}

// TestPlaced: wherever a model lies, the worker's steps give what the same devices give here, bit for bit, at one message each way for a step.
func TestPlaced(t *testing.T) {
	ckpt := tiny(t)
	for what, x := range map[string]struct {
		kind string
		cut  cutAt
		o    engine.Settings
	}{
		"two":                        {"cpu", cutAt{Ends: []int{1, 2}}, engine.Settings{}},
		"experts on the CPU":         {"cpu", cutAt{Ends: []int{2}, Hosted: []int{1}}, engine.Settings{Compute: engine.Int8}},
		"weights of no file":         {"cpu", cutAt{Ends: []int{1, 2}, Hosted: []int{0}}, engine.Settings{Dense: engine.DenseQ8}},
		"streamed":                   {"cpu", cutAt{Ends: []int{1, 2}, Hosted: []int{0, 1}, Streams: 2}, engine.Settings{}},
		"cards":                      {"CUDA", cutAt{Ends: []int{1, 2}, Hosted: []int{1}}, engine.Settings{Compute: engine.Rounded}},
		"cards, 8-bit dense weights": {"CUDA", cutAt{Ends: []int{1, 2}}, engine.Settings{Compute: engine.Rounded, Dense: engine.DenseQ8}},
	} {
		t.Run(what, func(t *testing.T) {
			x.o.Pages, x.o.MaxNumBatchedTokens = 4, 2
			here, err := x.cut.open(x.kind)
			if err != nil {
				t.Fatal(err)
			}
			want, err := stepsOf(t, here, ckpt, x.o)
			if err = errors.Join(err, here.Close()); err != nil {
				t.Fatal(err)
			}
			dev := placed(t, x.kind, x.cut)
			if said := dev.Said(); !slices.Equal(said, []string{"layers on " + x.kind}) {
				t.Errorf("said %q", said)
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
func stepsOf(t testing.TB, dev engine.Device, ckpt *checkpoint.Checkpoint, o engine.Settings) (all []float32, err error) {
	eng, err := engine.New(dev, ckpt, o)
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

// TestPlacedSuite: the suite of every device, with a cut between the layers of one slot of a page, and experts in all places; taps are read where they
// were written; the pool is read and written as one.
func TestPlacedSuite(t *testing.T) {
	dev := placed(t, "cpu", cutAt{Ends: []int{1, 3}, Hosted: []int{0, 2}, Streams: 100})
	config := enginetest.Config{Device: dev, Dir: testdata + "T2"}
	for _, check := range enginetest.Programs(config) {
		if err := check.Run(t.Context()); err != nil {
			t.Errorf("%s: %v", check.Name, err)
		}
	}
	taps := 0
	config = enginetest.Config{Device: placed(t, "cpu", cutAt{Ends: []int{1, 3, 4}, Hosted: []int{1, 2}}), Dir: testdata + "T1"}
	if err := enginetest.Intermediates(t.Context(), config, func(string, float64) { taps++ }); err != nil || taps == 0 {
		t.Errorf("%d taps: %v", taps, err)
	}
	eng, err := engine.New(dev, tinyOf(t, 3), engine.Settings{Pages: 3, MaxNumBatchedTokens: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, eng.Cache().Bytes())
	for i := range want {
		want[i] = byte(i * i >> 5)
	}
	got := make([]byte, len(want))
	if err := errors.Join(eng.Cache().Write(0, want), eng.Cache().Read(0, got), eng.Close()); err != nil || !slices.Equal(got, want) {
		t.Errorf("the pool: %v", err)
	}
}

// TestPlacedPages: how many pages there is room for is what the devices here say of themselves.
func TestPlacedPages(t *testing.T) {
	c := cutAt{Ends: []int{1, 2}}
	here, err := c.open("CUDA")
	if err != nil {
		t.Fatal(err)
	}
	s, o := tiny(t).Spec, engine.Settings{MaxNumBatchedTokens: 4}
	want, err := here.(engine.Placer).MostPages(s, o, 0.5)
	if err = errors.Join(err, here.Close()); err != nil || want < 1 {
		t.Fatal(want, err)
	}
	dev := placed(t, "CUDA", c)
	if got, err := dev.MostPages(s, o, 0.5); got != want || err != nil {
		t.Errorf("%d pages, %d here: %v", got, want, err)
	}
	if _, ok := opened(t, "cpu", Options{}).Placed(); ok {
		t.Error("one device is several")
	}
}

// TestPlacedRefusals: requests that no honest parent sends are refused, and the worker goes on; what only several devices can do is refused by one.
func TestPlacedRefusals(t *testing.T) {
	s := placedServer(t)
	good, err := json.Marshal(planText{tiny(t).Spec, engine.Settings{Pages: 2, MaxNumBatchedTokens: 2}, 2})
	if err != nil {
		t.Fatal(err)
	}
	refused := func(k kind, shared uint32, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if a, err := s.answer(&message{kind: k, shared: shared, text: []byte(text)}); err == nil {
				t.Errorf("%s %s: %+v", k, text, a)
			}
		}
	}
	refused(allocFor, 0, `{"Home":2}`) // before a plan
	refused(plan, 0, `{}`, `{"Rows":1}`, `[`, `{"Rows":100000}`)
	lie := func(change func(*planText)) string {
		var p planText
		if err := json.Unmarshal(good, &p); err != nil {
			t.Fatal(err)
		}
		change(&p)
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	refused(plan, 0, lie(func(p *planText) { p.Spec.KVHeads = 0 }), lie(func(p *planText) { p.Spec.Layers = math.MaxInt }), lie(func(p *planText) { p.Spec.Hidden = 1 << 40 }),
		lie(func(p *planText) { p.Spec.MaxPosition = -1 }), lie(func(p *planText) { p.Spec.MaxPosition = math.MaxInt }),
		lie(func(p *planText) { p.Options.Compute = "fast" }), lie(func(p *planText) { p.Spec.HeadDim = 3 }))
	if _, err := s.answer(&message{kind: plan, text: good}); err != nil {
		t.Fatal(err)
	}
	refused(allocFor, 0, `{"Home":1}`, `{"Home":9}`, `[`)
	refused(gather, 8, `{"Offset":4,"Bytes":8}`, `{"Bytes":9}`, `{"Bytes":-1}`, `{}`)
	refused(uploadFor, 0, `{}`, `{"Buffer":"x","Bytes":8}`, `{"Buffer":"model.norm.weight","Bytes":8}`, `{"Buffer":"model.norm.weight","Bytes":128}`,
		`{"Buffer":"model.norm.weight","Bytes":128,"Part":{"Path":"/dev/zero","Bytes":128,"Size":1000}}`, `{"Buffer":"model.norm.weight","Bytes":128,"Part":{"Bytes":8}}`)
	refused(mostPages, 0, `{}`, lie(func(p *planText) { p.Spec.Layers = 5 }), lie(func(p *planText) { p.Spec.Experts = 0 }))
	if a, err := s.answer(&message{kind: allocFor, text: []byte(`{"Home":2}`)}); err != nil {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := s.goodbye(); err != nil {
		t.Error(err)
	}
	one := crookedServer(t, cpuOf(1<<20))
	for _, k := range []kind{plan, allocFor, gather, uploadFor, mostPages} {
		if a, err := one.answer(&message{kind: k, text: good}); err == nil {
			t.Errorf("one device, %s: %+v", k, a)
		}
	}
	if _, err := one.goodbye(); err != nil {
		t.Error(err)
	}
}

// placedServer is a worker's state with several devices of little memory.
func placedServer(t testing.TB) *server {
	t.Helper()
	plan := placement.Plan{Shares: []placement.Share{{Card: 0, From: 0, To: 1}, {Card: 1, From: 1, To: 2, CPUExperts: []int{1}}}}
	dev, err := split.New(plan, []engine.Device{cpuOf(1 << 20), cpuOf(1 << 20)}, cpuOf(1<<20), split.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return crookedServer(t, dev)
}

// FuzzPlaced: whatever is asked of a worker with several devices, it answers.
func FuzzPlaced(f *testing.F) {
	s := placedServer(f)
	good, err := json.Marshal(planText{tiny(f).Spec, engine.Settings{Pages: 2, MaxNumBatchedTokens: 2}, 2})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(plan), uint32(0), good)
	f.Add(uint32(allocFor), uint32(0), []byte(`{"Home":2}`))
	f.Add(uint32(gather), uint32(8), []byte(`{"Offset":0,"Bytes":8}`))
	f.Add(uint32(uploadFor), uint32(0), []byte(`{"Buffer":"model.norm.weight","Bytes":128}`))
	f.Add(uint32(mostPages), uint32(0), []byte(`{"Options":{"MaxNumBatchedTokens":2}}`))
	f.Fuzz(func(t *testing.T, k, shared uint32, text []byte) {
		m := message{kind: plan + kind(k%uint32(goodbye-plan)), shared: shared % (slotBytes + 1), text: text}
		if k < uint32(kinds) && k != 0 && kind(k) != goodbye {
			m.kind = kind(k)
		}
		answers(t, s, &m)
	})
}
