package kernels

import (
	"strings"
	"testing"
)

// launchesOn makes one of every kind that this package can on a target.
func launchesOn(t Target) []Launch {
	const p = Pointer(256)
	h := Heads{8, 2, 64}
	var all []Launch
	for _, elements := range []Element{F32, BF16, E4M3} {
		c := Cache{p, 4096, elements, p, p, p}
		all = append(all, t.WriteKV(p, 3, c, p, h), t.Attend(p, 3, p, p, c, p, h, 128, 0.125),
			t.DecodeAttend(p, 3, 0, p, p, p, p, c, p, h, 128, DecodeRuns, 0.125))
		for _, bucket := range []int{1, 3} {
			all = append(all, t.DecodeQKV(p, bucket, p, c, p, p, QKV{p, p, p, p, p, p}, p, 64, h,
				1e-5))
		}
	}
	for _, x := range []Activations{{X: p}, {Q: p, D: p}} {
		w := ExpertMatrix{p, p, p}
		all = append(all, t.GateUp(6, p, p, p, x, w, 96, 64, 2, 7),
			t.Down(6, p, p, p, x, w, 64, 96))
	}
	all = append(all, t.Route(p, 3, p, p, p, p, p, 8, 2)...)
	for _, bucket := range []int{1, 3} {
		all = append(all, t.DecodeLinear(p, bucket, p, p, p, p, p, 64, 32, 32, true, 1e-5))
	}
	for _, bucket := range []int{1, 3} {
		x := Activations{Q: p, D: p}
		all = append(all, t.LinearQ8(p, bucket, p, x, p, p, 64, 32, 32, true),
			t.DecodeLinearQ8(p, bucket, p, x, p, p, 64, 32, 32, true),
			t.PrefillLinearQ8(p, bucket, p, x, p, p, 64, 32, 32, true))
	}
	w := ExpertMatrix{p, p, p}
	for _, terms := range []Terms{Rounded, Whole} {
		all = append(all, t.PrefillLinear(p, 100, p, p, p, p, 64, 130, 130, true, terms),
			t.PrefillGateUp(200, 8, p, p, p, p, w, 96, 64, 2, 7, terms), t.PrefillDown(200, 8, p, p,
				p, p, w, 64, 96, terms))
	}
	for _, elements := range []Element{BF16, E4M3} {
		c := Cache{p, 4096, elements, p, p, p}
		all = append(all, t.PrefillAttend(p, 100, p, p, c, p, h, 128, 0.125, Rounded, true),
			t.PrefillAttend(p, 100, p, p, c, p, h, 0, 0.125, Whole, false))
	}
	all = append(all, t.QuantizeMX(p, 100, TermsMX{p, p}, p, 64), t.MatrixProof(p, p, p),
		t.MatrixRate(t.Unit, 4, p, p, p, p, p, 3))
	switch t.Unit {
	case WGMMA:
		all = append(all, t.MatrixProofWGMMA(p, p, p))
	case MX:
		all = append(all, t.PrefillGateUpMX(200, 8, p, p, p, TermsMX{p, p}, w, 96, 64, 2, 7),
			t.PrefillDownMX(200, 8, p, p, p, TermsMX{p, p}, w, 64, 96), t.MatrixProofMX(p, p, p, p,
				p))
	}
	all = append(all, t.DecodeRoute(p, 3, p, p, p, p, p, p, p, p, p, 64, 8, 2, 1e-5),
		t.DecodeGateUp(p, 3, p, p, p, w, 96, 64, 2, 7),
		t.DecodeDown(p, 3, p, p, p, p, w, 64, 96, 2))
	for _, elements := range []Element{F32, BF16} {
		step, err := NewStep(stepOf(t, 1, elements))
		if err != nil {
			panic(err) // of a constant
		}
		all = append(all, step.Launch(t, p, p, 5))
	}
	all = append(all, t.LogitStats(p, 3, p, p, 50), t.EditLogits(p, 9, p, p, 50),
		t.Sample(p, 3, p, p, p, p, p, 50, 2),
		t.TopLogits(p, 3, p, p, p, 50, 20))
	return append(all,
		t.Embed(p, 3, p, p, p, 64), t.Gather(p, 3, p, p, p, 64), t.CopyRows(p, 3, p, p, 64),
		t.Angles(p, 3, p, p, p, 32, 1),
		t.Norm(p, 3, p, p, p, 64, 1e-5), t.Linear(p, 3, p, p, p, p, 64, 32, 32, true),
		t.Rope(p, 3, p, p, h),
		t.Quantize(p, 3, p, p, p, 64), t.Combine(p, 3, p, p, p, 64, 2))
}

// A launch that has an argument too few, or one of the wrong size, reads garbage on a GPU: every
// launch is held to its kernel's source.
func TestLaunchesFitTheirKernels(t *testing.T) {
	signatures, err := Signatures(".")
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Signature{}
	for _, s := range signatures {
		byName[s.Name] = s
	}
	for _, warp := range []int{32, 64} {
		seen := map[string]bool{}
		var all []Launch
		for _, unit := range []Unit{MMA, WGMMA, MX} {
			all = append(all, launchesOn(Target{Warp: warp, Unit: unit})...)
		}
		for _, l := range all {
			seen[l.Kernel] = true
			s, ok := byName[l.Kernel]
			if !ok {
				t.Errorf("there is no kernel %s", l.Kernel)
				continue
			}
			if n := l.Block[0] * l.Block[1] * l.Block[2]; int(n) > s.Threads || int(n)%warp != 0 {
				t.Errorf("%s: a block of %d threads; its most is %d", l.Kernel, n, s.Threads)
			}
			for _, n := range l.Grid {
				if n == 0 {
					t.Errorf("%s: an empty grid %v", l.Kernel, l.Grid)
				}
			}
			if len(l.Args) != len(s.Parameters) {
				t.Errorf("%s: %d arguments for %d parameters", l.Kernel, len(l.Args),
					len(s.Parameters))
				continue
			}
			for i, p := range s.Parameters {
				if !fits(l.Args[i], p.Type) {
					t.Errorf("%s: %T for parameter %s %s", l.Kernel, l.Args[i], p.Type, p.Name)
				}
			}
		}
		for name := range byName {
			if !seen[name] {
				t.Errorf("warp %d: nothing launches %s", warp, name)
			}
		}
	}
}

func fits(arg any, parameter string) bool {
	switch arg.(type) {
	case Pointer:
		return strings.HasSuffix(parameter, "*")
	case int32:
		return parameter == "int"
	case int64:
		return parameter == "int64_t"
	case float32:
		return parameter == "float"
	}
	return false
}
