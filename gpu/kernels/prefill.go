package kernels

import "fmt"

// The launches of a step of many rows: matrices and attention on the matrix unit.

// Terms is how many bf16 terms an activation is cut into for the matrix unit.
type Terms int

const (
	Rounded   Terms = 1 // rounded to bf16
	Unrounded Terms = 3 // all of float32
)

// Unit is the best matrix unit of a card.
type Unit uint8

const (
	MMA   Unit = iota // bf16 by a warp: mma.sync, MFMA or WMMA; every card has it
	WGMMA             // bf16 by a warpgroup: sm_90a
	MX                // MXFP4 on both sides: sm_120a, sm_121a, gfx950; bf16 as MMA
)

func (u Unit) suffix() string { return [...]string{"", "_wgmma", "_mx"}[u] }

// tile is the rows that a block of a matrix kernel computes, and its shared memory.
type tile struct {
	rows   int
	shared int // bytes
}

const (
	tileColumns   = 128
	directColumns = tileColumns + 4             // with those of squares
	attendShare   = 4                           // blocks that share a tile's runs of positions
	rateThreads   = threads                     // of MatrixRate
	wgmmaStage    = 128 * 64 * 2                // bytes of an operand
	wgmmaSlack    = 1024                        // operands begin at multiples of it
	wgmmaRate     = wgmmaSlack + 3*wgmmaStage/2 // operands of 64 and 128 rows
)

var (
	mmaTile   = tile{64, 64 * (tileColumns + 4) * 4}
	wgmmaTile = tile{128, wgmmaSlack + 4*wgmmaStage} // stages of tokens
	// half of its results reuse the memory of the operands
	mxTile = tile{128, 33792}
)

// Form is how rows rounded to bf16 lie for the matrix unit.
type Form int32

const (
	InOrder  Form = iota // for a dense matrix by WGMMA
	OneTerm              // for MXFP4 by streams
	TwoTerms             // likewise, which keeps 16 bits of an activation
	InShares             // for MXFP4 by WGMMA
)

// RoundRows is to bf16 of x f32 [rows, width].
func (t Target) RoundRows(r Rows, to, x Pointer, width int, f Form) Launch {
	return r.cover("round_rows", ShareWidth(width)/8, 128, to, x, i32(width), int32(f))
}

func ShareWidth(width int) int { return divideUp(width, 64) * 64 }

// PrefillLinears are up to three Products side by side on the X of the first: float32, or by WGMMA
// bf16 (RoundRows). With a Scratch k is in pieces.
func (t Target) PrefillLinears(list []Product, terms Terms, s Scratch) Launch {
	args, across := sideBySide(list, tileColumns)
	kernel, size, most := fmt.Sprintf("prefill_linear%s_%d", list[0].Weights, terms), mmaTile, 16
	if t.Unit == WGMMA && terms == Rounded { // the last block of a tile adds all pieces alone
		kernel, size = "prefill_linear_wgmma", tile{128, wgmmaSlack + (3+3)*wgmmaStage}
		most = max(1, t.Processors*(2+t.Cut)/2/across)
	}
	down, pieces := divideUp(list[0].Rows.Most, size.rows), 1
	if s != (Scratch{}) {
		tiles := across * down
		if s.Steady {
			tiles, most = across, max(1, min(most, steadyTiles/across))
		}
		pieces = min(most, t.pieces(tiles, list[0].K, size.shared, 4*size.rows*tileColumns))
	}
	return launch(kernel, grid(down, across, pieces), block(threads), size.shared, s.args(args)...)
}

// sideBySide are the arguments of up to three Products in one launch, and their tiles of columns.
func sideBySide(list []Product, columns int) (args []any, tiles int) {
	args = []any{list[0].Rows.Live, list[0].Y, list[0].X}
	var sizes []any
	for _, p := range append(list, Product{}, Product{})[:3] {
		args, sizes = append(args, p.W, p.Bias), append(sizes, i32(p.N))
		tiles += divideUp(p.N, columns)
	}
	return append(append(args, sizes...), i32(list[0].K), i32(list[0].Stride),
		flag(list[0].Add)), tiles
}

// PrefillWarpgroups is GateUp or Down on rows InShares, as it leaves h.
func (t Target) PrefillWarpgroups(e Experts) Launch { return t.PrefillExperts(e, Rounded) }

// PrefillExperts is GateUp or Down on float32, or by MX on terms of MXFP4 (QuantizeMX).
func (t Target) PrefillExperts(e Experts, terms Terms) Launch {
	kernel, size := fmt.Sprintf("prefill_%s_%d", e.name(), terms), mmaTile
	if terms == Rounded && t.Unit != MMA && (t.Unit == MX) == (e.From.Q != 0) {
		kernel = "prefill_" + e.name() + t.Unit.suffix()
		size = [...]tile{WGMMA: wgmmaTile, MX: mxTile}[t.Unit]
	}
	columns := e.N << min(e.Top, 1) // a gate and an up
	// every expert may leave its last tile unfilled
	tiles := divideUp(e.Slots, size.rows) + min(e.Slots, e.Experts)
	return launch(kernel, grid(divideUp(columns, tileColumns), tiles), block(threads), size.shared,
		e.args()...)
}

// TermsMXBytes are the sizes of activations in terms of MXFP4, for rows of width elements, a
// multiple of 32: codes Q u8 [rows, 2, width/2] and scales D u8 [rows, 2, width/32].
func TermsMXBytes(rows, width int) (q, d int64) {
	return int64(rows) * int64(width), int64(rows) * int64(width) / 16
}

// QuantizeMX cuts x f32 [rows, width] into two terms of MXFP4, a 25th of a block's largest off.
func (t Target) QuantizeMX(r Rows, to Activations, x Pointer, width int) Launch {
	return r.cover("quantize_mx", width/32, 64, to.Q, to.D, x, i32(width))
}

func PrefillAttends(h Heads, c Cache) bool { return Attends(h) && c.Elements != F32 }

// PrefillAttend is Attention for many rows. It reads adjacent rows of one sequence together. Single
// rows are slower; where singles has their number they are left to DecodeAttend.
func (t Target) PrefillAttend(a Attention, terms Terms, singles Pointer) Launch {
	tileRows := map[Terms]int{Rounded: 16, Unrounded: 8}[terms]
	name, c, h := "prefill_attend", a.Cache, a.Heads
	if c.Elements == E4M3 {
		name += c.Elements.suffix()
	}
	return launch(fmt.Sprintf("%s_%d", name, terms), grid(h.KV, divideUp(a.Rows.Most, tileRows),
		attendShare), block(16*tileRows), 0, a.Rows.Live, a.O, a.QKV, c.Layer, a.Sinks,
		c.Positions, c.Tables, c.TableAt, c.PageElements, i32(h.Query), i32(h.KV), i32(a.Window),
		singles, a.Scale)
}

// RateLoop is the loop of a unit: its multiplications in a launch, and its memory.
type RateLoop struct {
	Operands        []int // bytes: a and b; by MX each is followed by its scales
	Sums            int   // bytes that a block leaves
	Multiplications int   // of a block in one round, each with its addition
}

// Rate describes the loop of one of the target's units.
func (t Target) Rate(u Unit) RateLoop {
	const a, b = 2, 4 // operands of 16 rows of each side
	groups := rateThreads / t.Warp
	switch u {
	case WGMMA:
		const k = 64 // of a warpgroup's product
		groups = rateThreads / 128
		return RateLoop{[]int{64 * k * 2, 128 * k * 2}, groups * 64 * 128 * 4,
			groups * 64 * 128 * k}
	case MX:
		return RateLoop{[]int{a * 1024, a * 64, b * 1024, b * 64}, groups * 1024,
			groups * a * b * 16 * 16 * 128}
	}
	return RateLoop{[]int{a * 512, b * 512}, groups * 1024, groups * a * b * 16 * 16 * 16}
}

// MatrixRate multiplies by one of the target's units, rounds times. list is the sums (Rate.Sums a
// block), then the operands: bf16 [2][16][16] and [4][16][16]; by WGMMA [64][64] and
// [128][64]; by MX codes u8 [2][16][64] and [4][16][64] with scales u8 [2][16][4] and [4][16][4].
func (t Target) MatrixRate(u Unit, blocks int, list []any, rounds int) Launch {
	return launch("matrix_rate"+u.suffix(), grid(blocks), block(rateThreads),
		map[Unit]int{WGMMA: wgmmaRate}[u], append(list, i32(rounds))...)
}
