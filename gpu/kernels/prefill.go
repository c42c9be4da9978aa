package kernels

import "fmt"

// The launches of a step of many rows: the matrices on the matrix unit. The rest of such a step is DecodeAttend and the plain kernels.

// Terms is in how many bf16 an activation is cut before it meets the matrix unit.
type Terms int

const (
	Rounded Terms = 1 // rounded to bf16
	Whole   Terms = 3 // all of float32
)

const (
	tileRows    = 64
	tileColumns = 128
	tileShared  = tileRows * (tileColumns + 4) * 4
)

func (n Terms) kernel(name string) string { return fmt.Sprintf("%s_%d", name, int(n)) }

// PrefillLinear is Linear.
func (t Target) PrefillLinear(rows Pointer, bucket int, y, x, w, bias Pointer, k, n, stride int, add bool, terms Terms) Launch {
	return Launch{terms.kernel("prefill_linear"), grid(divideUp(n, tileColumns), divideUp(bucket, tileRows)), block(threads), tileShared,
		[]any{rows, y, x, w, bias, i32(k), i32(n), i32(stride), flag(add)}}
}

// expertTiles is how many tiles of rows the slots of a step can need: every expert may leave its last tile unfilled.
func expertTiles(slots, experts int) int { return divideUp(slots, tileRows) + min(slots, experts) }

// PrefillGateUp is GateUp on float32 activations.
func (t Target) PrefillGateUp(slots, experts int, h, order, groups, x Pointer, w ExpertMatrix, n, k, top int, limit float32, terms Terms) Launch {
	return Launch{terms.kernel("prefill_gate_up"), grid(divideUp(2*n, tileColumns), expertTiles(slots, experts)), block(threads), tileShared,
		[]any{h, order, groups, x, w.Blocks, w.Scales, w.Bias, i32(n), i32(k), i32(top), limit}}
}

// PrefillDown is Down on float32 activations.
func (t Target) PrefillDown(slots, experts int, y, order, groups, h Pointer, w ExpertMatrix, n, k int, terms Terms) Launch {
	return Launch{terms.kernel("prefill_down"), grid(divideUp(n, tileColumns), expertTiles(slots, experts)), block(threads), tileShared,
		[]any{y, order, groups, h, w.Blocks, w.Scales, w.Bias, i32(n), i32(k)}}
}

// MatrixProof multiplies a bf16 [16, 16] by b bf16 [16, 16], transposed, into c f32 [16, 16].
func (t Target) MatrixProof(c, a, b Pointer) Launch {
	return Launch{"matrix_proof", grid(1), block(t.Warp), 0, []any{c, a, b}}
}
