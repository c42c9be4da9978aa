package engine

import (
	"fmt"
	"math"
	"slices"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/q8"
)

// The model. Each line appends one operation; reading the file from Record down is reading gpt-oss.

// Record writes the forward pass of a model of shape s as a program for steps of up to rows rows.
func Record(s models.Spec, o Settings, rows int) (*Program, error) {
	p, err := NewProgram(s, o, rows)
	if err != nil {
		return nil, err
	}
	qkvWidth := (s.Heads + 2*s.KVHeads) * s.HeadDim
	x := p.Scratch("x", F32, PerRow, s.Hidden)     // the residual stream
	t := p.Scratch("norm", F32, PerRow, s.Hidden)  // its norm, the input of every matrix
	qkv := p.Scratch("qkv", F32, PerRow, qkvWidth) // q heads, then k heads, then v heads
	angles := p.Scratch("angles", F32, PerRow, s.HeadDim)
	heads := p.Scratch("heads", F32, PerRow, s.Heads*s.HeadDim)
	router := p.Scratch("router", F32, PerRow, s.Experts)
	routes := p.Routes()
	h := p.Scratch("h", F32, PerSlot, s.Intermediate)
	y := p.Scratch("y", F32, PerSlot, s.Hidden)

	p.Embed(x, p.Weight("model.embed_tokens.weight", BF16, s.Vocab, s.Hidden))
	p.Tap("embedding", x)
	p.Angles(angles)
	for layer := range s.Layers {
		w := weights{p, layer}
		p.recording = layer + 1

		p.Norm(w.label("norm"), t, x, w.vector("input_layernorm.weight", s.Hidden))
		p.Tap(w.label("input_layernorm"), t)
		p.Dense12(w.label("qkv"), qkv, t,
			w.dense("self_attn.q_proj", s.Heads*s.HeadDim, s.Hidden),
			w.dense("self_attn.k_proj", s.KVHeads*s.HeadDim, s.Hidden),
			w.dense("self_attn.v_proj", s.KVHeads*s.HeadDim, s.Hidden))
		p.Rope(w.label("rope"), qkv, angles)
		p.Tap(w.label("qkv_rope"), qkv)
		p.WriteKV(w.label("kv"), layer, qkv)
		p.Attend(w.label("attend"), layer, heads, qkv, w.vector("self_attn.sinks", s.Heads))
		p.Tap(w.label("attn_heads"), heads)
		p.Dense(w.label("o"), x, heads, true,
			w.dense("self_attn.o_proj", s.Hidden, s.Heads*s.HeadDim))
		p.Tap(w.label("after_attn"), x)

		p.Norm(w.label("norm2"), t, x, w.vector("post_attention_layernorm.weight", s.Hidden))
		p.Tap(w.label("post_attention_layernorm"), t)
		p.Linear(w.label("router"), router, t, w.linear("mlp.router", s.Experts, s.Hidden))
		p.Tap(w.label("router_logits"), router)
		p.Route(w.label("route"), routes, router)
		p.Tap(w.label("experts"), routes.Experts)
		p.Tap(w.label("expert_weights"), routes.Weights)
		p.GateUp(w.label("gate_up"), h, routes, p.activations(w.label("norm2"), t, routes),
			w.experts("gate_up_proj", 2*s.Intermediate, s.Hidden))
		p.Down(w.label("down"), y, routes, p.activations(w.label("h"), h, routes),
			w.experts("down_proj", s.Hidden, s.Intermediate))
		p.Combine(w.label("combine"), x, y, routes)
		p.Tap(w.label("out"), x)
	}
	p.recording = 0
	last := p.Scratch("last", F32, PerLogit, s.Hidden)
	p.Gather(last, x)
	p.Norm("final_norm", last, last, p.Weight("model.norm.weight", BF16, 1, s.Hidden))
	p.Tap("final_norm", last)
	p.Dense("unembed", p.Logits(), last, false,
		Matrix{Weight: p.denseWeight("lm_head.weight", s.Vocab, s.Hidden)})
	p.split()
	return p, p.Check()
}

// Matrix is a bf16 weight [N, K] and its bias [N] or nil.
type Matrix struct{ Weight, Bias *Buffer }

// ExpertMatrix is one MXFP4 matrix [N, K] of every expert: blocks [E*N, K/2], scales [E*N, K/32],
// bias [E, N].
type ExpertMatrix struct{ Blocks, Scales, Bias *Buffer }

// Routes is the result of Route: which rows go to which experts, and with what weight. Op documents
// the layout of Groups.
type Routes struct{ Experts, Weights, Order, Groups *Buffer }

// weights finds a layer's tensors by the names of the published checkpoint.
type weights struct {
	p     *Program
	layer int
}

func (w weights) label(what string) string { return fmt.Sprintf("layer%d.%s", w.layer, what) }
func (w weights) name(what string) string {
	return fmt.Sprintf("model.layers.%d.%s", w.layer, what)
}

func (w weights) vector(what string, n int) *Buffer { return w.p.Weight(w.name(what), BF16, 1, n) }

func (w weights) linear(what string, n, k int) Matrix {
	return Matrix{w.p.Weight(w.name(what+".weight"), BF16, n, k), w.p.Weight(w.name(what+".bias"),
		BF16, 1, n)}
}

// dense is linear with its weight in the type that Settings.Dense names.
func (w weights) dense(what string, n, k int) Matrix {
	return Matrix{w.p.denseWeight(w.name(what+".weight"), n, k), w.p.Weight(w.name(what+".bias"),
		BF16, 1, n)}
}

// denseWeight names a matrix [n, k] of the checkpoint, or its 8-bit copy.
func (p *Program) denseWeight(name string, n, k int) *Buffer {
	if p.Settings.Dense == DenseQ8 {
		return p.Weight(name+q8.Suffix, U8, q8.Groups(n), q8.GroupBytes(k))
	}
	return p.Weight(name, BF16, n, k)
}

func (w weights) experts(what string, n, k int) ExpertMatrix {
	what, e := "mlp.experts."+what, w.p.Spec.Experts
	return ExpertMatrix{
		w.p.Weight(w.name(what+"_blocks"), U8, e*n, k/2),
		w.p.Weight(w.name(what+"_scales"), U8, e*n, k/32),
		w.p.Weight(w.name(what+"_bias"), BF16, e, n),
	}
}

// activations are the input of an expert matrix: the values, or their 8-bit form in that mode.
func (p *Program) activations(label string, x *Buffer, r Routes) []*Buffer {
	if !p.Settings.InEight() {
		return []*Buffer{x}
	}
	return append(p.quantized(label, x, I8), p.rounded(label, x, PerSlot, r.Order)...)
}

// TilePad is added to the width of rows for tiles, since rows of some 4 KiB share the sets of a
// cache.
const TilePad = 32

// rounded records rows of prompts as bf16; nothing without tiles.
func (p *Program) rounded(label string, x *Buffer, e Extent, order ...*Buffer) []*Buffer {
	if !p.Settings.Tiles || x.Extent == PerLogit {
		return nil
	}
	name := x.Name + ".bf16"
	if len(order) > 0 {
		name += ".slots"
	}
	t := list(p.Scratch(name, BF16, e, x.Width+TilePad))
	p.record(Round, label, t, append(list(x), order...))
	return t
}

// quantized records x in 8 bits or, with I16, in 12.
func (p *Program) quantized(label string, x *Buffer, t Type) []*Buffer {
	q, d, block := x.Name+".q8", x.Name+".d", 16
	if t == I16 {
		q, d, block = x.Name+".q12", x.Name+".d12", 32
	}
	both := list(p.Scratch(q, t, x.Extent, x.Width), p.Scratch(d, F32, x.Extent, x.Width/block))
	p.Quantize(label, both[0], both[1], x)
	return both
}

func (p *Program) Routes() Routes {
	s := p.Spec
	return Routes{
		Experts: p.Scratch("experts", I32, PerRow, s.ExpertsPerToken),
		Weights: p.Scratch("expert_weights", F32, PerRow, s.ExpertsPerToken),
		Order:   p.Scratch("order", I32, PerSlot, 1),
		Groups:  p.add(Buffer{Name: "groups", Type: I32, Rows: 1, Width: 1 + 2*s.Experts}),
	}
}

// Below: one recorder for each operation. Kind says what each computes.

func (p *Program) Embed(x, w *Buffer) { p.record(Embed, "embed", list(x), nil, w) }

func (p *Program) Angles(a *Buffer) {
	op := p.record(Angles, "angles", list(a), nil)
	op.Frequencies, op.Scale = models.Frequencies(p.Spec)
}

func (p *Program) Norm(label string, y, x, w *Buffer) {
	p.record(Norm, label, list(y), list(x), w).Eps = p.Spec.NormEps
}

func (p *Program) Linear(label string, y, x *Buffer, parts ...Matrix) *Op {
	return p.record(Linear, label, list(y), list(x), flat(parts)...)
}

// Dense is Linear with weights in the type that Settings.Dense names.
func (p *Program) Dense(label string, y, x *Buffer, add bool, parts ...Matrix) {
	p.dense(label, y, x, p.Settings.Compute == Exact, parts).Add = add
}

// Dense12 is Dense for q, k and v, which lose most by 8-bit inputs: attention's logits are large.
func (p *Program) Dense12(label string, y, x *Buffer, parts ...Matrix) {
	p.dense(label, y, x, true, parts)
}

func (p *Program) dense(label string, y, x *Buffer, in12 bool, parts []Matrix) *Op {
	kind, in := Linear, list(x)
	if p.Settings.Dense == DenseQ8 {
		bits := I8
		if in12 && p.Settings.Dense12 {
			bits = I16
		}
		kind, in = LinearQ8, p.quantized(label, x, bits)
	}
	if kind == Linear { // with 8-bit weights q and k would lose too much
		in = append(in, p.rounded(label, x, PerRow)...)
	}
	return p.record(kind, label, list(y), in, flat(parts)...)
}

func (p *Program) Rope(label string, qkv, angles *Buffer) {
	p.record(Rope, label, list(qkv), list(angles))
}

func (p *Program) WriteKV(label string, layer int, qkv *Buffer) {
	p.record(WriteKV, label, list(p.KV()), list(qkv)).cached(p, layer)
}

func (p *Program) Attend(label string, layer int, o, qkv, sinks *Buffer) {
	op := p.record(Attend, label, list(o), list(qkv, p.KV()), sinks)
	op.cached(p, layer)
	op.Scale = float32(1 / math.Sqrt(float64(p.Spec.HeadDim)))
}

func (p *Program) Route(label string, r Routes, router *Buffer) {
	p.record(Route, label, list(r.Experts, r.Weights, r.Order, r.Groups), list(router))
}

func (p *Program) Quantize(label string, q, d, x *Buffer) {
	p.record(Quantize, label, list(q, d), list(x))
}

func (p *Program) GateUp(label string, h *Buffer, r Routes, x []*Buffer, w ExpertMatrix) {
	p.record(GateUp, label, list(h), append(list(r.Order, r.Groups), x...), w.Blocks, w.Scales,
		w.Bias).Limit = p.Spec.SwigluLimit
}

func (p *Program) Down(label string, y *Buffer, r Routes, h []*Buffer, w ExpertMatrix) {
	p.record(Down, label, list(y), append(list(r.Order, r.Groups), h...), w.Blocks, w.Scales,
		w.Bias)
}

func (p *Program) Combine(label string, x, y *Buffer, r Routes) {
	p.record(Combine, label, list(x), list(y, r.Weights))
}

func (p *Program) Gather(y, x *Buffer) { p.record(Gather, "gather", list(y), list(x)) }

// Tap records a copy of x under a name if Settings.Taps asks for that name.
func (p *Program) Tap(name string, x *Buffer) {
	if slices.Contains(p.Settings.Taps, name) {
		p.record(Tap, name, list(p.Scratch("tap."+name, x.Type, x.Extent, x.Width)), list(x))
	}
}

// record appends an operation of the layer that is being recorded.
func (p *Program) record(k Kind, label string, out, in []*Buffer, w ...*Buffer) *Op {
	op := &Op{Kind: k, Label: label, Layer: p.recording - 1, Out: out, In: in, W: w}
	p.Ops = append(p.Ops, op)
	return op
}

// cached sets the place of an operation's layer in the cache, and its window.
func (op *Op) cached(p *Program, layer int) {
	op.Layer = layer
	op.CacheLayer, op.Twin = AllLayers(p.Spec, p.Settings.KVCacheDtype).Place(layer)
	if p.Spec.Sliding(layer) {
		op.Window = p.Spec.Window
	}
}

func list(b ...*Buffer) []*Buffer { return b }

func flat(parts []Matrix) (w []*Buffer) {
	for _, m := range parts {
		w = append(w, m.Weight, m.Bias)
	}
	return w
}
