package kernels

import "fmt"

// The launches of a decode step, six a layer. Each replaces several plain launches and leaves the
// same buffers.

// DecodeRows is the most rows that the decode kernels are meant for. On an H200 a step of 16 takes
// 1.2 times as long by them as by the kernels of many rows.
const DecodeRows = 8

// RouteRows is the most rows of a step whose router may be DecodeRoute, which reads all weights for
// each row. By count the matrix unit's kernel is faster from there on.
const RouteRows = 256

const (
	DecodeRuns   = 40       // the most runs that a context is cut in
	SplitRows    = 64       // the most rows in which blocks share a context: more fill a card alone
	MostShared   = 48 << 10 // shared memory that every GPU gives a block without being asked
	blockReserve = 1 << 10  // bytes that a block costs a processor besides its shared memory
	pageTokens   = 32       // positions of a page; cache.h has the same
)

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

// shared is the launch of a kernel whose warps take units of work (columns, or pairs of them) one
// after another, for `copies` row groups or slots along x, which read the weights from the L2 cache
// together. As many blocks as are resident at once, since each stages its activations: one has
// `memory` bytes, and the registers of a processor have room for `resident`.
func (t Target) shared(kernel string, copies, units, resident, memory int, args ...any) Launch {
	blocks := t.Processors * t.fits(resident, memory) / copies
	return launch(kernel, grid(copies, max(1, min(divideUp(units, threads/t.Warp), blocks))),
		block(threads), memory, args...)
}

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

// dense is a launch by rows of p of n columns: eight on the matrix unit, if there is a Scratch with
// room, four, if shared memory has it, or one, for which 8-bit weights are on the unit too.
func (t Target) dense(kernel string, p Product, n int, s Scratch, args []any) Launch {
	most, rows, resident := p.Rows.Most, 1, residentOne
	if g, shared := t.unit(most, n, p.K); s != (Scratch{}) && shared > 0 {
		return launch(kernel+"_8", g, block(threads), shared, s.args(args)...)
	}
	if p.Weights != "" {
		warps := divideUp(n, 64) * 4 * threads / t.Warp // of a block of 16 columns and all of k
		if t.Shared == amdShared {
			warps /= 2 // of 32
		}
		return t.shared(kernel+"_1", most, warps, resident, 48*(divideUp(p.K, 64)*8+4),
			Scratch{}.args(args)...)
	}
	if most > 1 && 4*4*p.K <= max(MostShared, t.Shared/2-blockReserve) {
		rows, resident = 4, residentMany
	}
	return t.shared(fmt.Sprintf("%s_%d", kernel, rows), divideUp(most, rows), divideUp(n, 2),
		resident, rows*4*p.K, args...)
}

// DecodeLinear is Norm by norm bf16 [K], if norm is not 0, and then a Product on float32; with a
// Scratch on the matrix unit.
func (t Target) DecodeLinear(p Product, norm Pointer, eps float32, s Scratch) Launch {
	args := p.args()
	args = append(append(args[:3:3], norm), append(args[3:], eps)...)
	return t.dense("decode_linear"+p.Weights, p, p.N, s, args)
}

// DecodeQKV is Norm, the Products of q, k and v, Rope and WriteKV; with a Scratch on the unit.
func (t Target) DecodeQKV(list []Product, norm Pointer, c Cache, angles Pointer, h Heads,
	eps float32, s Scratch) Launch {
	q := list[0]
	args := []any{q.Rows.Live, q.Y, c.Layer, q.X, norm}
	for _, p := range list {
		args = append(args, p.W, p.Bias)
	}
	args = append(args, angles, c.Positions, c.Tables, c.TableAt, c.PageElements, i32(q.K),
		i32(h.Query), i32(h.KV), i32(h.Dim), eps)
	return t.dense("decode_qkv"+q.Weights+c.Elements.suffix(), q, h.Width(), s, args)
}

// DecodeAttend is Attention of all rows, or, if list is not 0, of the rows that list i32 [rows]
// names. Long contexts are cut into at most `runs` parts.
func (t Target) DecodeAttend(a Attention, list Pointer, s Scratch, runs int) Launch {
	c, h, most := a.Cache, a.Heads, a.Rows.Most
	if a.Window > 0 {
		runs = 1 // a window of 128 positions is one run
	}
	// A few times the resident blocks share rows and runs: idle ones cost time too.
	high, deep := most, min(runs, max(1, 8*t.Processors/(h.KV*most)))
	if most > SplitRows {
		high, deep = min(most, max(SplitRows, 4*t.Processors/h.KV)), 1
	}
	// By the matrix unit, so many blocks a processor; in large steps each has several KV heads.
	many, resident := 0, [...]int{F32: 0, BF16: 1, E4M3: 2}[c.Elements]
	if most > DecodeRows && resident > 0 && t.Shared != amdShared && !s.Steady {
		many = 1 + min(1, most/17)
		high = min(most, max(1, resident*t.Processors/h.KV))
		deep = min(deep, 3-many)
	}
	// each warp's queries, or its page, and results
	shared := threads / t.Warp * (64*t.Warp + 8*66*4)
	return launch("decode_attend"+c.Elements.suffix(), grid(h.KV, high, deep), block(threads),
		shared, a.Rows.Live, list, a.O, s.Partial, s.Arrived, a.QKV, c.Layer, a.Sinks,
		c.Positions, c.Tables, c.TableAt, c.PageElements, i32(h.Query), i32(h.KV), i32(a.Window),
		i32(runs), i32(many), a.Scale)
}

// DecodeRoute is Norm, the router's Product and Route; without order and groups if order is 0. If
// normed is 0, Norm's result is left as by RoundRows.
func (t Target) DecodeRoute(p Product, norm, experts, weights, order, groups, normed,
	round Pointer, f Form, arrived Pointer, top int, eps float32) Launch {
	return launch("decode_route", grid(p.Rows.Most, divideUp(p.N, threads/t.Warp)), block(threads),
		max(4*p.K, 4*p.N*(threads/t.Warp+1)), p.Rows.Live, experts, weights, order, groups, normed,
		round, int32(f), p.Y, arrived, p.X, norm, p.W, p.Bias, i32(p.K), i32(p.N), i32(top), eps)
}

// DecodeGateUp is GateUp of rows, by experts i32 [rows, top].
func (t Target) DecodeGateUp(r Rows, experts Pointer, e Experts) Launch {
	return t.shared("decode_gate_up", r.Most*e.Top, e.N, residentMany, 4*e.K, r.Live, e.To, experts,
		e.From.X, e.W.Blocks, e.W.Scales, e.W.Bias, i32(e.N), i32(e.K), i32(e.Top), e.Limit)
}

// DecodeDown is Down and Combine to x.
func (t Target) DecodeDown(r Rows, x, experts, weights Pointer, top int, e Experts) Launch {
	return t.shared("decode_down", r.Most, e.N, residentMany, 4*e.K*top, r.Live, x, experts,
		weights, e.From.X, e.W.Blocks, e.W.Scales, e.W.Bias, i32(e.N), i32(e.K), i32(top))
}
