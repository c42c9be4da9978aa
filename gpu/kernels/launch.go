package kernels

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/ossrun/ossrun/gpu/driver"
)

// The launches of the reference kernels, with the grids and blocks that their sources ask for.

type Pointer = driver.Pointer

// Launch is one kernel with its arguments, ready for a driver.
type Launch struct {
	Kernel string
	driver.Shape
	Args []any // Pointer, int32, int64 or float32: the kernel's parameters in order
}

func launch(kernel string, grid, block [3]uint32, shared int, args ...any) Launch {
	return Launch{kernel, driver.Shape{Grid: grid, Block: block, Shared: uint32(shared)}, args}
}

// Words are the arguments in slots of 8 bytes, as drivers take them.
func (l Launch) Words() []uint64 {
	words := make([]uint64, len(l.Args))
	for i, v := range l.Args {
		switch v := v.(type) {
		case Pointer:
			words[i] = uint64(v)
		case int32:
			words[i] = uint64(v)
		case int64:
			words[i] = uint64(v)
		case float32:
			words[i] = uint64(math.Float32bits(v))
		default: // a test holds every launch to its kernel's parameters
			panic(fmt.Sprintf("kernel %s: argument %d is a %T", l.Kernel, i, v))
		}
	}
	return words
}

// Rows are a buffer's: the device address of how many there are, and the most, which size grids.
type Rows struct {
	Live Pointer
	Most int
}

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
	BF16         // of the window layers in an 8-bit cache, too
	E4M3
)

func (e Element) suffix() string { return [...]string{"_f32", "_bf16", "_f8"}[e] }

// Attention is what all kernels of attention take: O f32 [rows, Query*Dim] of QKV
// [rows, Heads.Width()] over the cache, with Sinks bf16 [Query]; Window 0: everything is visible.
type Attention struct {
	Rows   Rows
	O, QKV Pointer
	Cache  Cache
	Sinks  Pointer
	Heads  Heads
	Window int
	Scale  float32
}

// Activations are the rows that a matrix reads: float32, or numbers of few bits with their scales.
type Activations struct{ X, Q, D Pointer }

// operands gives the activations as arguments, and the suffix of the reference kernel's name.
func (x Activations) operands() (suffix string, args []any) {
	if x.Q != 0 {
		return "_q8", []any{x.Q, x.D}
	}
	return "", []any{x.X}
}

// Product is a dense matrix's: columns [0, N) of Y f32 [rows, Stride] = X [rows, K] · W bf16 [N,
// K], + Bias bf16 [N] if not 0; Add: +=.
type Product struct {
	Rows         Rows
	Y            Pointer
	X, W, Bias   Pointer
	K, N, Stride int
	Add          bool
	Weights      string // as kernels' names have them: of models/q8 "_q8"
}

func (p Product) args() []any {
	return []any{p.Rows.Live, p.Y, p.X, p.W, p.Bias, i32(p.K), i32(p.N), i32(p.Stride),
		flag(p.Add)}
}

// ExpertMatrix is an MXFP4 matrix of every expert, [experts, n, k] with k in blocks of 32. Blocks
// is a multiple of 16.
type ExpertMatrix struct{ Blocks, Scales, Bias Pointer }

// Experts is GateUp, To f32 [slots, N] of From [rows, K] with W of 2N rows an expert, or Down, To
// f32 [slots, N] of From [slots, K].
type Experts struct {
	Slots, Experts    int // the most slots there can be; how many experts
	To, Order, Groups Pointer
	From              Activations
	W                 ExpertMatrix
	N, K              int
	Top               int // GateUp: experts a row has; 0: it is Down
	Limit             float32
}

func (e Experts) name() string {
	if e.Top > 0 {
		return "gate_up"
	}
	return "down"
}

func (e Experts) args() []any {
	_, from := e.From.operands()
	args := append([]any{e.To, e.Order, e.Groups}, from...)
	args = append(args, e.W.Blocks, e.W.Scales, e.W.Bias, i32(e.N), i32(e.K))
	if e.Top > 0 {
		args = append(args, i32(e.Top), e.Limit)
	}
	return args
}

// Target is the properties of a card that a launch depends on.
type Target struct {
	Warp int  // lanes: 32 or 64
	Unit Unit // the matrix unit of prefill; MMA is on every card

	Processors int // of the card, that blocks run on: SMs or compute units
	Shared     int // bytes of shared memory that a block may have
	Cut        int // halves of the usual number of pieces of k that there are more
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

// cover is a launch over every row, with a thread for each of n units.
func (r Rows) cover(kernel string, n, threads int, args ...any) Launch {
	return launch(kernel, grid(divideUp(n, threads), r.Most), block(threads), 0,
		append([]any{r.Live}, args...)...)
}

func divideUp(n, divisor int) int { return (n + divisor - 1) / divisor }

// warps is how many blocks of 256 threads give n warps.
func (t Target) warps(n int) int { return divideUp(n, threads/t.Warp) }

func i32(v int) int32 { return int32(v) }

func flag(v bool) int32 { return map[bool]int32{true: 1}[v] }

// Embed: x f32 [rows, hidden] = rows tokens i32 [rows] of embedding bf16 [vocab, hidden].
func (t Target) Embed(r Rows, x, tokens, embedding Pointer, hidden int) Launch {
	return r.cover("embed", hidden/8, 128, x, tokens, embedding, i32(hidden))
}

// CopyRows: y = x, rows of words 32-bit words; of x those of list i32 [rows], if it is not 0.
func (t Target) CopyRows(r Rows, y, x, list Pointer, words int) Launch {
	return r.cover("copy_rows", words, threads, y, x, i32(words), list)
}

// Angles: a f32 [rows, 2*half] = cos, sin of positions i32 [rows] * frequencies f32 [half] * scale.
func (t Target) Angles(r Rows, a, positions, frequencies Pointer, half int, scale float32) Launch {
	return launch("angles", grid(r.Most), block(threads), 0, r.Live, a, positions, frequencies,
		i32(half), scale)
}

// Norm: y = RMSNorm(x) * w, x and y f32 [rows, width], w bf16 [width]; y may be x. If y is 0,
// round bf16 [rows, width] gets it.
func (t Target) Norm(r Rows, y, round, x, w Pointer, width int, eps float32) Launch {
	return launch("norm", grid(r.Most), block(threads), 0, r.Live, y, round, x, w, i32(width), eps)
}

func (t Target) Linear(p Product) Launch {
	return launch("linear"+p.Weights, grid(t.warps(p.N), p.Rows.Most), block(threads), 0,
		p.args()...)
}

// WriteKV turns q and k of qkv f32 [rows, h.Width()] by angles a f32 [rows, h.Dim], if a is not 0,
// and puts k and v into their pages, if there is a cache.
func (t Target) WriteKV(r Rows, c Cache, qkv, a Pointer, h Heads) Launch {
	return r.cover("write_kv"+c.Elements.suffix(), h.Width()/2, threads, c.Layer, qkv, a,
		c.Positions, c.Tables, c.TableAt, c.PageElements, i32(h.Query), i32(h.KV), i32(h.Dim))
}

// Attend is Attention of any shape.
func (t Target) Attend(a Attention) Launch {
	c, h := a.Cache, a.Heads
	return launch("attend"+c.Elements.suffix(), grid(t.warps(h.Query), a.Rows.Most), block(threads),
		0, a.Rows.Live, a.O, a.QKV, c.Layer, a.Sinks, c.Positions, c.Tables, c.TableAt,
		c.PageElements, i32(h.Query), i32(h.KV), i32(h.Dim), i32(a.Window), a.Scale)
}

// Route: experts i32 [rows, top] and weights f32 [rows, top] of router f32 [rows, count], then
// order and groups as engine.Op has them.
func (t Target) Route(r Rows, experts, weights, order, groups, router Pointer, count,
	top int) []Launch {
	wide := min(1024, (MostShared/4/count-1)*t.Warp/64*64)
	return []Launch{
		launch("route_choose", grid(t.warps(r.Most)), block(threads), 0, r.Live, experts, weights,
			router, i32(count), i32(top)),
		launch("route_group", grid(1), block(wide), 4*count*(wide/t.Warp+1), r.Live, order, groups,
			experts, i32(count), i32(top)),
	}
}

// Quantize: q i8 [rows, width], d f32 [rows, width/16] of x f32 [rows, width].
func (t Target) Quantize(r Rows, q, d, x Pointer, width int) Launch {
	return r.cover("quantize", width/32, 64, q, d, x, i32(width))
}

// Experts is GateUp or Down, on activations in float32 or 8 bits.
func (t Target) Experts(e Experts) Launch {
	suffix, _ := e.From.operands()
	return launch(e.name()+suffix, grid(t.warps(e.N), e.Slots), block(threads), 0, e.args()...)
}

// Combine: x f32 [rows, width] += the sum of weights f32 [rows, top] times y f32 [rows*top, width].
func (t Target) Combine(r Rows, x, y, weights Pointer, width, top int) Launch {
	return r.cover("combine", width/4, 128, x, y, weights, i32(width), i32(top))
}

// Below, sampling. logits is f32 [logit rows, vocab]; the other layouts are in sample.cu.

// LogitStats: stats of every row, before anything changes the logits.
func (t Target) LogitStats(r Rows, stats, logits Pointer, vocab int) Launch {
	return launch("logit_stats", grid(r.Most), block(512), 0, r.Live, stats, logits, i32(vocab))
}

func (t Target) EditLogits(edits Rows, list, logits Pointer, vocab int) Launch {
	return Rows{edits.Live, 1}.cover("edit_logits", edits.Most, 256, list, logits, i32(vocab))
}

// Sample: tokens i32 [logit rows] under params and masks of maskWords 32-bit words. states is
// SampleStateBytes a row, at first zeros. The first launch is enough for rows of temperature 0.
func (t Target) Sample(r Rows, tokens, states, logits, params, masks Pointer, vocab,
	maskWords int) []Launch {
	args := []any{r.Live, tokens, states, logits, params, masks, i32(vocab), i32(maskWords)}
	return []Launch{launch("sample_look", grid(sampleParts, r.Most), block(512), 0, args...),
		launch("sample", grid(sampleParts, r.Most), block(512), 0, args...)}
}

// TopLogits: ids i32 and values f32 [logit rows, count], the highest first.
func (t Target) TopLogits(r Rows, ids, values, logits Pointer, vocab, count int) Launch {
	return launch("top_logits", grid(r.Most), block(512), 0, r.Live, ids, values, logits,
		i32(vocab), i32(count))
}

// The memory that sampling shares with the host: sample.cu has the same layouts.

type SampleRow struct {
	Draw
	Mask int32 // which of the masks; -1: everything is allowed
	_    int32
}

// Draw is engine.Draw, field for field.
type Draw struct {
	Temperature, TopP, MinP float32
	TopK                    int32
	Seed                    uint64
	Position                int64
}

// LogitStats is the result of the LogitStats launch for a row.
type LogitStats struct {
	Highest float32
	Finite  uint32 // 0: a logit is NaN or infinite
	Mass    uint64 // the sum of exp(logit - Highest), times 2^40
}

// Logprob is the natural logarithm of the probability of a token with this logit.
func (s LogitStats) Logprob(logit float32) float32 {
	return float32(float64(logit) - float64(s.Highest) - math.Log(float64(s.Mass)*0x1p-40))
}

// LogitEdit changes one logit v: v/Repetition if it is positive, else v*Repetition; then minus
// Penalty, plus Bias. Was receives v.
type LogitEdit struct {
	Row, ID                        int32
	Repetition, Penalty, Bias, Was float32
}

// Sizes of the layouts, in bytes.
const (
	SampleRowBytes  = int(unsafe.Sizeof(SampleRow{}))
	LogitStatsBytes = int(unsafe.Sizeof(LogitStats{}))
	LogitEditBytes  = int(unsafe.Sizeof(LogitEdit{}))

	SampleStateBytes = 82192
	sampleParts      = 32 // blocks that share a row
)
