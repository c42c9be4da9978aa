package device

import (
	"slices"

	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Chooses the kernels that compute a run of operations. Each operation has a reference kernel. A
// Variant is a faster kernel for one operation or for several adjacent ones; cut says which there
// are for a step's rows.
//
// What must stay true: a variant leaves every buffer that is read later as the reference kernels
// would, up to rounding. These run if a variant does not fit, has a tap in its middle, or is wrong
// on this card (Disable).

// Variant names a faster way of computing one or more operations.
type Variant string

// A prefill variant has a form for each multiplier (variants_prefill.go), whose suffix is added.
const (
	DecodeQKV       Variant = "decode_qkv"      // norm, projections, RoPE, KV write
	DecodeLinear    Variant = "decode_linear"   // norm if there is one, one projection
	QKVUnit         Variant = "decode_qkv_unit" // the same for eight rows at once
	LinearUnit      Variant = "decode_linear_unit"
	DecodeLinearQ8  Variant = "decode_linear_q8" // one projection of 8-bit rows
	DecodeRoute     Variant = "decode_route"     // norm, router, choice of experts
	DecodeGateUp    Variant = "decode_gate_up"
	DecodeDown      Variant = "decode_down"       // down, weighted sum and residual
	Attend          Variant = "decode_attend"     // steps of any size
	PrefillAttend   Variant = "prefill_attend"    // on a bf16 cache
	PrefillQKV      Variant = "prefill_qkv_wgmma" // as DecodeQKV, on a bf16 cache
	PrefillLinear   Variant = "prefill_linear"
	DirectLinear    Variant = "prefill_linear_direct_wgmma" // of up to some dozens of rows
	PrefillLinearQ8 Variant = "prefill_linear_q8"
	PrefillGateUp   Variant = "prefill_gate_up"
	PrefillDown     Variant = "prefill_down"
	StreamExperts   Variant = "stream_experts" // in two terms, with the suffix _bf16 one
	// tokens are chosen on the card, else on the host
	Sampling Variant = "sample"
)

func Variants() []Variant {
	list := []Variant{DecodeQKV, QKVUnit, DecodeLinear, LinearUnit, DecodeRoute, DecodeGateUp,
		DecodeDown, Attend, DecodeLinearQ8, PrefillAttend, PrefillAttend + "_bf16"}
	for _, kind := range []Variant{PrefillLinear, PrefillGateUp, PrefillDown, StreamExperts} {
		list = append(list, kind, kind+"_bf16")
	}
	return append(list, PrefillGateUp+"_mx", PrefillDown+"_mx", PrefillLinear+"_wgmma",
		PrefillQKV, DirectLinear, PrefillGateUp+"_wgmma", StreamExperts+"_wgmma", PrefillLinearQ8,
		Sampling)
}

// Disable takes variants out of use for programs compiled from now on.
func (d *Device) Disable(variants ...Variant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range variants {
		d.disabled[f] = true
	}
}

func (d *Device) enabled(f Variant) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.disabled[f]
}

// phase is a run of operations that are launched together.
type phase struct {
	from, to int     // of Program.Ops
	variant  Variant // "" for the reference kernels
	launches []kernels.Launch
	// its results that are read later; for the reference kernels all
	results []*engine.Buffer
	ready   []launch     // the launches, packed
	form    kernels.Form // of the activations that experts want, or their router leaves, rounded
}

func (s *step) single(i int, v Variant, launches ...kernels.Launch) phase {
	return phase{from: i, to: i + 1, variant: v, launches: launches, results: s.p.Ops[i].Out}
}

// cut divides the program into phases, greedily: variants of most operations first.
func (s *step) cut() error {
	matchers := []func(int) phase{s.turn, s.qkv, s.prefillAttend, s.attend, s.expertPair}
	switch {
	case s.reference || s.steady && !s.decodes(0):
		matchers = nil
	case s.steady:
		matchers = append(matchers, s.prefillLinear, s.linearQ8, s.decodeRoute, s.decodeGateUp,
			s.decodeDown)
	case s.decodes(kernels.DecodeRows):
		matchers = append(matchers, s.decodeRoute, s.decodeLinear, s.decodeGateUp,
			s.decodeDown, s.linearQ8)
	case s.p.Rows > kernels.DecodeRows:
		if s.decodes(kernels.RouteRows) {
			matchers = append(matchers, s.decodeRoute)
		}
		matchers = append(matchers, s.prefillLinear, s.prefillExperts, s.linearQ8)
	}
	for i := 0; i < len(s.p.Ops); {
		var ph phase
		for _, match := range matchers {
			if ph = match(i); ph.to > i {
				break
			}
		}
		op := s.p.Ops[i]
		if ph.to <= i {
			launches, err := s.record(op)
			if err != nil {
				return operationError(i, op, err)
			}
			ph = phase{from: i, to: i + 1, launches: launches}
		}
		for _, l := range ph.launches {
			ready, err := s.dev.ready(l)
			if err != nil {
				return operationError(i, op, err)
			}
			ph.ready = append(ph.ready, ready)
		}
		s.phases = append(s.phases, ph)
		i = ph.to
	}
	return nil
}

// decodes tells whether decode kernels meant for so many rows, in steady steps for any, have room.
func (s *step) decodes(most int) bool {
	spec := s.p.Spec
	return (s.steady || s.p.Rows <= most) &&
		kernels.Decodes(s.heads(), spec.Hidden, spec.Intermediate, spec.ExpertsPerToken)
}

// run gives the operations from i on if they are of these kinds, else nil.
func (s *step) run(i int, kinds ...engine.Kind) []*engine.Op {
	if i+len(kinds) > len(s.p.Ops) {
		return nil
	}
	ops := s.p.Ops[i : i+len(kinds)]
	for j, k := range kinds {
		if ops[j].Kind != k {
			return nil
		}
	}
	return ops
}

// dead tells whether nothing reads a buffer of the arena from operation i on.
func (s *step) dead(b *engine.Buffer, i int) bool {
	if b.Home != engine.Scratch {
		return false
	}
	for _, op := range s.p.Ops[i:] {
		written := slices.Contains(op.Out, b)
		if slices.Contains(op.In, b) || written && op.InPlace() {
			return false
		}
		if written {
			return true
		}
	}
	return !slices.Contains(s.p.Keep, b)
}

// turn is RoPE with the KV write, by the reference kernel of the latter.
func (s *step) turn(i int) phase {
	ops := s.run(i, engine.Rope, engine.WriteKV)
	if ops == nil || ops[1].In[0] != ops[0].Out[0] {
		return phase{}
	}
	rope, write := ops[0], ops[1]
	return phase{from: i, to: i + 2, launches: []kernels.Launch{s.dev.target.WriteKV(
		s.rows(rope.Out[0]), s.cache(write, write.Out[0]), s.address(rope.Out[0]),
		s.address(rope.In[0]), s.heads())}}
}

func (s *step) attend(i int) phase {
	op := s.p.Ops[i]
	if op.Kind != engine.Attend || !kernels.Attends(s.heads()) || !s.dev.enabled(Attend) {
		return phase{}
	}
	return s.single(i, Attend, s.decodeAttend(s.attention(op), 0))
}

// decodeAttend attends for all rows of the step, or for those that a list names.
func (s *step) decodeAttend(a kernels.Attention, list kernels.Pointer) kernels.Launch {
	t := s.dev.target
	return t.DecodeAttend(a, list, s.scratch, t.AttendRuns(a.Heads, s.p.Spec.MaxPosition))
}

func (s *step) qkv(i int) phase {
	ops := s.run(i, engine.Norm, engine.Linear, engine.Rope, engine.WriteKV)
	if ops == nil || !s.decodes(s.p.Rows) {
		return phase{}
	}
	norm, linear, rope, write := ops[0], ops[1], ops[2], ops[3]
	variant, scratch := DecodeQKV, kernels.Scratch{}
	if s.preferred(QKVUnit) {
		variant, scratch = QKVUnit, s.scratch
	}
	if s.p.Rows > kernels.DecodeRows || s.steady {
		variant = PrefillQKV
	}
	normed, qkv := norm.Out[0], linear.Out[0]
	if len(linear.W) != 6 || linear.Add || linear.In[0] != normed || rope.Out[0] != qkv ||
		write.In[0] != qkv || normed == norm.In[0] || !s.dead(normed, i+2) ||
		!s.dev.enabled(variant) {
		return phase{}
	}
	parts, c := s.parts(linear), s.cache(write, write.Out[0])
	parts[0].X.X = s.address(norm.In[0])
	t, g, angles := s.target(), s.address(norm.W[0]), s.address(rope.In[0])
	list := []kernels.Launch{t.DecodeQKV(parts, g, c, angles, s.heads(), norm.Eps, scratch)}
	if variant == PrefillQKV {
		if s.denseWays()[0] != warpgroups || c.Elements != kernels.BF16 {
			return phase{}
		}
		list = t.PrefillQKV(parts, g, c, angles, s.terms.address, norm.Eps, s.scratch,
			s.multiplier == nil && !s.steady)
	}
	return phase{from: i, to: i + 4, variant: variant, launches: list,
		results: []*engine.Buffer{qkv, write.Out[0]}}
}

// decodeLinear is a projection, with the norm before it if nothing else reads the norm's result.
func (s *step) decodeLinear(i int) phase {
	pos, norm := i, kernels.Pointer(0)
	if s.run(i, engine.Norm, engine.Linear) != nil {
		pos++
	}
	first, op := s.p.Ops[i], s.p.Ops[pos]
	if op.Kind != engine.Linear || op.In[0].Width%32 != 0 ||
		4*op.In[0].Width > kernels.MostShared || !s.dev.enabled(DecodeLinear) {
		return phase{}
	}
	variant, scratch := DecodeLinear, kernels.Scratch{}
	if s.preferred(LinearUnit) {
		variant, scratch = LinearUnit, s.scratch
	}
	x := op.In[0]
	if pos > i {
		if first.Out[0] != x || !s.dead(x, pos+1) {
			return phase{}
		}
		x, norm = first.In[0], s.address(first.W[0])
	}
	return phase{from: i, to: pos + 1, variant: variant, results: op.Out,
		launches: s.products(op, func(p kernels.Product) kernels.Launch {
			p.X.X = s.address(x)
			return s.dev.target.DecodeLinear(p, norm, first.Eps, scratch)
		})}
}

// decodeRoute leaves order and groups only where a reference expert kernel reads them.
func (s *step) decodeRoute(i int) phase {
	ops := s.run(i, engine.Norm, engine.Linear, engine.Route)
	if ops == nil || !s.dev.enabled(DecodeRoute) ||
		s.p.Rows > kernels.DecodeRows && !s.steady && s.preferred(PrefillLinear) {
		return phase{}
	}
	norm, linear, route := ops[0], ops[1], ops[2]
	t := norm.Out[0]
	if len(linear.W) != 2 || linear.Add || linear.In[0] != t || route.In[0] != linear.Out[0] ||
		t == norm.In[0] {
		return phase{}
	}
	results := []*engine.Buffer{linear.Out[0], route.Out[0], route.Out[1]}
	var order, groups, normed, rounded kernels.Pointer
	if s.grouped(route, i+3) {
		order, groups = s.address(route.Out[2]), s.address(route.Out[3])
		results = append(results, route.Out[2:]...)
	}
	form := s.expertPair(i + 3).form
	if form != kernels.InOrder && s.dead(t, i+4) {
		rounded = s.terms.address
	} else {
		form, results, normed = kernels.InOrder, append(results, t), s.address(t)
	}
	router := s.parts(linear)[0]
	router.X.X = s.address(norm.In[0])
	return phase{from: i, to: i + 3, variant: DecodeRoute, results: results, form: form,
		launches: []kernels.Launch{s.dev.target.DecodeRoute(router, s.address(norm.W[0]),
			s.address(route.Out[0]), s.address(route.Out[1]), order, groups, normed, rounded,
			form, s.arrived.address, s.p.Spec.ExpertsPerToken, norm.Eps)}}
}

// grouped tells whether anything reads the slots sorted by expert that a route leaves.
func (s *step) grouped(route *engine.Op, i int) bool {
	for j, op := range s.p.Ops[i:] {
		if op.Kind == engine.Route {
			return false
		}
		if len(op.In) >= 2 && op.In[0] == route.Out[2] &&
			(!s.decodes(kernels.DecodeRows) || s.expertPair(i+j).to > 0 ||
				s.decodeGateUp(i+j).to == 0 && s.decodeDown(i+j).to == 0) {
			return true
		}
	}
	return false
}

// routeOf is the operation that chose the experts of slots sorted like this.
func (s *step) routeOf(i int, order *engine.Buffer) *engine.Op {
	for _, op := range slices.Backward(s.p.Ops[:i]) {
		if op.Kind == engine.Route && op.Out[2] == order {
			return op
		}
	}
	return nil
}

func (s *step) decodeGateUp(i int) phase {
	op := s.p.Ops[i]
	if op.Kind != engine.GateUp || len(op.In) != 3 || !s.dev.enabled(DecodeGateUp) {
		return phase{}
	}
	route := s.routeOf(i, op.In[0])
	if route == nil {
		return phase{}
	}
	return s.single(i, DecodeGateUp, s.dev.target.DecodeGateUp(s.rows(op.In[2]),
		s.address(route.Out[0]), s.experts(op)))
}

func (s *step) decodeDown(i int) phase {
	ops := s.run(i, engine.Down, engine.Combine)
	if ops == nil || !s.dev.enabled(DecodeDown) {
		return phase{}
	}
	down, combine := ops[0], ops[1]
	route := s.routeOf(i, down.In[0])
	if len(down.In) != 3 || route == nil || combine.In[0] != down.Out[0] ||
		combine.In[1] != route.Out[1] || !s.dead(down.Out[0], i+2) {
		return phase{}
	}
	x, t := combine.Out[0], s.dev.target
	l := t.DecodeDown(s.rows(x), s.address(x), s.address(route.Out[0]), s.address(route.Out[1]),
		s.p.Spec.ExpertsPerToken, s.experts(down))
	return phase{from: i, to: i + 2, variant: DecodeDown, launches: []kernels.Launch{l},
		results: combine.Out}
}
