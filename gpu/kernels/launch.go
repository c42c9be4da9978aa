package kernels

// The launches of the reference kernels: one function a kernel, with the grid and the block that
// its source asks for.

// Pointer is a device address.
type Pointer uint64

// Launch is one kernel with its arguments, ready for a driver.
type Launch struct {
	Kernel string
	Grid   [3]uint32
	Block  [3]uint32
	Shared uint32 // bytes of dynamic shared memory
	Args   []any  // Pointer, int32, int64 or float32: the kernel's parameters in order
}

// Heads is the shape of attention.
type Heads struct{ Query, KV, Dim int }

// Width is a row of queries, keys and values.
func (h Heads) Width() int { return (h.Query + 2*h.KV) * h.Dim }

// Cache is the KV pool as a layer sees it, and the block tables of the step's rows.
type Cache struct {
	Layer        Pointer // the pool advanced to the layer: cache.h has the layout
	PageElements int64   // between pages
	Elements     Element
	Positions    Pointer // i32 [rows]
	Tables       Pointer // i32: all tables, one after another
	TableAt      Pointer // i32 [rows]: where the row's table begins
}

// Element is the type of a layer's keys and values.
type Element uint8

const (
	F32  Element = iota
	BF16         // of window layers in a cache of 8 bits as well
	E4M3
)

// ExpertMatrix is an MXFP4 matrix of every expert, [experts, n, k] with k in blocks of 32. Blocks
// lie at a multiple of 16.
type ExpertMatrix struct{ Blocks, Scales, Bias Pointer }

// Activations are the rows an expert matrix reads: float32, or 8 bits with their scales.
type Activations struct{ X, Q, D Pointer }

// Target is what a launch depends on beside the shapes.
type Target struct {
	Warp int  // lanes: 32 or 64
	Unit Unit // what prefill multiplies with; MMA is on every card

	Processors int // of the card, that blocks run on: SMs or compute units. 0: not known
}

// processors is how many a grid is cut for: an H200's where it is not known.
func (t Target) processors() int {
	if t.Processors > 0 {
		return t.Processors
	}
	return 132
}

const threads = 256 // of a block, unless a kernel says otherwise

func block(threads int) [3]uint32 { return [3]uint32{uint32(threads), 1, 1} }

func grid(size ...int) [3]uint32 {
	g := [3]uint32{1, 1, 1}
	for i, n := range size {
		g[i] = uint32(n)
	}
	return g
}

func divideUp(n, by int) int { return (n + by - 1) / by }

// warps is how many blocks of 256 threads give n warps.
func (t Target) warps(n int) int { return divideUp(n, threads/t.Warp) }

func i32(v int) int32 { return int32(v) }

func flag(v bool) int32 {
	if v {
		return 1
	}
	return 0
}

// Below, rows is the device address of the live count, bucket the most it can be.

// Embed: x f32 [rows, hidden] = rows tokens i32 [rows] of embedding bf16 [vocab, hidden].
func (t Target) Embed(rows Pointer, bucket int, x, tokens, embedding Pointer, hidden int) Launch {
	return Launch{"embed", grid(bucket), block(threads), 0, []any{rows, x, tokens, embedding,
		i32(hidden)}}
}

// Gather: y f32 [logit rows, hidden] = rows logitRow i32 [logit rows] of x f32 [rows, hidden].
func (t Target) Gather(logitRows Pointer, bucket int, y, x, logitRow Pointer, hidden int) Launch {
	return Launch{"gather", grid(bucket), block(threads), 0, []any{logitRows, y, x, logitRow,
		i32(hidden)}}
}

// CopyRows: y = x, rows of words 32-bit words.
func (t Target) CopyRows(rows Pointer, bucket int, y, x Pointer, words int) Launch {
	return Launch{"copy_rows", grid(bucket), block(threads), 0, []any{rows, y, x, i32(words)}}
}

// Angles: a f32 [rows, 2*half] = cos, then sin, of positions i32 [rows] times frequencies f32
// [half]; times scale.
func (t Target) Angles(rows Pointer, bucket int, a, positions, frequencies Pointer, half int,
	scale float32) Launch {
	return Launch{"angles", grid(bucket), block(threads), 0, []any{rows, a, positions, frequencies,
		i32(half), scale}}
}

// Norm: y = RMSNorm(x) * w, x and y f32 [rows, width], w bf16 [width]; y may be x.
func (t Target) Norm(rows Pointer, bucket int, y, x, w Pointer, width int, eps float32) Launch {
	return Launch{"norm", grid(bucket), block(threads), 0, []any{rows, y, x, w, i32(width), eps}}
}

// Linear: columns [0, n) of y f32 [rows, stride] = x f32 [rows, k] · w bf16 [n, k], + bias bf16 [n]
// if not 0; add: += instead of =.
func (t Target) Linear(rows Pointer, bucket int, y, x, w, bias Pointer, k, n, stride int,
	add bool) Launch {
	return Launch{"linear", grid(t.warps(n), bucket), block(threads), 0,
		[]any{rows, y, x, w, bias, i32(k), i32(n), i32(stride), flag(add)}}
}

// LinearQ8 is Linear on activations in 8 bits, x.Q and x.D, over the 8-bit copy that package
// models/q8 makes of w.
func (t Target) LinearQ8(rows Pointer, bucket int, y Pointer, x Activations, w, bias Pointer, k, n,
	stride int, add bool) Launch {
	return Launch{"linear_q8", grid(t.warps(n), bucket), block(threads), 0,
		[]any{rows, y, x.Q, x.D, w, bias, i32(k), i32(n), i32(stride), flag(add)}}
}

// Rope turns the query and key heads of qkv f32 [rows, h.Width()] by angles a f32 [rows, h.Dim].
func (t Target) Rope(rows Pointer, bucket int, qkv, a Pointer, h Heads) Launch {
	return Launch{"rope", grid(bucket), block(threads), 0, []any{rows, qkv, a, i32(h.Query + h.KV),
		i32(h.Dim), i32(h.Width())}}
}

// WriteKV puts k and v of qkv f32 [rows, h.Width()] into their pages.
func (t Target) WriteKV(rows Pointer, bucket int, c Cache, qkv Pointer, h Heads) Launch {
	return Launch{"write_kv" + c.suffix(), grid(bucket), block(threads), 0,
		[]any{rows, c.Layer, qkv, c.Positions, c.Tables, c.TableAt, c.PageElements, i32(h.Query),
			i32(h.KV), i32(h.Dim)}}
}

// Attend: o f32 [rows, h.Query*h.Dim] of qkv over the cache, sinks bf16 [h.Query]; window 0:
// everything is visible.
func (t Target) Attend(rows Pointer, bucket int, o, qkv Pointer, c Cache, sinks Pointer, h Heads,
	window int, scale float32) Launch {
	return Launch{"attend" + c.suffix(), grid(t.warps(h.Query), bucket), block(threads), 0,
		[]any{rows, o, qkv, c.Layer, sinks, c.Positions, c.Tables, c.TableAt, c.PageElements,
			i32(h.Query), i32(h.KV), i32(h.Dim), i32(window), scale}}
}

func (c Cache) suffix() string {
	switch c.Elements {
	case BF16:
		return "_bf16"
	case E4M3:
		return "_f8"
	}
	return "_f32"
}

// Route: experts i32 [rows, top] and weights f32 [rows, top] of router f32 [rows, count], then
// order and groups as engine.Op has them.
func (t Target) Route(rows Pointer, bucket int, experts, weights, order, groups, router Pointer,
	count, top int) []Launch {
	return []Launch{
		{"route_choose", grid(divideUp(bucket, 64)), block(64), 0, []any{rows, experts, weights,
			router, i32(count), i32(top)}},
		{"route_group", grid(1), block(threads), uint32(4 * count * (threads/t.Warp + 1)),
			[]any{rows, order, groups, experts, i32(count), i32(top)}},
	}
}

// Quantize: q i8 [rows, width], d f32 [rows, width/16] of x f32 [rows, width].
func (t Target) Quantize(rows Pointer, bucket int, q, d, x Pointer, width int) Launch {
	return Launch{"quantize", grid(divideUp(width/32, 64), bucket), block(64), 0,
		[]any{rows, q, d, x, i32(width)}}
}

// GateUp: h f32 [slots, n] of activations [rows, k]; w has 2n rows an expert. slots is the most
// there can be.
func (t Target) GateUp(slots int, h, order, groups Pointer, x Activations, w ExpertMatrix, n, k,
	top int, limit float32) Launch {
	name, in := x.operands("gate_up")
	args := append([]any{h, order, groups}, in...)
	return Launch{name, grid(t.warps(n), slots), block(threads), 0,
		append(args, w.Blocks, w.Scales, w.Bias, i32(n), i32(k), i32(top), limit)}
}

// Down: y f32 [slots, n] of activations [slots, k].
func (t Target) Down(slots int, y, order, groups Pointer, h Activations, w ExpertMatrix, n,
	k int) Launch {
	name, in := h.operands("down")
	args := append([]any{y, order, groups}, in...)
	return Launch{name, grid(t.warps(n), slots), block(threads), 0, append(args, w.Blocks, w.Scales,
		w.Bias, i32(n), i32(k))}
}

func (x Activations) operands(kernel string) (string, []any) {
	if x.Q != 0 {
		return kernel + "_q8", []any{x.Q, x.D}
	}
	return kernel, []any{x.X}
}

// Combine: x f32 [rows, width] += the sum of weights f32 [rows, top] times y f32 [rows*top, width].
func (t Target) Combine(rows Pointer, bucket int, x, y, weights Pointer, width, top int) Launch {
	return Launch{"combine", grid(bucket), block(threads), 0, []any{rows, x, y, weights, i32(width),
		i32(top)}}
}

// Below, sampling. logits is f32 [logit rows, vocab]; sample.cu has the layouts of stats, edits and
// params.

// LogitStats: stats of every row, before anything changes the logits.
func (t Target) LogitStats(logitRows Pointer, bucket int, stats, logits Pointer, vocab int) Launch {
	return Launch{"logit_stats", grid(bucket), block(512), 0, []any{logitRows, stats, logits,
		i32(vocab)}}
}

// EditLogits applies the live count edits, at most `most`, to logits.
func (t Target) EditLogits(count Pointer, most int, edits, logits Pointer, vocab int) Launch {
	return Launch{"edit_logits", grid(divideUp(most, 256)), block(256), 0,
		[]any{count, edits, logits, i32(vocab)}}
}

// Sample: tokens i32 [logit rows] under params [logit rows] and masks of maskWords 32-bit words
// each.
func (t Target) Sample(logitRows Pointer, bucket int, tokens, logits, params, stats, masks Pointer,
	vocab, maskWords int) Launch {
	return Launch{"sample", grid(bucket), block(512), 0,
		[]any{logitRows, tokens, logits, params, stats, masks, i32(vocab), i32(maskWords)}}
}

// TopLogits: ids i32 and values f32 [logit rows, count], the highest first.
func (t Target) TopLogits(logitRows Pointer, bucket int, ids, values, logits Pointer, vocab,
	count int) Launch {
	return Launch{"top_logits", grid(bucket), block(512), 0, []any{logitRows, ids, values, logits,
		i32(vocab), i32(count)}}
}
