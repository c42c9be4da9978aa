package enginetest

import (
	"fmt"
	"math"

	"github.com/ossrun/ossrun/runtime/engine"
)

// route, quantize, gate_up, down and combine.

// routed records a Route on random router logits, skewed so that some experts get many rows and
// some none.
func (r *rig) routed() (engine.Routes, []float32) {
	s := r.p.Spec
	logits := r.normal(r.rows * s.Experts)
	for i := range logits {
		logits[i] -= float32(i % s.Experts) // the last experts are rarely chosen
	}
	routes := r.p.Routes()
	r.p.Route("route", routes, r.fill("router", engine.PerRow, s.Experts, logits))
	return routes, logits
}

func testRoute(r *rig) (float64, error) {
	routes, logits := r.routed()
	return r.checkRoute(routes, logits)
}

func testRouteTies(r *rig) (float64, error) {
	s := r.p.Spec
	logits := make([]float32, r.rows*s.Experts)
	for i := range logits {
		logits[i] = float32(i * 7 % 3)
	}
	routes := r.p.Routes()
	r.p.Route("route", routes, r.fill("router", engine.PerRow, s.Experts, logits))
	return r.checkRoute(routes, logits)
}

func (r *rig) checkRoute(routes engine.Routes, logits []float32) (float64, error) {
	s := r.p.Spec
	weights, err := r.after(r.plainBatch(), routes.Weights, r.rows)
	if err != nil {
		return 0, err
	}
	experts, err := r.ints(routes.Experts, r.rows)
	if err != nil {
		return 0, err
	}
	order, err := r.ints(routes.Order, r.rows*s.ExpertsPerToken)
	if err != nil {
		return 0, err
	}
	groups, err := r.ints(routes.Groups, 1)
	if err != nil {
		return 0, err
	}
	var e worst
	byExpert := make([][]int32, s.Experts)
	for row := range r.rows {
		want, p := topK(wide(logits[row*s.Experts:][:s.Experts]), s.ExpertsPerToken)
		for j := range want {
			slot := row*s.ExpertsPerToken + j
			if int(experts[slot]) != want[j] {
				return 0, fmt.Errorf("row %d, choice %d: expert %d, not %d", row, j, experts[slot],
					want[j])
			}
			e.add(weights[slot], p[j], p[j])
			byExpert[want[j]] = append(byExpert[want[j]], int32(slot))
		}
	}
	return float64(e), checkGroups(groups, order, byExpert)
}

// checkGroups compares order and groups with the slots of each expert.
func checkGroups(groups, order []int32, byExpert [][]int32) error {
	at, active := 0, 0
	for expert, slots := range byExpert {
		if len(slots) == 0 {
			continue
		}
		for _, slot := range slots {
			if order[at] != slot {
				return fmt.Errorf("order[%d] is slot %d, not %d", at, order[at], slot)
			}
			at++
		}
		if int(groups[1+2*active]) != expert || int(groups[2+2*active]) != at {
			return fmt.Errorf("group %d is expert %d to %d, not expert %d to %d", active,
				groups[1+2*active], groups[2+2*active], expert, at)
		}
		active++
	}
	if int(groups[0]) != active {
		return fmt.Errorf("%d groups, not %d", groups[0], active)
	}
	return nil
}

// expertMatrix is a random MXFP4 matrix [n, k] for every expert, and a product with one expert's
// row.
func (r *rig) expertMatrix(n, k int) (engine.ExpertMatrix, func(x []float64, expert, row int) (sum,
	size float64)) {
	e := r.p.Spec.Experts
	var m engine.ExpertMatrix
	var blocks, scales []byte
	var bias tensor
	m.Blocks, blocks = r.bytes("blocks", e*n, k/2, func() byte { return byte(r.rand.Uint32()) })
	m.Scales, scales = r.bytes("scales", e*n, k/32, func() byte {
		if r.rand.IntN(64) == 0 {
			return 0 // a block of almost nothing, subnormal in float32
		}
		return byte(120 + r.rand.IntN(6))
	})
	m.Bias, bias = r.weight("bias", e, n)
	return m, func(x []float64, expert, row int) (float64, float64) {
		at := expert*n + row
		return dot(mxfp4(blocks[at*k/2:(at+1)*k/2], scales[at*k/32:(at+1)*k/32]), x,
			bias.at(expert, row))
	}
}

// activations are random inputs of width k, quantized on the device if bits8; the reference sees
// what the matrix sees.
func (r *rig) activations(e engine.Extent, rows, k int, bits8 bool) ([]*engine.Buffer,
	[][]float64) {
	values := r.quantisable(rows * k)
	for i := range min(32, len(values)) {
		values[i] = 0 // a block without anything in it
	}
	x := r.fill("x", e, k, values)
	seen := make([][]float64, rows)
	for i := range seen {
		seen[i] = wide(values[i*k : (i+1)*k])
		if bits8 {
			seen[i] = quantised(seen[i], 127, r.dev.Caps().Scales)
		}
	}
	if !bits8 {
		return []*engine.Buffer{x}, seen
	}
	q, d := r.p.Scratch("q", engine.I8, e, k), r.p.Scratch("d", engine.F32, e, k/16)
	r.p.Quantize("q8", q, d, x)
	return []*engine.Buffer{q, d}, seen
}

func testGateUp(r *rig, bits8 bool) (float64, error) {
	s := r.p.Spec
	routes, logits := r.routed()
	x, seen := r.activations(engine.PerRow, r.rows, s.Hidden, bits8)
	m, product := r.expertMatrix(2*s.Intermediate, s.Hidden)
	h := r.p.Scratch("h", engine.F32, engine.PerSlot, s.Intermediate)
	r.p.GateUp("gate_up", h, routes, x, m)
	got, err := r.after(r.plainBatch(), h, r.rows*s.ExpertsPerToken)
	if err != nil {
		return 0, err
	}
	var e worst
	limit := float64(s.SwigluLimit)
	for row := range r.rows {
		experts, _ := topK(wide(logits[row*s.Experts:][:s.Experts]), s.ExpertsPerToken)
		for j, expert := range experts {
			for i := range s.Intermediate {
				gate, gateSize := product(seen[row], expert, 2*i)
				up, upSize := product(seen[row], expert, 2*i+1)
				// An error of gate is multiplied by at most 1.1*|up+1|, an error of up by at most
				// the clamped gate.
				size := 1.1*gateSize*(math.Min(math.Abs(up), limit)+1) + limit*upSize
				e.add(got[(row*s.ExpertsPerToken+j)*s.Intermediate+i], swiglu(gate, up, limit),
					size)
			}
		}
	}
	return float64(e), nil
}

func testDown(r *rig, bits8 bool) (float64, error) {
	s := r.p.Spec
	routes, logits := r.routed()
	h, seen := r.activations(engine.PerSlot, r.rows*s.ExpertsPerToken, s.Intermediate, bits8)
	m, product := r.expertMatrix(s.Hidden, s.Intermediate)
	y := r.p.Scratch("y", engine.F32, engine.PerSlot, s.Hidden)
	r.p.Down("down", y, routes, h, m)
	got, err := r.after(r.plainBatch(), y, r.rows*s.ExpertsPerToken)
	if err != nil {
		return 0, err
	}
	var e worst
	for row := range r.rows {
		experts, _ := topK(wide(logits[row*s.Experts:][:s.Experts]), s.ExpertsPerToken)
		for j, expert := range experts {
			slot := row*s.ExpertsPerToken + j
			for i := range s.Hidden {
				want, size := product(seen[slot], expert, i)
				e.add(got[slot*s.Hidden+i], want, size)
			}
		}
	}
	return float64(e), nil
}

func testCombine(r *rig) (float64, error) {
	s := r.p.Spec
	before, ys := r.normal(r.rows*s.Hidden), r.normal(r.rows*s.ExpertsPerToken*s.Hidden)
	ws := r.normal(r.rows * s.ExpertsPerToken)
	routes := r.p.Routes()
	x := r.fill("x", engine.PerRow, s.Hidden, before)
	r.set(routes.Weights, ws)
	r.p.Combine("combine", x, r.fill("y", engine.PerSlot, s.Hidden, ys), routes)
	got, err := r.after(r.plainBatch(), x, r.rows)
	if err != nil {
		return 0, err
	}
	var e worst
	for i := range got {
		row, column := i/s.Hidden, i%s.Hidden
		want, size := float64(before[i]), math.Abs(float64(before[i]))
		for j := range s.ExpertsPerToken {
			slot := row*s.ExpertsPerToken + j
			term := float64(ws[slot]) * float64(ys[slot*s.Hidden+column])
			want, size = want+term, size+math.Abs(term)
		}
		e.add(got[i], want, size)
	}
	return float64(e), nil
}
