package device

import (
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
)

// The variants of steps of many rows: matrices and attention on the matrix unit.
//
// What meets the unit is the compute mode's: all of float32 in three bf16 terms, the activation
// rounded to bf16, or two terms of MXFP4 before the experts. Where a card has a better unit for
// rounded activations than every card has, that one is asked first; whatever was found wrong is
// followed by the next way that is as exact, and in the end by the reference kernels.

// A way is what a variant multiplies with.
type way struct {
	suffix string // of the variant's name
	unit   kernels.Unit
	terms  kernels.Terms
}

var (
	whole      = way{"", kernels.MMA, kernels.Whole}
	rounded    = way{"_bf16", kernels.MMA, kernels.Rounded}
	warpgroups = way{"_wgmma", kernels.WGMMA, kernels.Rounded}
	mxfp4      = way{"_mx", kernels.MX, kernels.Rounded}
)

// denseWays are the ways of a bf16 matrix, the best first.
func (r *recorder) denseWays() []way {
	switch compute := r.p.Settings.Compute; {
	case r.only != nil && r.only.unit == kernels.MX:
		return []way{rounded}
	case r.only != nil:
		return []way{*r.only}
	case compute != engine.Rounded && compute != engine.MX:
		return []way{whole}
	case r.t.Unit == kernels.WGMMA:
		return []way{warpgroups, rounded, whole}
	}
	return []way{rounded, whole}
}

// expertWays are those of an MXFP4 matrix.
func (r *recorder) expertWays() []way {
	if r.only != nil {
		return []way{*r.only}
	}
	if r.p.Settings.Compute == engine.MX && r.t.Unit == kernels.MX {
		return append([]way{mxfp4}, r.denseWays()...)
	}
	return r.denseWays()
}

// attentionWays: attention multiplies by the unit that every card has.
func (r *recorder) attentionWays() (ways []way) {
	for _, w := range r.denseWays() {
		if w.unit == kernels.MMA {
			ways = append(ways, w)
		}
	}
	if len(ways) == 0 {
		ways = []way{rounded}
	}
	return ways
}

// best is the first of the ways whose variant of this kind is verified.
func (r *recorder) best(kind Variant, ways []way) (w way, f Variant, ok bool) {
	for _, w := range ways {
		if f := kind + Variant(w.suffix); r.dev.enabled(f) {
			return w, f, true
		}
	}
	return way{}, "", false
}

// by is the target with the unit of a way.
func (r *recorder) by(w way) kernels.Target {
	t := r.t
	t.Unit = w.unit
	return t
}

func (r *recorder) prefillAttend(i int) phase {
	op := r.p.Ops[i]
	if op.Kind != engine.Attend || r.p.Rows <= kernels.DecodeRows {
		return phase{}
	}
	live, bucket := r.rows(op.Out[0])
	c := r.cache(op, op.In[1])
	w, variant, ok := r.best(PrefillAttend, r.attentionWays())
	if !ok || !kernels.PrefillAttends(r.heads(), c) {
		return phase{}
	}
	// Rows that follow each other in a sequence are read together by this; those that stand alone,
	// as sequences that decode do, have pages of their own, which the kernel for few rows reads
	// faster.
	apart := r.attends && r.dev.enabled(Attend)
	list := []kernels.Launch{r.by(w).PrefillAttend(live, bucket, r.at(op.Out[0]), r.at(op.In[0]), c,
		r.at(op.W[0]), r.heads(), op.Window, op.Scale, w.terms, apart)}
	if apart {
		list = append(list, r.decodeAttend(op, r.state+12, bucket, r.array(aloneArray)))
	}
	return phase{i, i + 1, variant, list, op.Out}
}

// prefillLinear is a projection. The router's is never rounded: it is small, and a rounding there
// chooses other experts.
func (r *recorder) prefillLinear(i int) phase {
	op := r.p.Ops[i]
	if op.Kind != engine.Linear || op.In[0].Width%32 != 0 {
		return phase{}
	}
	ways := r.denseWays()
	if r.routes(op.Out[0]) {
		ways = []way{whole}
	}
	w, variant, ok := r.best(PrefillLinear, ways)
	if !ok {
		return phase{}
	}
	live, bucket := r.rows(op.Out[0])
	y, stride := r.at(op.Out[0]), op.Out[0].Width
	ph := phase{from: i, to: i + 1, variant: variant, leaves: op.Out}
	for j := 0; j < len(op.W); j += 2 {
		ph.launches = append(ph.launches, r.by(w).PrefillLinear(live, bucket, y, r.at(op.In[0]),
			r.at(op.W[j]), r.at(op.W[j+1]), op.In[0].Width, op.W[j].Rows, stride, op.Add, w.terms))
		y += kernels.Pointer(4 * op.W[j].Rows)
	}
	return ph
}

// routes tells whether experts are chosen by this buffer.
func (r *recorder) routes(b *engine.Buffer) bool {
	for _, op := range r.p.Ops {
		if op.Kind == engine.Route && op.In[0] == b {
			return true
		}
	}
	return false
}

func (r *recorder) prefillGateUp(i int) phase {
	op, s, slots := r.p.Ops[i], r.p.Spec, r.p.Rows*r.p.Spec.ExpertsPerToken
	return r.prefillExperts(i, engine.GateUp, PrefillGateUp, s.Hidden, expertLaunches{
		func(t kernels.Target, h, order, groups, x kernels.Pointer,
			terms kernels.Terms) kernels.Launch {
			return t.PrefillGateUp(slots, s.Experts, h, order, groups, x, r.matrix(op),
				s.Intermediate, s.Hidden, s.ExpertsPerToken, op.Limit, terms)
		},
		func(t kernels.Target, h, order, groups kernels.Pointer, x kernels.TermsMX) kernels.Launch {
			return t.PrefillGateUpMX(slots, s.Experts, h, order, groups, x, r.matrix(op),
				s.Intermediate, s.Hidden, s.ExpertsPerToken, op.Limit)
		}})
}

func (r *recorder) prefillDown(i int) phase {
	op, s, slots := r.p.Ops[i], r.p.Spec, r.p.Rows*r.p.Spec.ExpertsPerToken
	return r.prefillExperts(i, engine.Down, PrefillDown, s.Intermediate, expertLaunches{
		func(t kernels.Target, y, order, groups, h kernels.Pointer,
			terms kernels.Terms) kernels.Launch {
			return t.PrefillDown(slots, s.Experts, y, order, groups, h, r.matrix(op), s.Hidden,
				s.Intermediate, terms)
		},
		func(t kernels.Target, y, order, groups kernels.Pointer, h kernels.TermsMX) kernels.Launch {
			return t.PrefillDownMX(slots, s.Experts, y, order, groups, h, r.matrix(op), s.Hidden,
				s.Intermediate)
		}})
}

// expertLaunches are an operation's two: on float32 activations, and on those cut into terms of
// MXFP4.
type expertLaunches struct {
	bf16 func(t kernels.Target, to, order, groups, from kernels.Pointer,
		terms kernels.Terms) kernels.Launch
	mx func(t kernels.Target, to, order, groups kernels.Pointer,
		from kernels.TermsMX) kernels.Launch
}

// prefillExperts is either of the experts' operations, whose activations are width wide.
func (r *recorder) prefillExperts(i int, kind engine.Kind, name Variant, width int,
	launches expertLaunches) phase {
	op := r.p.Ops[i]
	if op.Kind != kind || len(op.In) != 3 {
		return phase{}
	}
	w, variant, ok := r.best(name, r.expertWays())
	if !ok {
		return phase{}
	}
	t, to, order, groups, from := r.by(w), r.at(op.Out[0]), r.at(op.In[0]), r.at(op.In[1]),
		r.at(op.In[2])
	ph := phase{from: i, to: i + 1, variant: variant, leaves: op.Out}
	if w.unit == kernels.MX {
		live, bucket := r.rows(op.In[2])
		terms := r.terms(bucket, width)
		ph.launches = []kernels.Launch{t.QuantizeMX(live, bucket, terms, from, width),
			launches.mx(t, to, order, groups, terms)}
		return ph
	}
	ph.launches = []kernels.Launch{launches.bf16(t, to, order, groups, from, w.terms)}
	return ph
}

// terms is where the terms of MXFP4 of rows of so many elements lie: one memory for all, since each
// is read by the launch behind the one that writes it.
func (r *recorder) terms(rows, width int) kernels.TermsMX {
	q, _ := kernels.TermsMXBytes(rows, width)
	return kernels.TermsMX{Q: r.mx, S: r.mx + kernels.Pointer(q)}
}

// termsBytes is the memory of the largest of them; 0 where a program has none.
func (r *recorder) termsBytes() (most int64) {
	s, slots := r.p.Spec, r.p.Rows*r.p.Spec.ExpertsPerToken
	if r.reference || r.p.Rows <= kernels.DecodeRows || r.p.Settings.Compute != engine.MX ||
		r.t.Unit != kernels.MX {
		return 0
	}
	for _, x := range [][2]int{{r.p.Rows, s.Hidden}, {slots, s.Intermediate}} {
		q, scales := kernels.TermsMXBytes(x[0], x[1])
		most = max(most, q+scales)
	}
	return most
}
