package multi_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/gpu/multi"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Every mode of one card is there over several, and with experts on the host.

// prefilled gives the logits of a prompt that is long enough for the matrix unit, and of a token
// behind it.
func prefilled(t *testing.T, dev engine.Device, ckpt *checkpoint.Checkpoint,
	o engine.Settings) (all []float32) {
	t.Helper()
	o.Pages, o.MaxNumBatchedTokens = 4, 20
	eng := hosttest.Must(engine.New(dev, ckpt, o))(t)
	for _, rows := range []int{20, 1} {
		b := &engine.Batch{LogitRows: []int32{int32(rows - 1)},
			Seqs: []engine.SeqRows{{Rows: int32(rows), Full: []int32{1}, Window: []int32{2}}}}
		if rows == 1 {
			b.Seqs[0].Start = 20
		}
		if o.KVCacheDtype == engine.KVFP8 {
			b.Twins = []int32{-1, -1, 3, -1}
		}
		for i := range rows {
			b.Tokens = append(b.Tokens, int32((7*i+rows)%eng.Spec().Vocab))
		}
		logits := make([]float32, eng.Spec().Vocab)
		hosttest.Check(t, eng.Step(t.Context(), b, logits))
		all = append(all, logits...)
	}
	if err := eng.Close(); err != nil {
		t.Error(err)
	}
	return all
}

// TestModes: two cards compute the bits of one in every mode, with dense weights in
// either form; with the experts of a layer on the host, which rounds nothing where a card rounds to
// bf16 or MXFP4, it moves by that rounding at most.
func TestModes(t *testing.T) {
	f, err := drivertest.Open(driver.CUDA, drivertest.Machine{Devices: 2, Name: "Fake 5090",
		Major: 12, Memory: 1 << 34})
	hosttest.Check(t, err)
	cards := func(n int) (list []engine.Device) {
		for i := range n {
			dev := hosttest.Must(device.Open(f.Driver, device.Options{Index: i}))(t)
			list = append(list, dev)
		}
		return list
	}
	ckpt := tiny(t)
	one := cards(1)[0]
	modes := one.Caps().Computes
	if !slices.Contains(modes, engine.MX) {
		t.Fatalf("a card that multiplies MXFP4 has %v", modes)
	}
	want := map[string][]float32{}
	for _, mode := range modes {
		for _, dense := range []string{engine.DenseBF16, engine.DenseQ8} {
			want[mode+dense] = prefilled(t, one, ckpt, engine.Settings{Compute: mode, Dense: dense})
		}
	}
	const fp8 = "with pages of 8 bits"
	eight := engine.Settings{Compute: engine.Rounded, KVCacheDtype: engine.KVFP8}
	want[fp8] = prefilled(t, one, ckpt, eight)
	hosttest.Check(t, one.Close())
	if slices.Equal(want[fp8], want[engine.Rounded+engine.DenseBF16]) {
		t.Error("pages of 8 bits give the logits of bf16")
	}
	if slices.Equal(want[engine.Rounded+engine.DenseBF16], want[engine.Exact+engine.DenseBF16]) ||
		slices.Equal(want[engine.MX+engine.DenseBF16], want[engine.Rounded+engine.DenseBF16]) {
		t.Error("the modes do not differ: nothing was rounded")
	}
	for _, w := range []way{{ends: []int{1, 2}}, {ends: []int{1, 2}, hosted: []int{1}}} {
		dev := hosttest.Must(multi.New(planned(w.ends, w.hosted...), cards(2), host(t), nil))(t)
		if got := dev.Caps().Computes; !slices.Equal(got, modes) {
			t.Errorf("%v has the modes %v, one card %v", w, got, modes)
		}
		if d := worst(want[fp8], prefilled(t, dev, ckpt, eight)); d > 0 && len(w.hosted) == 0 {
			t.Errorf("%v, %s: a logit moved by %.2g", w, fp8, d)
		}
		for _, mode := range modes {
			for _, dense := range []string{engine.DenseBF16, engine.DenseQ8} {
				t.Run(fmt.Sprintf("%v/%s/%s", w, mode, dense), func(t *testing.T) {
					allowed := 0.0
					if len(w.hosted) > 0 {
						allowed = acrossInt8 // of all that rounds
						if mode == engine.Exact && dense == engine.DenseBF16 {
							allowed = across
						}
					}
					d := worst(want[mode+dense],
						prefilled(t, dev, ckpt, engine.Settings{Compute: mode, Dense: dense}))
					t.Logf("a logit moved by %.2g", d)
					if d > allowed {
						t.Errorf("a logit moved by %.2g, allowed are %.2g", d, allowed)
					}
				})
			}
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
	left := f.Leaks()
	if err := f.Close(); err != nil || left != "" {
		t.Errorf("not given back: %s %v", left, err)
	}
}

// fewer is a device without a mode, and without kernels for dense weights in 8 bits.
type fewer struct{ engine.Device }

func (fewer) Caps() engine.Caps { return engine.Caps{Computes: []string{engine.Exact}} }

// TestModesOfAll: a mode that one of several cards lacks is refused, and what the host lacks only
// if it has experts.
func TestModesOfAll(t *testing.T) {
	open := func() engine.Device {
		return hosttest.Must(cpu.New(1))(t)
	}
	for what, x := range map[string]struct {
		cards  []engine.Device
		host   engine.Device
		hosted []int
		modes  []string
		q8     bool
	}{
		"all have it": {[]engine.Device{open(), open()}, open(), []int{0},
			[]string{engine.Exact, engine.Int8, engine.Int8Fast}, true},
		"a card lacks it": {[]engine.Device{open(), fewer{open()}}, open(), nil,
			[]string{engine.Exact}, false},
		"an idle host lacks it": {[]engine.Device{open(), open()}, fewer{open()}, nil,
			[]string{engine.Exact, engine.Int8, engine.Int8Fast}, true},
		"the host lacks it": {[]engine.Device{open(), open()}, fewer{open()}, []int{1},
			[]string{engine.Exact}, true},
		"there is no host": {[]engine.Device{open(), open()}, nil, nil,
			[]string{engine.Exact, engine.Int8, engine.Int8Fast}, true},
	} {
		dev := hosttest.Must(multi.New(planned([]int{1, 2}, x.hosted...), x.cards, x.host, nil))(t)
		if got := dev.Caps(); !slices.Equal(got.Computes, x.modes) || got.DenseQ8 != x.q8 {
			t.Errorf("%s: %+v", what, got)
		}
		ckpt := tiny(t)
		eng, err := engine.New(dev, ckpt, engine.Settings{Pages: 4, MaxNumBatchedTokens: 2,
			Dense: engine.DenseQ8, Compute: engine.Int8})
		if err == nil {
			err = eng.Close()
		}
		if refused := err != nil; refused == (x.q8 && len(x.modes) > 1) {
			t.Errorf("%s: %v", what, err)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}
