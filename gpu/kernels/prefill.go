package kernels

import "fmt"

// The launches of a step of many rows: the matrices and attention on the matrix unit. The rest of
// such a step is the reference kernels.

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

// Unit is the best that a card has to multiply matrices with.
type Unit uint8

const (
	MMA   Unit = iota // bf16 by a warp: mma.sync, MFMA or WMMA; every card has it
	WGMMA             // bf16 by a warpgroup: sm_90a
	MX                // MXFP4 on both sides: sm_120a, sm_121a, gfx950; bf16 as MMA
)

const (
	wgmmaRows   = 128
	wgmmaShared = 2 * 2 * (128 / 8) * (64 / 8) * 72 * 2 // two stages of two operands
	mxRows      = 128
	mxShared    = 33792 // half a tile of results, where the operands were
)

// prefill is the kernel of a name on this target, the rows a block of it makes, and its shared
// memory.
func (t Target) prefill(name string, terms Terms) (kernel string, rows int, shared uint32) {
	if t.Unit == WGMMA && terms == Rounded {
		return name + "_wgmma", wgmmaRows, wgmmaShared
	}
	return terms.kernel(name), tileRows, tileShared
}

// PrefillLinear is Linear.
func (t Target) PrefillLinear(rows Pointer, bucket int, y, x, w, bias Pointer, k, n, stride int,
	add bool, terms Terms) Launch {
	kernel, tile, shared := t.prefill("prefill_linear", terms)
	return Launch{kernel, grid(divideUp(n, tileColumns), divideUp(bucket, tile)), block(threads),
		shared,
		[]any{rows, y, x, w, bias, i32(k), i32(n), i32(stride), flag(add)}}
}

// expertTiles is how many tiles of rows the slots of a step can need: every expert may leave its
// last tile unfilled.
func expertTiles(slots, experts, rows int) int {
	return divideUp(slots, rows) +
		min(slots, experts)
}

// PrefillGateUp is GateUp on float32 activations.
func (t Target) PrefillGateUp(slots, experts int, h, order, groups, x Pointer, w ExpertMatrix, n, k,
	top int, limit float32, terms Terms) Launch {
	kernel, tile, shared := t.prefill("prefill_gate_up", terms)
	return Launch{kernel, grid(divideUp(2*n, tileColumns), expertTiles(slots, experts, tile)),
		block(threads), shared,
		[]any{h, order, groups, x, w.Blocks, w.Scales, w.Bias, i32(n), i32(k), i32(top), limit}}
}

// PrefillDown is Down on float32 activations.
func (t Target) PrefillDown(slots, experts int, y, order, groups, h Pointer, w ExpertMatrix, n,
	k int, terms Terms) Launch {
	kernel, tile, shared := t.prefill("prefill_down", terms)
	return Launch{kernel, grid(divideUp(n, tileColumns), expertTiles(slots, experts, tile)),
		block(threads), shared,
		[]any{y, order, groups, h, w.Blocks, w.Scales, w.Bias, i32(n), i32(k)}}
}

// PrefillLinearQ8 is LinearQ8.
func (t Target) PrefillLinearQ8(rows Pointer, bucket int, y Pointer, x Activations, w, bias Pointer,
	k, n, stride int, add bool) Launch {
	return Launch{"prefill_linear_q8", grid(divideUp(n, tileColumns), divideUp(bucket, tileRows)),
		block(threads), 0,
		[]any{rows, y, x.Q, x.D, w, bias, i32(k), i32(n), i32(stride), flag(add)}}
}

// TermsMX are the activations of PrefillGateUpMX and PrefillDownMX: codes Q u8 [rows, 2, width/2]
// and scales S u8 [rows, 2, width/32].
type TermsMX struct{ Q, S Pointer }

// TermsMXBytes are the sizes of both for rows of width elements, a multiple of 32.
func TermsMXBytes(rows, width int) (q, s int64) {
	return int64(rows) * int64(width), int64(rows) * int64(width) / 16
}

// QuantizeMX cuts x f32 [rows, width] into two terms of MXFP4, which leave at most a 25th of the
// largest of each block of 32.
func (t Target) QuantizeMX(rows Pointer, bucket int, to TermsMX, x Pointer, width int) Launch {
	return Launch{"quantize_mx", grid(divideUp(width/32, 64), bucket), block(64), 0,
		[]any{rows, to.Q, to.S, x, i32(width)}}
}

// PrefillGateUpMX is GateUp on x in terms of MXFP4, on a target whose unit is MX.
func (t Target) PrefillGateUpMX(slots, experts int, h, order, groups Pointer, x TermsMX,
	w ExpertMatrix, n, k, top int, limit float32) Launch {
	return Launch{"prefill_gate_up_mx", grid(divideUp(2*n, tileColumns),
		expertTiles(slots, experts, mxRows)), block(threads), mxShared,
		[]any{h, order, groups, x.Q, x.S, w.Blocks, w.Scales, w.Bias, i32(n), i32(k), i32(top),
			limit}}
}

// PrefillDownMX is Down on h in terms of MXFP4, on a target whose unit is MX.
func (t Target) PrefillDownMX(slots, experts int, y, order, groups Pointer, h TermsMX,
	w ExpertMatrix, n, k int) Launch {
	return Launch{"prefill_down_mx", grid(divideUp(n, tileColumns),
		expertTiles(slots, experts, mxRows)), block(threads), mxShared,
		[]any{y, order, groups, h.Q, h.S, w.Blocks, w.Scales, w.Bias, i32(n), i32(k)}}
}

// PrefillAttends tells whether PrefillAttend can do this shape; where not, DecodeAttend and Attend
// do.
func PrefillAttends(h Heads, c Cache) bool {
	return h.Dim == 64 && h.Query <= 8*h.KV && c.Elements != F32
}

// prefillAttendShare is how many blocks share the runs of consecutive positions among a tile's
// rows: a step of many sequences has many.
const prefillAttendShare = 4

// PrefillAttend is Attend for many rows. Rows that follow each other in one sequence are read
// together; those that stand alone are as right, but slower, and are left out where runsOnly says
// so: DecodeAttend is for them.
func (t Target) PrefillAttend(rows Pointer, bucket int, o, qkv Pointer, c Cache, sinks Pointer,
	h Heads, window int, scale float32, terms Terms, runsOnly bool) Launch {
	at := 16
	if terms == Whole {
		at = 8
	}
	name := "prefill_attend"
	if c.Elements == E4M3 {
		name += c.suffix()
	}
	return Launch{terms.kernel(name), grid(h.KV, divideUp(bucket, at), prefillAttendShare),
		block(16 * at), 0,
		[]any{rows, o, qkv, c.Layer, sinks, c.Positions, c.Tables, c.TableAt, c.PageElements,
			i32(h.Query), i32(h.KV), i32(window), flag(runsOnly), scale}}
}

// MatrixProof multiplies a bf16 [16, 16] by b bf16 [16, 16], transposed, into c f32 [16, 16].
func (t Target) MatrixProof(c, a, b Pointer) Launch {
	return Launch{"matrix_proof", grid(1), block(t.Warp), 0, []any{c, a, b}}
}

// MatrixProofWGMMA multiplies a bf16 [64, 16] by b bf16 [128, 16], transposed, into c f32 [64,
// 128].
func (t Target) MatrixProofWGMMA(c, a, b Pointer) Launch {
	return Launch{"matrix_proof_wgmma", grid(1), block(128), 6912, []any{c, a, b}}
}

// MatrixProofMX multiplies MXFP4 a by b, transposed, into c f32 [16, 16]: codes u8 [16, 64], scales
// u8 [16, 4].
func (t Target) MatrixProofMX(c, a, aScales, b, bScales Pointer) Launch {
	return Launch{"matrix_proof_mx", grid(1), block(t.Warp), 0, []any{c, a, aScales, b, bScales}}
}

// The loops of the bare unit (MatrixRate and its kin): blocks of rateThreads, each of whose groups
// of threads leaves its own sums.
const (
	rateThreads = 256
	rateA       = 2 // operands of 16 rows of each side
	rateB       = 4
	rateK       = 64 // of a warpgroup's product
)

// Rate is the loop of a unit: what it multiplies in a launch, and the memory that it takes.
type Rate struct {
	A, B             int // bytes of each operand
	AScales, BScales int // and of their scales, 0 where there are none
	Sums             int // bytes that a block leaves
	Multiplications  int // of a block in one round, each with its addition
}

// Rate is that of one of the target's units.
func (t Target) Rate(u Unit) Rate {
	const pairs = rateA * rateB
	groups := rateThreads / t.Warp
	switch u {
	case WGMMA:
		groups = rateThreads / 128
		return Rate{A: 64 * rateK * 2, B: 128 * rateK * 2, Sums: groups * 64 * 128 * 4,
			Multiplications: groups * 64 * 128 * rateK}
	case MX:
		return Rate{A: rateA * 1024, B: rateB * 1024, AScales: rateA * 64, BScales: rateB * 64,
			Sums: groups * 1024, Multiplications: groups * pairs * 16 * 16 * 128}
	}
	return Rate{A: rateA * 512, B: rateB * 512, Sums: groups * 1024,
		Multiplications: groups * pairs * 16 * 16 * 16}
}

// MatrixRate multiplies by one of the target's units, rounds times, and leaves the sums in c
// (Rate.Sums a block). The operands are bf16 [2][16][16] and [4][16][16]; by WGMMA [64][64] and
// [128][64]; by MX codes u8 [2][16][64] and [4][16][64] with scales u8 [2][16][4] and [4][16][4].
func (t Target) MatrixRate(u Unit, blocks int, c, a, aScales, b, bScales Pointer,
	rounds int) Launch {
	switch u {
	case WGMMA:
		return Launch{"matrix_rate_wgmma", grid(blocks), block(rateThreads), 27648,
			[]any{c, a, b, i32(rounds)}}
	case MX:
		return Launch{"matrix_rate_mx", grid(blocks), block(rateThreads), 0,
			[]any{c, a, aScales, b, bScales, i32(rounds)}}
	}
	return Launch{"matrix_rate", grid(blocks), block(rateThreads), 0, []any{c, a, b, i32(rounds)}}
}
