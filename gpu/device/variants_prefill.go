package device

import (
	"slices"

	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// The variants of steps of many rows: matrices and attention on the matrix unit.
//
// The compute mode decides what the unit gets: all of float32 in three bf16 terms, the activation
// rounded to bf16, or, for the experts, two terms of MXFP4. A card's better unit is tried
// first. A way that was found wrong is replaced by the next, in the end by the reference kernels.

// A multiplier is a matrix unit and the form of the activations.
type multiplier struct {
	suffix string // of the variant's name
	unit   kernels.Unit
	terms  kernels.Terms
}

var (
	unrounded  = multiplier{"", kernels.MMA, kernels.Unrounded}
	rounded    = multiplier{"_bf16", kernels.MMA, kernels.Rounded}
	warpgroups = multiplier{"_wgmma", kernels.WGMMA, kernels.Rounded}
	mxfp4      = multiplier{"_mx", kernels.MX, kernels.Rounded}
)

// denseWays are the ways of a bf16 matrix, the best first.
func (s *step) denseWays() []multiplier {
	switch compute := s.p.Settings.Compute; {
	case s.multiplier != nil && s.multiplier.unit == kernels.MX:
		return []multiplier{rounded}
	case s.multiplier != nil:
		return []multiplier{*s.multiplier}
	case compute != engine.Rounded && compute != engine.MX:
		return []multiplier{unrounded}
	case s.dev.target.Unit == kernels.WGMMA:
		return []multiplier{warpgroups, rounded, unrounded}
	}
	return []multiplier{rounded, unrounded}
}

// commonWays are by the unit that every card has: of attention, and of one matrix of the experts.
func (s *step) commonWays() []multiplier {
	ways := slices.DeleteFunc(s.denseWays(),
		func(w multiplier) bool { return w.unit != kernels.MMA })
	if len(ways) == 0 {
		ways = []multiplier{rounded}
	}
	return ways
}

// best is the first way whose variant of this kind is not out of use, and the target with its unit.
func (s *step) best(kind Variant, ways []multiplier) (t kernels.Target, w multiplier, f Variant) {
	for _, w := range ways {
		if f := kind + Variant(w.suffix); s.dev.enabled(f) {
			t := s.target()
			t.Unit = w.unit
			return t, w, f
		}
	}
	return t, w, ""
}

func (s *step) prefillAttend(i int) phase {
	op := s.p.Ops[i]
	if op.Kind != engine.Attend || s.p.Rows <= kernels.DecodeRows || s.steady {
		return phase{}
	}
	a := s.attention(op)
	t, w, variant := s.best(PrefillAttend, s.commonWays())
	if variant == "" || !kernels.PrefillAttends(a.Heads, a.Cache) {
		return phase{}
	}
	if !kernels.Attends(a.Heads) || !s.dev.enabled(Attend) {
		return s.single(i, variant, t.PrefillAttend(a, w.terms, 0))
	}
	runs := t.PrefillAttend(a, w.terms, s.state.address+12)
	a.Rows.Live = s.state.address + 12
	return s.single(i, variant, runs, s.decodeAttend(a, s.array(aloneArray)))
}

// prefillLinear is a projection. The router's, a small one, is never rounded: that would choose
// other experts. Its width tells it, since its Route may be on another device.
func (s *step) prefillLinear(i int) phase {
	op, x, g, next := s.matrix(i)
	if op == nil || g != nil || x.Width%32 != 0 {
		return phase{}
	}
	ways, parts := s.denseWays(), s.parts(op, x)
	as := func(v Variant, launches ...kernels.Launch) phase {
		return phase{from: i, to: next, variant: v, launches: launches, results: op.Out}
	}
	kind, direct := PrefillLinear+onQ8[op.Kind], DirectLinear+onQ8[op.Kind]
	if op.Out[0].Width == s.p.Spec.Experts {
		ways = []multiplier{unrounded}
	} else if ways[0] == warpgroups && s.multiplier == nil && s.dev.enabled(direct) {
		if l, fits := s.target().DirectLinears(parts, s.scratch); fits && !s.steady {
			return as(direct, l)
		}
	}
	if kind != PrefillLinear {
		ways = s.commonWays()
	}
	t, w, variant := s.best(kind, ways)
	switch {
	case variant == "":
		return phase{}
	case w.unit != kernels.WGMMA:
		return as(variant, t.PrefillLinears(parts, w.terms, s.scratch))
	}
	round := t.RoundRows(parts[0].Rows, s.terms.address, parts[0].X, parts[0].K, kernels.InOrder)
	parts[0].X = s.terms.address
	return as(variant, round, t.PrefillLinears(parts, w.terms, s.scratch))
}

// prefillExperts is GateUp or Down on float32, which is first cut into terms for MX.
func (s *step) prefillExperts(i int) phase {
	op := s.p.Ops[i]
	kind := map[engine.Kind]Variant{engine.GateUp: PrefillGateUp, engine.Down: PrefillDown}[op.Kind]
	if kind == "" || len(op.In) != 3 {
		return phase{}
	}
	ways := s.commonWays()
	if s.p.Settings.Compute == engine.MX && s.dev.target.Unit == kernels.MX {
		ways = append([]multiplier{mxfp4}, ways...)
	}
	t, w, variant := s.best(kind, ways)
	if variant == "" {
		return phase{}
	}
	e := s.experts(op)
	if w.unit == kernels.MMA {
		return s.single(i, variant, t.PrefillExperts(e, w.terms))
	}
	// one memory serves all terms: the launch right after the one that writes them reads them
	r, x := s.rows(op.In[2]), e.From.X
	codes, _ := kernels.TermsMXBytes(r.Most, e.K)
	e.From = kernels.Activations{Q: s.terms.address, D: s.terms.address + kernels.Pointer(codes)}
	return s.single(i, variant, t.QuantizeMX(r, e.From, x, e.K), t.PrefillExperts(e, w.terms))
}

// termsBytes is the memory for activations as the matrix unit takes them, of one operation: in bf16
// or as terms of MXFP4. 0: it takes float32.
func termsBytes(spec models.Spec, compute string, rows int, unit kernels.Unit) (bytes int64) {
	if compute == engine.Rounded || compute == engine.MX {
		terms := max(rows, 2*min(rows, kernels.DecodeRows)) // two of few rows
		width := kernels.ShareWidth(max(spec.Hidden, spec.Heads*spec.HeadDim))
		bytes = 2 * int64(terms) * int64(width)
	}
	if compute == engine.MX && unit == kernels.MX {
		width := max(spec.Hidden, spec.ExpertsPerToken*spec.Intermediate)
		codes, scales := kernels.TermsMXBytes(rows, width)
		bytes = max(bytes, codes+scales)
	}
	return bytes
}
