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
	DecodeQKV     Variant = "decode_qkv"      // norm, projections, RoPE, KV write
	DecodeLinear  Variant = "decode_linear"   // norm if there is one, one projection
	QKVUnit       Variant = "decode_qkv_unit" // the same for eight rows at once
	LinearUnit    Variant = "decode_linear_unit"
	DecodeRoute   Variant = "decode_route" // norm, router, choice of experts
	DecodeGateUp  Variant = "decode_gate_up"
	DecodeDown    Variant = "decode_down"       // down, weighted sum and residual
	Attend        Variant = "decode_attend"     // steps of any size
	PrefillAttend Variant = "prefill_attend"    // on a bf16 cache
	PrefillQKV    Variant = "prefill_qkv_wgmma" // as DecodeQKV, on a bf16 cache
	PrefillLinear Variant = "prefill_linear"
	DirectLinear  Variant = "prefill_linear_direct_wgmma" // of up to some dozens of rows
	PrefillGateUp Variant = "prefill_gate_up"
	PrefillDown   Variant = "prefill_down"
	StreamExperts Variant = "stream_experts" // in two terms, with the suffix _bf16 one
	// tokens are chosen on the card, else on the host
	Sampling Variant = "sample"
)

// onQ8 is the suffix of the variants of a matrix.
var onQ8 = map[engine.Kind]Variant{engine.LinearQ8: "_q8"}

func Variants() []Variant {
	list := []Variant{DecodeQKV, QKVUnit, DecodeLinear, LinearUnit, DecodeRoute, DecodeGateUp,
		DecodeDown, Attend, DecodeQKV + "_q8", DecodeLinear + "_q8", PrefillAttend,
		PrefillAttend + "_bf16"}
	for _, kind := range []Variant{PrefillLinear, PrefillLinear + "_q8", PrefillGateUp, PrefillDown,
		StreamExperts} {
		list = append(list, kind, kind+"_bf16")
	}
	return append(list, PrefillGateUp+"_mx", PrefillDown+"_mx", PrefillLinear+"_wgmma",
		PrefillQKV, PrefillQKV+"_q8", DirectLinear, DirectLinear+"_q8", PrefillGateUp+"_wgmma",
		StreamExperts+"_wgmma", Sampling)
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
		matchers = append(matchers, s.prefillLinear, s.decodeRoute, s.decodeGateUp, s.decodeDown)
	case s.decodes(kernels.DecodeRows):
		matchers = append(matchers, s.decodeRoute, s.decodeLinear, s.decodeGateUp, s.decodeDown)
	case s.p.Rows > kernels.DecodeRows:
		if s.decodes(kernels.RouteRows) {
			matchers = append(matchers, s.decodeRoute)
		}
		matchers = append(matchers, s.prefillLinear, s.prefillExperts)
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

// matrix is a dense matrix of float32 x that operation i begins, and where the next one begins. A
// Norm by g before it and the Quantize of 8-bit weights are part of it; nothing else reads them.
func (s *step) matrix(i int) (op *engine.Op, x, g *engine.Buffer, next int) {
	norm := s.run(i, engine.Norm)
	i += len(norm)
	q := s.run(i, engine.Quantize, engine.LinearQ8)
	switch next = i + 1; {
	case q != nil && s.dead(q[0].Out[0], i+2) && s.dead(q[0].Out[1], i+2):
		next = i + 2
	case s.run(i, engine.Linear) == nil:
		return nil, nil, nil, i
	}
	if x = s.p.Ops[i].In[0]; norm != nil {
		if x != norm[0].Out[0] || x == norm[0].In[0] || !s.dead(x, next) {
			return nil, nil, nil, i
		}
		x, g = norm[0].In[0], norm[0].W[0]
	}
	return s.p.Ops[next-1], x, g, next
}

// few is the variant of a matrix for few rows, and its scratch on the matrix unit. One row of 8-bit
// weights needs none; with drafts the way of more rows serves it.
func (s *step) few(op *engine.Op, usual, unit Variant) (v Variant, scratch kernels.Scratch) {
	switch v = usual + onQ8[op.Kind]; {
	case v == usual && s.preferred(unit):
		return unit, s.scratch
	case v != usual && (s.p.Rows > 1 || s.p.Settings.Drafts > 0):
		scratch = s.scratch
	}
	return v, scratch
}

func (s *step) qkv(i int) phase {
	linear, x, g, next := s.matrix(i)
	ops := s.run(next, engine.Rope, engine.WriteKV)
	if g == nil || ops == nil || !s.decodes(s.p.Rows) {
		return phase{}
	}
	rope, write, qkv := ops[0], ops[1], linear.Out[0]
	variant, scratch := s.few(linear, DecodeQKV, QKVUnit)
	many := s.p.Rows > kernels.DecodeRows || s.steady
	if many {
		variant = PrefillQKV + onQ8[linear.Kind]
	}
	if len(linear.W) != 6 || linear.Add || rope.Out[0] != qkv || write.In[0] != qkv ||
		!s.dev.enabled(variant) || many && s.denseWays()[0] != warpgroups {
		return phase{}
	}
	parts, c := s.parts(linear, x), s.cache(write, write.Out[0])
	t, norm, angles, eps := s.target(), s.address(g), s.address(rope.In[0]), s.p.Spec.NormEps
	list := []kernels.Launch{t.DecodeQKV(parts, norm, c, angles, s.heads(), eps, scratch)}
	if many {
		list = t.PrefillQKV(parts, norm, c, angles, s.terms.address, eps, s.scratch,
			s.multiplier == nil && !s.steady)
		if list == nil || c.Elements != kernels.BF16 {
			return phase{}
		}
	}
	return phase{from: i, to: next + 2, variant: variant, launches: list,
		results: []*engine.Buffer{qkv, write.Out[0]}}
}

// decodeLinear is a projection, with the norm before it if nothing else reads the norm's result.
func (s *step) decodeLinear(i int) phase {
	op, x, g, next := s.matrix(i)
	if op == nil || x.Width%32 != 0 || 4*x.Width > kernels.MostShared {
		return phase{}
	}
	variant, scratch := s.few(op, DecodeLinear, LinearUnit)
	if !s.dev.enabled(variant) {
		return phase{}
	}
	return phase{from: i, to: next, variant: variant, results: op.Out,
		launches: products(s.parts(op, x), func(p kernels.Product) kernels.Launch {
			return s.dev.target.DecodeLinear(p, s.address(g), s.p.Spec.NormEps, scratch)
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
	router := s.parts(linear, norm.In[0])[0]
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
