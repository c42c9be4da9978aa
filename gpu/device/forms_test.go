package device

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Which kernels a step launches, and that every one of them can be replaced by the plain ones.

// compiled is a program of the tiny model on a device, with memory that the test gives back.
func compiled(t *testing.T, dev *Device, o engine.Options, rows int) *step {
	t.Helper()
	p, err := engine.Record(modeltest.Tiny(), o, rows)
	if err != nil {
		t.Fatal(err)
	}
	var regions []engine.Region
	alloc := func(bytes int64) engine.Region {
		r, err := dev.Alloc(bytes)
		if err != nil {
			t.Fatal(err)
		}
		regions = append(regions, r)
		return r
	}
	arena := alloc(p.Layout())
	for _, b := range p.Buffers {
		switch b.Home {
		case engine.Scratch:
			b.Region = arena
		case engine.Cache, engine.Weight:
			b.Region = alloc(p.BytesOf(b))
		}
	}
	s, err := dev.compile(p, dev.plain)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for _, r := range regions {
			if err := r.Free(); err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

// shown is a layer's phases in short: the form, or the kernels of the plain one.
func shown(s *step, layer int) string {
	var words []string
	for _, ph := range s.phases {
		if !strings.HasPrefix(s.p.Ops[ph.from].Label, fmt.Sprintf("layer%d.", layer)) {
			continue
		}
		word := string(ph.form)
		if ph.form == "" {
			word = s.p.Ops[ph.from].Kind.String()
		}
		words = append(words, fmt.Sprintf("%s:%d", word, len(ph.ready)))
	}
	return strings.Join(words, " ")
}

// TestFormsTaken: what a layer is made of, with the launches of each part.
func TestFormsTaken(t *testing.T) {
	dev, _ := open(t, driver.CUDA)
	for _, x := range []struct {
		name string
		o    engine.Options
		rows int
		want string
	}{
		{"decode", engine.Options{}, 1, "decode_qkv:1 decode_attend:1 decode_linear:1 decode_route:1 decode_gate_up:1 decode_down:1"},
		{"decode of 16 rows", engine.Options{KV: "bf16"}, 16, "decode_qkv:1 decode_attend:1 decode_linear:1 decode_route:1 decode_gate_up:1 decode_down:1"},
		{"prefill", engine.Options{}, 17, "norm:1 prefill_linear:3 rope:1 write_kv:1 decode_attend:1 prefill_linear:1 norm:1 prefill_linear:1 route:2 " +
			"prefill_gate_up:1 prefill_down:1 combine:1"},
		{"prefill on a bf16 cache", engine.Options{KV: "bf16"}, 64, "norm:1 prefill_linear:3 rope:1 write_kv:1 prefill_attend:1 prefill_linear:1 norm:1 prefill_linear:1 " +
			"route:2 prefill_gate_up:1 prefill_down:1 combine:1"},
		{"decode in 8 bits", engine.Options{Compute: engine.Int8}, 4, "decode_qkv:1 decode_attend:1 decode_linear:1 decode_route:2 quantize:1 gate_up:1 quantize:1 down:1 combine:1"},
		{"prefill in 8 bits", engine.Options{Compute: engine.Int8}, 32, "norm:1 prefill_linear:3 rope:1 write_kv:1 prefill_attend:1 prefill_linear:1 norm:1 prefill_linear:1 " +
			"route:2 quantize:1 gate_up:1 quantize:1 down:1 combine:1"},
		{"a tap inside the norm and the projections", engine.Options{Taps: []string{"layer0.input_layernorm"}}, 1,
			"norm:1 tap:1 decode_linear:3 rope:1 write_kv:1 decode_attend:1 decode_linear:1 decode_route:1 decode_gate_up:1 decode_down:1"},
		{"a tap behind the router", engine.Options{Taps: []string{"layer0.router_logits"}}, 1,
			"decode_qkv:1 decode_attend:1 decode_linear:1 norm:1 decode_linear:1 tap:1 route:2 decode_gate_up:1 decode_down:1"},
	} {
		t.Run(x.name, func(t *testing.T) {
			x.o.Pages = 4
			if got := shown(compiled(t, dev, x.o, x.rows), 0); got != x.want {
				t.Errorf("%s\nnot %s", got, x.want)
			}
		})
	}
}

// TestPlainDevice: asked for, of the device or by a program that must not depend on its batch, the plain kernels stand alone.
func TestPlainDevice(t *testing.T) {
	for name, x := range map[string]struct {
		device  Options
		program engine.Options
	}{"the device": {Options{Plain: true}, engine.Options{Pages: 4}}, "the program": {Options{}, engine.Options{Pages: 4, Deterministic: true}}} {
		t.Run(name, func(t *testing.T) {
			dev, _ := openWith(t, driver.CUDA, x.device)
			for _, rows := range []int{1, 17} {
				for _, ph := range compiled(t, dev, x.program, rows).phases {
					if ph.form != "" || ph.to != ph.from+1 {
						t.Errorf("a step of %d rows has %s", rows, ph.form)
					}
				}
			}
		})
	}
}

// TestDistrust: each form is replaced by plain kernels, and the logits stay the same up to rounding.
func TestDistrust(t *testing.T) {
	ckpt := tiny(t)
	want := make([]float32, ckpt.Spec.Vocab)
	run := func(t *testing.T, distrusted []Form, logits []float32) *Device {
		dev, _ := open(t, driver.CUDA)
		dev.Distrust(distrusted...)
		eng, err := engine.New(dev, ckpt, engine.Options{Pages: 4, MaxRows: 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := eng.Step(t.Context(), prompt(), logits); err != nil {
			t.Error(err)
		}
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
		return dev
	}
	t.Run("none", func(t *testing.T) { run(t, nil, want) })
	for _, f := range Forms()[:6] { // those of few rows
		t.Run(string(f), func(t *testing.T) {
			got := make([]float32, len(want))
			dev := run(t, []Form{f}, got)
			if !slices.Equal(dev.Distrusted(), []Form{f}) {
				t.Errorf("out of use: %v", dev.Distrusted())
			}
			if strings.Contains(shown(compiled(t, dev, engine.Options{Pages: 4}, 2), 0), string(f)) {
				t.Errorf("%s is still taken", f)
			}
			near(t, got, want, 1e-4)
		})
	}
}

// near wants equal numbers, up to rounding.
func near(t *testing.T, got, want []float32, bound float32) {
	t.Helper()
	for i := range want {
		if d := got[i] - want[i]; !(d <= bound && d >= -bound) {
			t.Errorf("logit %d is %v, not %v", i, got[i], want[i])
			return
		}
	}
}

// TestProve: on warps of 64 every form is right, and all are tried. TestWrongKernels is the same on warps of 32.
func TestProve(t *testing.T) {
	dev, _ := open(t, driver.HIP)
	proofs, err := dev.Prove(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(proofs) != len(Forms()) || len(dev.Distrusted()) > 0 {
		t.Errorf("%d proofs, out of use: %v", len(proofs), dev.Distrusted())
	}
	for _, p := range proofs {
		t.Logf("%-16s %.1e", p.Form, p.Error)
		if !p.OK || p.Error > p.Bound || p.Error == 0 {
			t.Errorf("%+v", p)
		}
	}
}

// TestWrongKernels: kernels that compute something else are found, named and taken out of use; the model then runs on the plain ones.
func TestWrongKernels(t *testing.T) {
	dev, _ := open(t, driver.CUDA)
	for as, is := range map[string]string{"decode_attend_f32": "decode_attend_bf16", "prefill_linear_3": "prefill_linear_1"} {
		f, err := dev.module.Function(is)
		if err != nil {
			t.Fatal(err)
		}
		dev.functions[as] = f
	}
	proofs, err := dev.Prove(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range proofs {
		if wrong := p.Form == Attend || p.Form == PrefillLinear; p.OK == wrong || (p.Why == "") == wrong {
			t.Errorf("%+v", p)
		}
	}
	if want := []Form{Attend, PrefillLinear}; !slices.Equal(dev.Distrusted(), want) {
		t.Errorf("out of use: %v, not %v", dev.Distrusted(), want)
	}
	if got := shown(compiled(t, dev, engine.Options{Pages: 4}, 17), 1); strings.Contains(got, "decode_attend") || strings.Contains(got, "prefill_linear") {
		t.Errorf("still taken: %s", got)
	}
}
