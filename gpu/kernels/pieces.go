package kernels

import "slices"

// Scratch is where blocks meet that divide a sum: a long context, or the k of a matrix of few
// tiles. It has ScratchBytes, and Arrived is 0 before the first step.
type Scratch struct {
	Partial, Arrived Pointer
	Steady           bool // sums are cut alike in steps of any size
}

// args puts the scratch after the rows and the result of a kernel's arguments.
func (s Scratch) args(args []any) []any {
	return slices.Insert(args, 2, any(s.Partial), any(s.Arrived))
}

const pieceBytes, pieceTiles, steadyTiles = 20 << 20, 4096, 160 // the most of a matrix in pieces

// ScratchBytes are for sums and counts of a step on any card; large steps can have small ones'.
func ScratchBytes(bucket int, h Heads, positions, width, vocab int, steady bool) (int64, int64) {
	rows, runs := min(bucket, SplitRows), min(DecodeRuns, divideUp(positions, 8*pageTokens))
	k, n := max(width, h.Query*h.Dim), max(h.Width(), width, vocab)*33/32+3*directColumns
	padded := max(9, min(128*(bucket-DecodeRows), bucket+127)) // to tiles, and squares of eight
	sums := min(pieceBytes, min(16, divideUp(k, 64))*padded*n*4)
	if steady { // steadyTiles for each tile of rows, so that the bucket does not matter
		sums = divideUp(bucket, 128) * steadyTiles * 128 * tileColumns * 4
	}
	return int64(max(sums, rows*h.KV*runs*8*66*4)), int64(4 * max(bucket*max(2, h.KV), pieceTiles))
}

// pieces is how many blocks of so much shared memory divide the k of each of some tiles, whose sums
// have so many bytes. It depends on the card, the shape and, unless Steady, the bucket.
func (t Target) pieces(tiles, k, shared, bytes int) int {
	fit := t.Processors * t.fits(residentMany, shared)
	return max(1, min(fit*(2+t.Cut)/2/tiles, k/64, 16, pieceBytes/(tiles*bytes)))
}

// unit is the grid and the shared memory of decode_unit.cu: as many pieces as fill the card, or as
// shared memory needs, and blocks that take several tiles. None if the scratch is too small.
func (t Target) unit(rows, n, k int) (g [3]uint32, shared int) {
	const static, sums = 9 << 10, 4 * 8 * 65
	groups, chunks := divideUp(rows, 8), divideUp(k, 64)
	tiles, room := groups*divideUp(n, 64), max(1, ((t.Shared-static)/384-4)/8) // in chunks
	pieces := max(t.pieces(tiles, k, static, sums), divideUp(chunks, room))
	if tiles > pieceTiles || tiles*pieces*sums > pieceBytes {
		return g, 0
	}
	shared = 384 * (divideUp(chunks, pieces)*8 + 4)
	blocks := t.Processors * t.fits(residentMany, shared+static) / pieces
	return grid(groups, max(1, min(tiles, blocks)/groups), pieces), shared
}

// DirectLinears are Products of up to 64 rows on float32, by WGMMA with weights from registers. A
// block keeps its rows' whole share of k; none if that does not fit, or the sums into the scratch.
func (t Target) DirectLinears(list []Product, s Scratch) (l Launch, fits bool) {
	args, tiles := sideBySide(list, tileColumns)
	columns, chunks := 16, list[0].K/32
	for columns < list[0].Rows.Most {
		columns *= 2
	}
	least := max(1, min(t.Processors*(2+t.Cut)/2/tiles, chunks/2))
	for pieces := least; columns <= 64 && pieces <= 16; pieces++ {
		shared := wgmmaSlack + 4*columns*max(directColumns, 32*divideUp(chunks, 2*pieces))
		if sums := tiles * pieces * columns * directColumns * 4; shared+blockReserve <= t.Shared &&
			(pieces == 1 || tiles <= pieceTiles && sums <= pieceBytes) {
			return launch("prefill_linear_direct_wgmma"+list[0].Weights, grid(1, tiles, pieces),
				block(512), shared, s.args(args)...), true
		}
	}
	return l, false
}

// PrefillQKV is Norm, the Products of q, k and v, Rope and WriteKV on a bf16 cache, by WGMMA: as
// DirectLinears, if direct and they fit, or with rows that Norm leaves in bf16; none of 8 bits.
func (t Target) PrefillQKV(list []Product, norm Pointer, c Cache, angles, rounded Pointer,
	eps float32, s Scratch, direct bool) []Launch {
	heads := []any{c.Layer, angles, c.Positions, c.Tables, c.TableAt, c.PageElements}
	if l, fits := t.DirectLinears(list, s); fits && direct {
		l.Kernel = "prefill_qkv_direct_wgmma" + list[0].Weights
		l.Args = append(append(l.Args, norm, eps), heads...)
		return []Launch{l}
	}
	if list[0].Weights != "" {
		return nil
	}
	first := t.Norm(list[0].Rows, 0, rounded, list[0].X, norm, list[0].K, eps)
	list[0].X = rounded
	l := t.PrefillLinears(list, Rounded, s)
	l.Kernel, l.Args = "prefill_qkv_wgmma", append(l.Args, heads...)
	return []Launch{first, l}
}
