package kernels

import (
	"strings"
	"testing"
)

// launchesOn makes one of every kind that this package can on a target.
func launchesOn(t Target) []Launch {
	const p = Pointer(256)
	rows := func(n int) Rows { return Rows{p, n} }
	h, w := Heads{8, 2, 64}, ExpertMatrix{p, p, p}
	x, q := Activations{X: p}, Activations{Q: p, D: p}
	attention := func(n int, e Element, window int) Attention {
		return Attention{rows(n), p, p, Cache{p, 4096, e, p, p, p}, p, h, window, 0.125}
	}
	product := func(n int) Product {
		return Product{rows(n), p, p, p, p, 64, 32, 32, true, ""}
	}
	inEight := func(p Product) Product { p.Weights = "_q8"; return p }
	parts := func(n int) []Product { return []Product{product(n), product(n), product(n)} }
	partsQ8 := func(n int) []Product { return []Product{inEight(product(n)), {}, {}} }
	gateUp := func(x Activations) Experts {
		return Experts{200, 8, p, p, p, x, w, 96, 64, 2, 7}
	}
	down := func(x Activations) Experts { return Experts{200, 8, p, p, p, x, w, 64, 96, 0, 0} }
	meet := Scratch{Partial: p, Arrived: p}
	var all []Launch
	for _, elements := range []Element{F32, BF16, E4M3} {
		a := attention(3, elements, 128)
		all = append(all, t.WriteKV(rows(3), a.Cache, p, p, h), t.Attend(a),
			t.DecodeAttend(a, 0, meet, DecodeRuns))
		for _, n := range []int{1, 3} {
			for _, s := range []Scratch{{}, meet} {
				all = append(all, t.DecodeQKV(parts(n), p, a.Cache, p, h, 1e-5, s))
			}
			for _, s := range []Scratch{{}, meet} {
				all = append(all, t.DecodeQKV(partsQ8(n), p, a.Cache, p, h, 1e-5, s))
			}
		}
	}
	for _, x := range []Activations{x, q} {
		all = append(all, t.Experts(gateUp(x)), t.Experts(down(x)))
	}
	all = append(all, t.Route(rows(3), p, p, p, p, p, 8, 2)...)
	for _, n := range []int{1, 3} {
		all = append(all, t.DecodeLinear(product(n), p, 1e-5, Scratch{}),
			t.DecodeLinear(product(n), p, 1e-5, meet), t.Linear(inEight(product(n))),
			t.DecodeLinear(inEight(product(n)), p, 1e-5, meet),
			t.DecodeLinear(inEight(product(n)), p, 1e-5, Scratch{}))
	}
	for _, terms := range []Terms{Rounded, Unrounded} {
		mma := t
		mma.Unit = MMA
		all = append(all, t.PrefillLinears([]Product{product(100)}, terms, meet),
			mma.PrefillLinears(partsQ8(100), terms, meet),
			t.PrefillExperts(gateUp(x), terms), t.PrefillExperts(down(x), terms))
	}
	for _, elements := range []Element{BF16, E4M3} {
		all = append(all, t.PrefillAttend(attention(100, elements, 128), Rounded, p),
			t.PrefillAttend(attention(100, elements, 0), Unrounded, 0))
	}
	two := []any{p, p, p}
	all = append(all, t.QuantizeMX(rows(100), q, p, 64),
		t.MatrixRate(MMA, 4, two, 3))
	switch t.Unit {
	case WGMMA:
		for _, slots := range []int{80, 100, 160} { // of 8 experts: a tile of 16, 24 and 32
			e, d := gateUp(x), down(x)
			e.Slots, d.Slots = slots, slots
			all = append(all, t.StreamWarpgroups(e), t.StreamWarpgroups(d))
		}
		all = append(all, t.RoundRows(rows(100), p, p, 64, InOrder),
			t.RoundRows(rows(9), p, p, 96, InShares),
			t.MatrixRate(WGMMA, 4, two, 3))
		card := t
		card.Shared = SharedOf("sm_90")
		for _, list := range [][]Product{parts(64), partsQ8(64)} {
			if few, fits := card.DirectLinears(list, meet); fits {
				all = append(all, few)
			}
		}
		all = append(all, card.PrefillQKV(partsQ8(64), p, attention(64, BF16, 0).Cache, p, p, 1e-5,
			meet, true)...)
		for _, n := range []int{64, 65} {
			all = append(all, card.PrefillQKV(parts(n), p, attention(n, BF16, 0).Cache, p, p, 1e-5,
				meet, true)...)
		}
	case MX:
		four := []any{p, p, p, p, p}
		all = append(all, t.PrefillExperts(gateUp(q), Rounded), t.PrefillExperts(down(q), Rounded),
			t.MatrixRate(MX, 4, four, 3))
	}
	all = append(all, t.DecodeRoute(product(3), p, p, p, p, p, p, p, TwoTerms, p, 2, 1e-5),
		t.DecodeGateUp(rows(3), p, gateUp(x)),
		t.DecodeDown(rows(3), p, p, p, 2, down(x)))
	for _, slots := range []int{8, 80, 160} { // of 8 experts: a form of each tile
		e, d := gateUp(x), down(x)
		e.Slots, d.Slots = slots, slots
		all = append(all, t.StreamExperts(e, OneTerm), t.StreamExperts(d, OneTerm))
	}
	all = append(all, t.StreamExperts(gateUp(x), TwoTerms), t.StreamExperts(down(x), TwoTerms))
	all = append(all, t.Sample(rows(3), p, p, p, p, p, 50, 2)...)
	return append(all, t.LogitStats(rows(3), p, p, 50), t.EditLogits(rows(9), p, p, 50),
		t.TopLogits(rows(3), p, p, p, 50, 20),
		t.Embed(rows(3), p, p, p, 64), t.CopyRows(rows(3), p, p, p, 64),
		t.Angles(rows(3), p, p, p, 32, 1),
		t.Norm(rows(3), p, 0, p, p, 64, 1e-5), t.Linear(product(3)),
		t.Quantize(rows(3), p, p, p, 64), t.Combine(rows(3), p, p, p, 64, 2))
}

// A launch that has an argument too few, or one of the wrong size, reads garbage on a GPU: every
// launch is held to its kernel's source.
func TestLaunchesFitTheirKernels(t *testing.T) {
	signatures, err := readSignatures(".")
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]signature{}
	for _, s := range signatures {
		byName[s.Name] = s
	}
	for _, warp := range []int{32, 64} {
		seen := map[string]bool{}
		var all []Launch
		for _, unit := range []Unit{MMA, WGMMA, MX} {
			all = append(all, launchesOn(Target{Warp: warp, Unit: unit,
				Processors: 132, Shared: SharedOf("sm_90")})...)
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
