package device

import (
	"slices"

	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Which kernels compute a run of operations. Each operation has a reference kernel; a Variant is a
// faster one, for one operation or for several that stand behind each other. Which variants there
// are depends on the rows that a step may have:
//
//	up to kernels.DecodeRows   the decode kernels: six launches a layer
//	more                       matrices on the matrix unit, experts grouped
//
// What must stay true: a variant leaves every buffer that anything reads later as the reference
// kernels would, up to rounding. A variant that does not fit a shape, that a tap stands in the
// middle of, or that was found wrong on this card (Disable) is not taken: the reference kernels
// are.

// Variant names a faster way of computing one or more operations.
type Variant string

// The variants. Those of prefill that multiply by a matrix unit stand for several: each by the name
// of its way (variants_prefill.go) behind its own.
const (
	DecodeQKV       Variant = "decode_qkv"       // norm, projections, RoPE, KV write
	DecodeLinear    Variant = "decode_linear"    // norm where there is one, one projection
	DecodeLinearQ8  Variant = "decode_linear_q8" // one projection of 8-bit rows
	DecodeRoute     Variant = "decode_route"     // norm, router, choice of experts
	DecodeGateUp    Variant = "decode_gate_up"   //
	DecodeDown      Variant = "decode_down"      // down, weighted sum and residual
	Attend          Variant = "decode_attend"    // steps of any size
	PrefillAttend   Variant = "prefill_attend"   // on a bf16 cache
	PrefillLinear   Variant = "prefill_linear"   //
	PrefillLinearQ8 Variant = "prefill_linear_q8"
	PrefillGateUp   Variant = "prefill_gate_up" //
	PrefillDown     Variant = "prefill_down"    //
	// all of a step in one launch, where that is chosen (persistent.go)
	DecodeStep Variant = "decode_step"
)

// Variants are all that any card has.
func Variants() []Variant {
	list := []Variant{DecodeQKV, DecodeLinear, DecodeRoute, DecodeGateUp, DecodeDown, Attend,
		DecodeLinearQ8, PrefillAttend, PrefillAttend + "_bf16"}
	for _, kind := range []Variant{PrefillLinear, PrefillGateUp, PrefillDown} {
		list = append(list, kind, kind+"_bf16", kind+"_wgmma")
		if kind != PrefillLinear {
			list = append(list, kind+"_mx")
		}
	}
	return append(list, PrefillLinearQ8, DecodeStep)
}

// Chosen are the variants that are used, and proved, only where they are asked for, and are asked
// for.
func (d *Device) Chosen() []Variant {
	if d.DecodeKernel() == DecodePersistent {
		return []Variant{DecodeStep}
	}
	return nil
}

// Disable takes variants out of use: what is compiled from now on has the reference kernels in
// their place.
func (d *Device) Disable(variants ...Variant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range variants {
		d.disabled[f] = true
	}
}

// Disabled are the variants that are out of use.
func (d *Device) Disabled() []Variant {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(Variants(), func(f Variant) bool { return !d.disabled[f] })
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
	// what it writes that is read later; of the reference kernels everything
	leaves []*engine.Buffer
}

// phases cuts the program into runs, greedily: the variants that take most operations are asked
// first.
func (r *recorder) phases() (list []phase, err error) {
	matchers := []func(int) phase{r.prefillAttend, r.attend}
	switch {
	case r.reference:
		matchers = nil
	case r.decodes():
		matchers = append(matchers, r.decodeQKV, r.decodeRoute, r.decodeLinear, r.decodeGateUp,
			r.decodeDown, r.decodeLinearQ8)
	case r.p.Rows > kernels.DecodeRows:
		matchers = append(matchers, r.prefillLinear, r.prefillGateUp, r.prefillDown,
			r.prefillLinearQ8)
	}
	for i := 0; i < len(r.p.Ops); {
		ph := phase{from: i, to: i}
		for _, match := range matchers {
			if ph = match(i); ph.to > i {
				break
			}
		}
		if ph.to <= i {
			ph = phase{from: i, to: i + 1}
			if ph.launches, err = r.record(r.p.Ops[i]); err != nil {
				return nil, operationError{i, r.p.Ops[i].Label, err}
			}
		}
		list = append(list, ph)
		i = ph.to
	}
	return list, nil
}

// decodes tells whether the decode kernels have room for this program.
func (r *recorder) decodes() bool {
	s := r.p.Spec
	return r.p.Rows <= kernels.DecodeRows && kernels.Decodes(r.heads(), s.Hidden, s.Intermediate,
		s.ExpertsPerToken)
}

// run tells whether the operations from i on are of these kinds.
func (r *recorder) run(i int, kinds ...engine.Kind) bool {
	if i+len(kinds) > len(r.p.Ops) {
		return false
	}
	for j, k := range kinds {
		if r.p.Ops[i+j].Kind != k {
			return false
		}
	}
	return true
}

// dead tells that nothing reads a buffer of the arena any more from operation i on, before it is
// written anew.
func (r *recorder) dead(b *engine.Buffer, i int) bool {
	if b.Home != engine.Scratch {
		return false
	}
	for _, op := range r.p.Ops[i:] {
		if slices.Contains(op.In, b) || slices.Contains(op.Out, b) &&
			(op.Add || op.Kind == engine.Combine || op.Kind == engine.Rope) {
			return false
		}
		if slices.Contains(op.Out, b) {
			return true
		}
	}
	return !slices.Contains(r.p.Keep, b)
}

func (r *recorder) attend(i int) phase {
	op := r.p.Ops[i]
	if op.Kind != engine.Attend || !r.attends || !r.dev.enabled(Attend) {
		return phase{}
	}
	live, bucket := r.rows(op.Out[0])
	return phase{i, i + 1, Attend, []kernels.Launch{r.decodeAttend(op, live, bucket, 0)}, op.Out}
}

// decodeAttend is for all rows of the step, or for those that a list of `live` rows names.
func (r *recorder) decodeAttend(op *engine.Op, live kernels.Pointer, bucket int,
	list kernels.Pointer) kernels.Launch {
	return r.t.DecodeAttend(live, bucket, list, r.at(op.Out[0]), r.partial, r.arrived,
		r.at(op.In[0]), r.cache(op, op.In[1]), r.at(op.W[0]), r.heads(), op.Window, r.runs,
		op.Scale)
}

func (r *recorder) decodeQKV(i int) phase {
	if !r.run(i, engine.Norm, engine.Linear, engine.Rope, engine.WriteKV) ||
		!r.dev.enabled(DecodeQKV) {
		return phase{}
	}
	norm, linear, rope, write := r.p.Ops[i], r.p.Ops[i+1], r.p.Ops[i+2], r.p.Ops[i+3]
	t, qkv := norm.Out[0], linear.Out[0]
	if len(linear.W) != 6 || linear.Add || linear.In[0] != t || rope.Out[0] != qkv ||
		write.In[0] != qkv || t == norm.In[0] || !r.dead(t, i+2) {
		return phase{}
	}
	live, bucket := r.rows(qkv)
	w := kernels.QKV{WQ: r.at(linear.W[0]), BQ: r.at(linear.W[1]), WK: r.at(linear.W[2]),
		BK: r.at(linear.W[3]), WV: r.at(linear.W[4]), BV: r.at(linear.W[5])}
	l := r.t.DecodeQKV(live, bucket, r.at(qkv), r.cache(write, write.Out[0]), r.at(norm.In[0]),
		r.at(norm.W[0]), w, r.at(rope.In[0]), norm.In[0].Width, r.heads(), norm.Eps)
	return phase{i, i + 4, DecodeQKV, []kernels.Launch{l}, []*engine.Buffer{qkv, write.Out[0]}}
}

// decodeLinear is a projection, and the norm in front of it where nothing else reads that.
func (r *recorder) decodeLinear(i int) phase {
	at := i
	if r.run(i, engine.Norm, engine.Linear) {
		at = i + 1
	}
	op := r.p.Ops[at]
	if op.Kind != engine.Linear || op.In[0].Width%32 != 0 ||
		4*op.In[0].Width > kernels.MostShared || !r.dev.enabled(DecodeLinear) {
		return phase{}
	}
	x, norm, eps := op.In[0], kernels.Pointer(0), float32(0)
	if at > i {
		n := r.p.Ops[i]
		if n.Out[0] != x || !r.dead(x, at+1) {
			return phase{}
		}
		x, norm, eps = n.In[0], r.at(n.W[0]), n.Eps
	}
	live, bucket := r.rows(op.Out[0])
	y, stride := r.at(op.Out[0]), op.Out[0].Width
	ph := phase{from: i, to: at + 1, variant: DecodeLinear, leaves: op.Out}
	for j := 0; j < len(op.W); j += 2 {
		ph.launches = append(ph.launches, r.t.DecodeLinear(live, bucket, y, r.at(x), norm,
			r.at(op.W[j]), r.at(op.W[j+1]), x.Width, op.W[j].Rows, stride, op.Add, eps))
		y += kernels.Pointer(4 * op.W[j].Rows)
	}
	return ph
}

// decodeRoute leaves order and groups only where a reference expert kernel reads them.
func (r *recorder) decodeRoute(i int) phase {
	if !r.run(i, engine.Norm, engine.Linear, engine.Route) || !r.dev.enabled(DecodeRoute) {
		return phase{}
	}
	norm, linear, route := r.p.Ops[i], r.p.Ops[i+1], r.p.Ops[i+2]
	t := norm.Out[0]
	if len(linear.W) != 2 || linear.Add || linear.In[0] != t || route.In[0] != linear.Out[0] ||
		t == norm.In[0] {
		return phase{}
	}
	s := r.p.Spec
	live, bucket := r.rows(t)
	list := []kernels.Launch{r.t.DecodeRoute(live, bucket, r.at(route.Out[0]), r.at(route.Out[1]),
		r.at(t), r.at(linear.Out[0]), r.arrived,
		r.at(norm.In[0]), r.at(norm.W[0]), r.at(linear.W[0]), r.at(linear.W[1]), s.Hidden,
		s.Experts, s.ExpertsPerToken, norm.Eps)}
	leaves := []*engine.Buffer{t, linear.Out[0], route.Out[0], route.Out[1]}
	if r.grouped(route, i+3) {
		reference := r.t.Route(live, bucket, r.at(route.Out[0]), r.at(route.Out[1]),
			r.at(route.Out[2]), r.at(route.Out[3]), r.at(linear.Out[0]), s.Experts,
			s.ExpertsPerToken)
		list, leaves = append(list, reference[1]), append(leaves, route.Out[2:]...)
	}
	return phase{i, i + 3, DecodeRoute, list, leaves}
}

// grouped tells whether anything reads the slots sorted by expert that a route leaves.
func (r *recorder) grouped(route *engine.Op, i int) bool {
	for j, op := range r.p.Ops[i:] {
		if op.Kind == engine.Route {
			return false
		}
		if len(op.In) < 2 || op.In[0] != route.Out[2] {
			continue
		}
		if r.decodeGateUp(i+j).to == 0 && r.decodeDown(i+j).to == 0 {
			return true
		}
	}
	return false
}

// routeOf is the operation that chose the experts of slots sorted like this.
func (r *recorder) routeOf(i int, order *engine.Buffer) *engine.Op {
	for _, op := range slices.Backward(r.p.Ops[:i]) {
		if op.Kind == engine.Route && op.Out[2] == order {
			return op
		}
	}
	return nil
}

func (r *recorder) decodeGateUp(i int) phase {
	op := r.p.Ops[i]
	if op.Kind != engine.GateUp || len(op.In) != 3 || !r.dev.enabled(DecodeGateUp) {
		return phase{}
	}
	route := r.routeOf(i, op.In[0])
	if route == nil {
		return phase{}
	}
	s := r.p.Spec
	l := r.t.DecodeGateUp(r.state, r.p.Rows, r.at(op.Out[0]), r.at(route.Out[0]), r.at(op.In[2]),
		r.matrix(op), s.Intermediate, s.Hidden, s.ExpertsPerToken, op.Limit)
	return phase{i, i + 1, DecodeGateUp, []kernels.Launch{l}, op.Out}
}

func (r *recorder) decodeDown(i int) phase {
	if !r.run(i, engine.Down, engine.Combine) || !r.dev.enabled(DecodeDown) {
		return phase{}
	}
	down, combine := r.p.Ops[i], r.p.Ops[i+1]
	route := r.routeOf(i, down.In[0])
	if len(down.In) != 3 || route == nil || combine.In[0] != down.Out[0] ||
		combine.In[1] != route.Out[1] || !r.dead(down.Out[0], i+2) {
		return phase{}
	}
	s := r.p.Spec
	l := r.t.DecodeDown(r.state, r.p.Rows, r.at(combine.Out[0]), r.at(route.Out[0]),
		r.at(route.Out[1]), r.at(down.In[2]), r.matrix(down), s.Hidden, s.Intermediate,
		s.ExpertsPerToken)
	return phase{i, i + 2, DecodeDown, []kernels.Launch{l}, combine.Out}
}
