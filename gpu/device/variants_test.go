package device

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Which kernels a step launches, and that every one of them can be replaced by the reference ones.

// compiled is a program of the tiny model on a device, with memory that the test gives back.
func compiled(t *testing.T, dev *Device, o engine.Settings, rows int) *step {
	t.Helper()
	return compiledProgram(t, dev, hosttest.Must(engine.Record(modeltest.Tiny(), o, rows))(t))
}

func compiledProgram(t *testing.T, dev *Device, p *engine.Program) *step {
	t.Helper()
	var regions []engine.Region
	alloc := func(bytes int64) engine.Region {
		r := hosttest.Must(dev.Alloc(bytes))(t)
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
	s := hosttest.Must(dev.compile(&step{p: p}))(t)
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

// shown is a layer's phases in short: the variant, or the kernels of the reference one.
func shown(s *step, layer int) string {
	var words []string
	for _, ph := range s.phases {
		if !strings.HasPrefix(s.p.Ops[ph.from].Label, fmt.Sprintf("layer%d.", layer)) {
			continue
		}
		word := string(ph.variant)
		if ph.variant == "" {
			word = s.p.Ops[ph.from].Kind.String()
		}
		words = append(words, fmt.Sprintf("%s:%d", word, len(ph.ready)))
	}
	return strings.Join(words, " ")
}

// TestVariantsTaken: what a layer is made of, with the launches of each part.
func TestVariantsTaken(t *testing.T) {
	dev, _ := open(t, driver.CUDA)
	for _, x := range []struct {
		name string
		o    engine.Settings
		rows int
		want string
	}{
		{"decode", engine.Settings{}, 1,
			"decode_qkv:1 decode_attend:1 decode_linear:1 decode_route:1 decode_gate_up:1 " +
				"decode_down:1"},
		{"decode of 8 rows", engine.Settings{KVCacheDtype: "bf16"}, 8,
			"decode_qkv:1 decode_attend:1 decode_linear:1 decode_route:1 decode_gate_up:1 " +
				"decode_down:1"},
		{"prefill", engine.Settings{}, 17,
			"norm:1 prefill_linear:1 rope:1 decode_attend:1 prefill_linear:1 " +
				"decode_route:1 prefill_gate_up:1 prefill_down:1 combine:1"},
		{"prefill on a bf16 cache", engine.Settings{KVCacheDtype: "bf16"}, 64,
			"norm:1 prefill_linear:1 rope:1 prefill_attend:2 prefill_linear:1 " +
				"decode_route:1 prefill_gate_up:1 prefill_down:1 combine:1"},
		{"decode in 8 bits", engine.Settings{Compute: engine.Int8}, 4,
			"decode_qkv:1 decode_attend:1 decode_linear:1 decode_route:1 quantize:1 gate_up:1 " +
				"quantize:1 down:1 combine:1"},
		{"prefill in 8 bits", engine.Settings{Compute: engine.Int8}, 32,
			"norm:1 prefill_linear:1 rope:1 prefill_attend:2 prefill_linear:1 " +
				"decode_route:1 quantize:1 gate_up:1 quantize:1 down:1 combine:1"},
		{"decode of 8-bit weights", engine.Settings{Dense: engine.DenseQ8}, 2,
			"decode_qkv_q8:1 decode_attend:1 decode_linear_q8:1 " +
				"decode_route:1 decode_gate_up:1 decode_down:1"},
		{"prefill of 8-bit weights", engine.Settings{Dense: engine.DenseQ8,
			Compute: engine.Rounded}, 17,
			"prefill_qkv_wgmma_q8:1 prefill_attend_bf16:2 " +
				"prefill_linear_direct_wgmma_q8:1 decode_route:1 prefill_gate_up_wgmma:2 combine:1"},
		{"a tap inside the norm and the projections",
			engine.Settings{Taps: []string{"layer0.input_layernorm"}}, 1,
			"norm:1 tap:1 decode_linear:3 rope:1 decode_attend:1 decode_linear:1 " +
				"decode_route:1 decode_gate_up:1 decode_down:1"},
		{"a tap behind the router", engine.Settings{Taps: []string{"layer0.router_logits"}}, 1,
			"decode_qkv:1 decode_attend:1 decode_linear:1 norm:1 decode_linear:1 tap:1 route:2 " +
				"decode_gate_up:1 decode_down:1"},
	} {
		t.Run(x.name, func(t *testing.T) {
			x.o.Pages = 4
			if got := shown(compiled(t, dev, x.o, x.rows), 0); got != x.want {
				t.Errorf("%s\nnot %s", got, x.want)
			}
		})
	}
}

// TestRouterIsNotRounded: nor that of a layer whose experts are on another device, which is where a
// program of a card may end.
func TestRouterIsNotRounded(t *testing.T) {
	dev, _ := open(t, driver.CUDA)
	for _, o := range []engine.Settings{{}, {Deterministic: true}} {
		o.Pages, o.Compute = 4, engine.Rounded
		p := hosttest.Must(engine.Record(modeltest.Tiny(), o, 17))(t)
		route := slices.IndexFunc(p.Ops,
			func(op *engine.Op) bool { return op.Kind == engine.Route })
		p.Ops, p.Keep = p.Ops[:route], p.Ops[route].In
		s := compiledProgram(t, dev, p)
		if last := s.phases[len(s.phases)-1]; last.variant != PrefillLinear {
			t.Errorf("deterministic %v: the router is by %s", o.Deterministic, last.variant)
		}
	}
}

// TestReferenceDevice: asked for, only the reference kernels are left.
func TestReferenceDevice(t *testing.T) {
	dev, _ := openWith(t, driver.CUDA, Options{Reference: true})
	for _, rows := range []int{1, 17, 300} {
		for _, o := range []engine.Settings{{}, {Deterministic: true, Compute: engine.Rounded}} {
			o.Pages = 4
			for _, ph := range compiled(t, dev, o, rows).phases {
				if ph.to != ph.from+1 || ph.variant != "" {
					t.Errorf("a step of %d rows has %s", rows, ph.variant)
				}
			}
		}
	}
}

// TestSteadyKernels: a deterministic program has the same kernels in steps of any size, by as many
// blocks along k.
func TestSteadyKernels(t *testing.T) {
	dense := func(way string) string {
		return "norm:1 " + way + " rope:1 decode_attend:1 " + way + " decode_route:1 "
	}
	for _, x := range []struct {
		arch string
		o    engine.Settings
		want string
	}{
		{"sm_90", engine.Settings{Compute: engine.Rounded}, "prefill_qkv_wgmma:2 decode_attend:1 " +
			"prefill_linear_wgmma:2 decode_route:1 stream_experts_bf16:2 combine:1"},
		{"sm_80", engine.Settings{Compute: engine.Rounded}, dense("prefill_linear_bf16:1") +
			"stream_experts_bf16:2 combine:1"},
		{"sm_120", engine.Settings{Compute: engine.MX}, dense("prefill_linear_bf16:1") +
			"stream_experts_bf16:2 combine:1"},
		{"sm_90", engine.Settings{}, dense("prefill_linear:1") + "decode_gate_up:1 decode_down:1"},
		{"sm_90", engine.Settings{Compute: engine.Int8}, dense("prefill_linear:1") +
			"quantize:1 gate_up:1 quantize:1 down:1 combine:1"},
		{"sm_90", engine.Settings{Dense: engine.DenseQ8},
			dense("prefill_linear_q8:1") +
				"decode_gate_up:1 decode_down:1"},
	} {
		t.Run(x.arch+"/"+x.o.Compute+x.o.Dense, func(t *testing.T) {
			dev, _ := openWith(t, driver.CUDA, Options{Arch: x.arch})
			x.o.Pages, x.o.Deterministic = 4, true
			for _, rows := range []int{1, 17, 300} {
				if got := shown(compiled(t, dev, x.o, rows), 0); got != x.want {
					t.Errorf("%d rows: %s\nnot %s", rows, got, x.want)
				}
			}
		})
	}
}

// TestDisable: each variant is replaced by reference kernels, and the logits stay the same up to
// rounding.
func TestDisable(t *testing.T) {
	ckpt := tiny(t)
	want := make([]float32, ckpt.Spec.Vocab)
	run := func(t *testing.T, disabled []Variant, logits []float32) *Device {
		dev, _ := open(t, driver.CUDA)
		dev.Disable(disabled...)
		eng := hosttest.Must(engine.New(dev, ckpt,
			engine.Settings{Pages: 4, MaxNumBatchedTokens: 2}))(t)
		if err := eng.Step(t.Context(), prompt(), logits); err != nil {
			t.Error(err)
		}
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
		return dev
	}
	t.Run("none", func(t *testing.T) { run(t, nil, want) })
	for _, f := range Variants()[:6] { // those of few rows
		t.Run(string(f), func(t *testing.T) {
			got := make([]float32, len(want))
			dev := run(t, []Variant{f}, got)
			if !slices.Equal(disabled(dev), []Variant{f}) {
				t.Errorf("out of use: %v", disabled(dev))
			}
			if strings.Contains(shown(compiled(t, dev, engine.Settings{Pages: 4}, 2), 0),
				string(f)) {
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

// TestProve: on warps of 64, with the unit for MXFP4, every variant is right, and all that the card
// has are tried. TestWrongKernels is the same on warps of 32 with warpgroups.
func TestProve(t *testing.T) {
	drivertest.Long(t)
	dev, f := openWith(t, driver.HIP, Options{Arch: "gfx950"})
	f.Multiprocessors(3)
	proofs, err := dev.Prove(t.Context(), func(x Trial) { t.Logf("%+v", x) })
	hosttest.Check(t, err)
	var have []Variant
	for _, p := range proofs {
		t.Logf("%-24s %.1e", p.Variant, p.Error)
		have = append(have, p.Variant)
		// choices are integers, and their few logprobs may round to the same
		exact := strings.HasSuffix(string(p.Variant), "_mx") || p.Variant == Sampling
		if !p.OK || p.Error > p.Bound || p.Error == 0 && !exact {
			t.Errorf("%+v", p)
		}
	}
	if want := variantsWithout("_wgmma"); !slices.Equal(have, want) || len(disabled(dev)) > 0 {
		t.Errorf("proved: %v, not %v; out of use: %v", have, want, disabled(dev))
	}
}

// disabled are the variants that are out of use.
func disabled(d *Device) []Variant {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(Variants(), func(f Variant) bool { return !d.disabled[f] })
}

// variantsWithout are all but those of a way.
func variantsWithout(suffix string) []Variant {
	return slices.DeleteFunc(Variants(), func(f Variant) bool {
		return strings.Contains(string(f), suffix)
	})
}

// TestWrongKernels: kernels that compute something else are found, named and taken out of use; the
// next best way takes their place, and without one the reference kernels.
func TestWrongKernels(t *testing.T) {
	drivertest.Long(t)
	dev, _ := open(t, driver.CUDA)
	for as, is := range map[string]string{"decode_attend_f32": "decode_attend_bf16",
		"prefill_linear_3": "prefill_linear_1", "prefill_gate_up_wgmma": "prefill_gate_up_1",
		"decode_qkv_q8_bf16_8": "decode_qkv_q8_f8_8"} {
		f := hosttest.Must(dev.function(is))(t)
		dev.kernels.functions[as] = f
	}
	proofs, err := dev.Prove(t.Context(), func(Trial) {})
	hosttest.Check(t, err)
	want := []Variant{Attend, DecodeQKV + "_q8", PrefillLinear, "prefill_gate_up_wgmma"}
	if len(proofs) != len(variantsWithout("_mx")) {
		t.Errorf("%d proofs", len(proofs))
	}
	for _, p := range proofs {
		t.Logf("%-24s %.1e", p.Variant, p.Error)
		if wrong := slices.Contains(want, p.Variant); p.OK == wrong || (p.Why == "") == wrong {
			t.Errorf("%+v", p)
		}
	}
	if !slices.Equal(disabled(dev), want) {
		t.Errorf("out of use: %v, not %v", disabled(dev), want)
	}
	got := shown(compiled(t, dev, engine.Settings{Pages: 4}, 17), 1)
	if strings.Contains(got, "decode_attend") || strings.Contains(got, "prefill_linear") ||
		!strings.Contains(got, "prefill_down:1") {
		t.Errorf("exact: %s", got)
	}
	got = shown(compiled(t, dev, engine.Settings{Pages: 4, Compute: engine.Rounded}, 17), 1)
	if !strings.Contains(got, "prefill_linear_direct_wgmma:1") ||
		!strings.Contains(got, "prefill_gate_up_bf16:1 prefill_down_bf16:1") {
		t.Errorf("rounded: %s", got)
	}
}

// TestDispatch: what a prefill in each mode launches on each kind of card. That these kernels have
// the instruction of the card's matrix unit is held by gpu/kernels, which disassembles them.
func TestDispatch(t *testing.T) {
	const attention = " write_kv_bf16 prefill_attend_1 decode_attend_bf16 "
	dense := "norm prefill_linear_1" + attention +
		"prefill_linear_1 decode_route "
	for _, x := range []struct{ arch, compute, want string }{
		{"sm_90", engine.Rounded, "prefill_qkv_direct_wgmma prefill_attend_1 decode_attend_bf16 " +
			"prefill_linear_direct_wgmma decode_route prefill_gate_up_wgmma prefill_down_wgmma " +
			"combine"},
		{"sm_80", engine.Rounded, dense + "prefill_gate_up_1 prefill_down_1 combine"},
		{"sm_89", engine.Rounded, dense + "prefill_gate_up_1 prefill_down_1 combine"},
		{"sm_100", engine.Rounded, dense + "prefill_gate_up_1 prefill_down_1 combine"},
		{"sm_120", engine.Rounded, dense + "prefill_gate_up_1 prefill_down_1 combine"},
		{"sm_120", engine.MX, dense +
			"quantize_mx prefill_gate_up_mx quantize_mx prefill_down_mx combine"},
		{"sm_121", engine.MX, dense +
			"quantize_mx prefill_gate_up_mx quantize_mx prefill_down_mx combine"},
		{"gfx942", engine.Rounded, dense + "prefill_gate_up_1 prefill_down_1 combine"},
		{"gfx950", engine.MX, dense +
			"quantize_mx prefill_gate_up_mx quantize_mx prefill_down_mx combine"},
		{"gfx1201", engine.Rounded, dense + "prefill_gate_up_1 prefill_down_1 combine"},
	} {
		t.Run(x.arch+"/"+x.compute, func(t *testing.T) {
			api := driver.CUDA
			if strings.HasPrefix(x.arch, "gfx") {
				api = driver.HIP
			}
			dev, _ := openWith(t, api, Options{Arch: x.arch})
			if !slices.Contains(dev.Caps().Computes, x.compute) {
				t.Fatalf("%s computes in %v", x.arch, dev.Caps().Computes)
			}
			s := compiled(t, dev, engine.Settings{Pages: 4, Compute: x.compute}, 64)
			if got := launched(s, 0); got != x.want {
				t.Errorf("%s\nnot %s", got, x.want)
			}
		})
	}
}

// TestLaunchesOfALayer: as docs/gpu-kernels.md counts them, by the usual kernels and with streams.
func TestLaunchesOfALayer(t *testing.T) {
	page := string(hosttest.Must(os.ReadFile("../../docs/gpu-kernels.md"))(t))
	for rows, ways := range map[int][2][]Variant{8: {{}, {StreamExperts}},
		64:  {{}, {StreamExperts + "_bf16"}},
		128: {{}, {StreamExperts + "_wgmma"}}} {
		t.Run(fmt.Sprint(rows), func(t *testing.T) {
			dev, _ := openWith(t, driver.CUDA, Options{Arch: "sm_90"})
			var counts []string
			for _, way := range ways {
				dev.forced = way
				s := compiled(t, dev, engine.Settings{Pages: 4, KVCacheDtype: "bf16",
					Compute: engine.Rounded}, rows)
				counts = append(counts, fmt.Sprint(len(strings.Fields(launched(s, 0)))))
			}
			row := fmt.Sprintf(`(?m)^\| %d \|.* %s \|$`, rows, strings.Join(counts, ", "))
			if !regexp.MustCompile(row).MatchString(page) {
				t.Errorf("%v launches are not in the table of steps", counts)
			}
		})
	}
}

// launched are the kernels of a layer.
func launched(s *step, layer int) string {
	var names []string
	for _, ph := range s.phases {
		if strings.HasPrefix(s.p.Ops[ph.from].Label, fmt.Sprintf("layer%d.", layer)) {
			for _, l := range ph.ready {
				names = append(names, l.Kernel)
			}
		}
	}
	return strings.Join(names, " ")
}
