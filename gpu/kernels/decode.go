package kernels

import "fmt"

// The launches of a decode step, six a layer. Each replaces several plain launches and leaves the
// same buffers.

// DecodeRows is the most rows that the decode kernels are meant for. On an H200 a step of 16 takes
// 1.2 times as long by them as by the kernels of many rows.
const DecodeRows = 8

// RouteRows is the most rows of a step whose router is DecodeRoute. It reads all weights for each
// row, but the matrix unit's kernel has too few columns to fill a card.
const RouteRows = 1024

// DecodeRuns is the most runs that a context is cut in.
const DecodeRuns = 40

// SplitRows is the most rows of a step in which several blocks share a row's context: with more,
// rows alone fill a card.
const SplitRows = 64

const pageTokens = 32 // positions of a page; cache.h has the same

// AttendRuns is how many runs a context of so many positions is cut into, independent of a step's
// rows: one or two for each processor of the card, of at least eight pages.
func (t Target) AttendRuns(h Heads, positions int) int {
	perHead := 2 * t.Processors / h.KV
	if perHead > DecodeRuns {
		perHead = t.Processors / h.KV
	}
	return max(1, min(perHead, DecodeRuns, divideUp(positions, 8*pageTokens)))
}

// Decodes tells whether the decode kernels can do this shape; otherwise the reference kernels run.
func Decodes(h Heads, hidden, intermediate, top int) bool {
	return Attends(h) && hidden%32 == 0 && intermediate%32 == 0 && top <= 16 &&
		4*4*hidden <= MostShared && 4*4*h.Query*h.Dim <= 2*MostShared &&
		4*top*intermediate <= MostShared
}

// Attends tells whether DecodeAttend can do these heads; it serves steps of any size.
func Attends(h Heads) bool { return h.Dim == 64 && h.Query <= 8*h.KV }

// MostShared is the shared memory that every GPU gives a block without being asked.
const MostShared = 48 << 10

// DecodePartialBytes is DecodeAttend's scratch for contexts of so many positions, on any card; 0 if
// blocks share no row. Its contents do not matter.
func DecodePartialBytes(bucket int, h Heads, positions int) int64 {
	runs := min(DecodeRuns, divideUp(positions, 8*pageTokens))
	if bucket > SplitRows || runs == 1 {
		return 0
	}
	return int64(bucket) * int64(h.KV) * int64(runs) * 8 * 66 * 4
}

// rowsAtOnce is how many rows one pass over dense weights of k columns serves.
func rowsAtOnce(bucket, k int) int {
	if bucket > 1 && 4*4*k <= MostShared {
		return 4
	}
	return 1
}

// shared is the launch of a kernel whose warps take units of work (columns, or pairs of them) one
// after another, for `copies` row groups or slots. Copies are along x: their blocks run together
// and read the weights from the L2 cache. All blocks are resident at once, because each must stage
// its activations, and there are as many as fit, so that every processor has equal work. A block
// has `memory` bytes, and the registers of a processor have room for `resident`.
func (t Target) shared(kernel string, copies, units, resident, memory int, args ...any) Launch {
	blocks := t.Processors * t.fits(resident, memory) / copies
	return launch(kernel, grid(copies, max(1, min(divideUp(units, threads/t.Warp), blocks))),
		block(threads), memory, args...)
}

const blockReserve = 1 << 10 // bytes that a block costs a processor besides its shared memory

// fits is how many blocks a processor has at once.
func (t Target) fits(resident, memory int) int {
	room := t.Shared + blockReserve
	if t.Warp == 32 && t.Shared == amdShared {
		room *= 2 // RDNA's processors are pairs of compute units
	}
	return max(1, min(resident, room/(memory+blockReserve)))
}

// How many blocks fit into the registers; the sources tell the compiler the same.
const (
	residentOne  = 3 // one row of a dense matrix
	residentMany = 2 // four rows; MXFP4
)

func resident(rowsAtOnce int) int {
	if rowsAtOnce == 1 {
		return residentOne
	}
	return residentMany
}

// DecodeLinear is Norm by norm bf16 [K], if norm is not 0, and then a Product on float32.
func (t Target) DecodeLinear(p Product, norm Pointer, eps float32) Launch {
	rows := rowsAtOnce(p.Rows.Most, p.K)
	return t.shared(suffixed("decode_linear", rows), divideUp(p.Rows.Most, rows),
		divideUp(p.N, 2), resident(rows), 4*p.K*rows, p.args(norm, eps)...)
}

// DecodeLinearQ8 is a Product on activations in 8 bits.
func (t Target) DecodeLinearQ8(p Product) Launch {
	rows, row := 1, p.K+p.K/8
	if p.Rows.Most > 1 && 4*row <= MostShared {
		rows = 4
	}
	return t.shared(suffixed("decode_linear_q8", rows), divideUp(p.Rows.Most, rows),
		divideUp(p.N, 8), resident(rows), rows*row, p.args()...)
}

// QKV are the three projections.
type QKV struct{ WQ, BQ, WK, BK, WV, BV Pointer }

// DecodeQKV is Norm, the projections, Rope and WriteKV.
func (t Target) DecodeQKV(r Rows, qkv Pointer, c Cache, x, norm Pointer, w QKV, angles Pointer,
	hidden int, h Heads, eps float32) Launch {
	rows := rowsAtOnce(r.Most, hidden)
	return t.shared(suffixed("decode_qkv"+c.Elements.suffix(), rows), divideUp(r.Most, rows),
		h.Width()/2, resident(rows), 4*hidden*rows, r.Live, qkv, c.Layer, x, norm, w.WQ, w.BQ,
		w.WK, w.BK, w.WV, w.BV, angles, c.Positions, c.Tables, c.TableAt, c.PageElements,
		i32(hidden), i32(h.Query), i32(h.KV), i32(h.Dim), eps)
}

func suffixed(name string, rows int) string { return fmt.Sprintf("%s_%d", name, rows) }

// DecodeAttend is Attention of all rows, or, if list is not 0, of the rows that list i32 [rows]
// names. Long contexts are cut into at most `runs` parts. partial has DecodePartialBytes; arrived
// i32 [most rows, h.KV] is 0 before the first step.
func (t Target) DecodeAttend(a Attention, list, partial, arrived Pointer, runs int) Launch {
	c, h, most := a.Cache, a.Heads, a.Rows.Most
	if a.Window > 0 {
		runs = 1 // a window of 128 positions is one run
	}
	// A few times the resident blocks share rows and runs: idle ones cost time too.
	high, deep := most, min(runs, max(1, 8*t.Processors/(h.KV*most)))
	if most > SplitRows {
		high, deep = min(most, max(SplitRows, 4*t.Processors/h.KV)), 1
	}
	// a block keeps its queries, and each warp's page and results
	shared := 8*64*4 + threads/t.Warp*8*(32+66)*4
	return launch("decode_attend"+c.Elements.suffix(), grid(h.KV, high, deep), block(threads),
		shared, a.Rows.Live, list, a.O, partial, arrived, a.QKV, c.Layer, a.Sinks, c.Positions,
		c.Tables, c.TableAt, c.PageElements, i32(h.Query), i32(h.KV), i32(a.Window), i32(runs),
		a.Scale)
}

// DecodeRoute is Norm, the router's Linear and Route; without order and groups if order is 0.
func (t Target) DecodeRoute(r Rows, experts, weights, order, groups, normed, router, arrived, x,
	norm, w, bias Pointer, hidden, count, top int, eps float32) Launch {
	return launch("decode_route", grid(r.Most, divideUp(count, threads/t.Warp)), block(threads),
		max(4*hidden, 4*count*(threads/t.Warp+1)), r.Live, experts, weights, order, groups, normed,
		router, arrived, x, norm, w, bias, i32(hidden), i32(count), i32(top), eps)
}

// DecodeGateUp is GateUp, by experts i32 [rows, top] and normed f32 [rows, k].
func (t Target) DecodeGateUp(r Rows, h, experts, normed Pointer, w ExpertMatrix, n, k, top int,
	limit float32) Launch {
	return t.shared("decode_gate_up", r.Most*top, n, residentMany, 4*k, r.Live, h, experts, normed,
		w.Blocks, w.Scales, w.Bias, i32(n), i32(k), i32(top), limit)
}

// DecodeDown is Down and Combine.
func (t Target) DecodeDown(r Rows, x, experts, weights, h Pointer, w ExpertMatrix, n, k,
	top int) Launch {
	return t.shared("decode_down", r.Most, n, residentMany, 4*k*top, r.Live, x, experts, weights, h,
		w.Blocks, w.Scales, w.Bias, i32(n), i32(k), i32(top))
}
