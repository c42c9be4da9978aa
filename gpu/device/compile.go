package device

import (
	"fmt"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Translates the operations of an engine.Program into launches of gpu/kernels.

// launch is a kernel with its arguments packed.
type launch struct {
	kernels.Launch
	function *driver.Function
	words    []uint64
}

func (l launch) queue(s *driver.Stream) error { return s.Launch(l.function, l.Shape, l.words) }

// defaultShared is how much dynamic shared memory a launch may have without permission: of NVIDIA's
// 48 KiB what no kernel declares for itself; stream_down_32 has 33 KiB.
const defaultShared = kernels.MostShared - 34<<10

func (d *Device) ready(l kernels.Launch) (launch, error) {
	f, err := d.function(l.Kernel)
	if err == nil && l.Shared > defaultShared {
		err = f.AllowShared(int(l.Shared))
	}
	return launch{l, f, l.Words()}, err
}

// operationError says which operation of a program cannot be compiled.
func operationError(index int, op *engine.Op, err error) error {
	return fmt.Errorf("operation %d (%s): %w", index, op.Label, err)
}

const (
	mostHeadDim = 256   // what the attention kernels have registers for
	mostSlots   = 65535 // a grid's second side
)

// fits refuses the shapes that the kernels have no room for.
func fits(p *engine.Program) error {
	s := p.Spec
	switch {
	case s.HeadDim%32 != 0 || s.HeadDim > mostHeadDim:
		return fmt.Errorf("heads of %d are not a multiple of 32 up to %d", s.HeadDim, mostHeadDim)
	case s.KVHeads < 1 || s.Heads%s.KVHeads != 0:
		return fmt.Errorf("%d heads on %d KV heads", s.Heads, s.KVHeads)
	case s.ExpertsPerToken < 1 || s.ExpertsPerToken > s.Experts:
		return fmt.Errorf("%d of %d experts", s.ExpertsPerToken, s.Experts)
	case p.Rows*s.ExpertsPerToken > mostSlots:
		return fmt.Errorf("a step of %d rows has more than %d slots", p.Rows, mostSlots)
	}
	return nil
}

// address is the address of a buffer; 0 for a missing bias.
func (s *step) address(b *engine.Buffer) kernels.Pointer {
	switch {
	case b == nil:
		return 0
	case b.Home == engine.Logits:
		return s.logits.address
	}
	return b.Region.(*region).address + kernels.Pointer(b.Offset)
}

func (s *step) rows(b *engine.Buffer) kernels.Rows {
	r := kernels.Rows{Live: s.state.address, Most: s.p.RowsOf(b)}
	switch b.Extent {
	case engine.PerSlot:
		r.Live += 8
	case engine.PerLogit:
		r.Live += 4
	}
	return r
}

func (s *step) array(i int) kernels.Pointer { return s.state.address + s.layout.offset(i) }

func (s *step) heads() kernels.Heads {
	return kernels.Heads{Query: s.p.Spec.Heads, KV: s.p.Spec.KVHeads, Dim: s.p.Spec.HeadDim}
}

// elements are the types that a cache's layers may have, as the kernels name them.
var elements = map[engine.Type]kernels.Element{engine.F32: kernels.F32, engine.BF16: kernels.BF16,
	engine.U8: kernels.E4M3}

func (s *step) cache(op *engine.Op, pool *engine.Buffer) kernels.Cache {
	spec, element := s.p.Spec, pool.Type
	if element == engine.U8 && op.Window > 0 {
		element = engine.BF16 // in an 8-bit cache, too
	}
	layer := int64(op.CacheLayer) * int64(spec.KVHeads) * 2 * engine.PageTokens *
		int64(spec.HeadDim) * element.Size()
	tables := fullArray
	switch {
	case op.Twin:
		tables = twinArray
	case op.Window > 0:
		tables = windowArray
	}
	return kernels.Cache{Layer: s.address(pool) + kernels.Pointer(layer),
		PageElements: int64(pool.Width) * pool.Type.Size() / element.Size(),
		Elements:     elements[element], Positions: s.array(positionsArray),
		Tables: s.array(tablesArray), TableAt: s.array(tables)}
}

func (s *step) record(op *engine.Op) ([]kernels.Launch, error) {
	spec, t := s.p.Spec, s.dev.target
	out := func(i int) kernels.Pointer { return s.address(op.Out[i]) }
	in := func(i int) kernels.Pointer { return s.address(op.In[i]) }
	w := func(i int) kernels.Pointer { return s.address(op.W[i]) }
	r := s.rows(op.Out[0])
	one := func(l kernels.Launch) ([]kernels.Launch, error) { return []kernels.Launch{l}, nil }
	switch op.Kind {
	case engine.Embed:
		return one(t.Embed(r, out(0), s.array(tokensArray), w(0), spec.Hidden))
	case engine.Angles:
		return one(t.Angles(r, out(0), s.array(positionsArray), s.frequencies, spec.HeadDim/2,
			op.Scale))
	case engine.Norm:
		return one(t.Norm(r, out(0), 0, in(0), w(0), op.In[0].Width, op.Eps))
	case engine.Linear, engine.LinearQ8:
		return products(s.parts(op, s.unquantized(op)), t.Linear), nil
	case engine.Rope:
		return one(t.WriteKV(r, kernels.Cache{}, out(0), in(0), s.heads()))
	case engine.WriteKV:
		return one(t.WriteKV(s.rows(op.In[0]), s.cache(op, op.Out[0]), in(0), 0, s.heads()))
	case engine.Attend:
		return one(t.Attend(s.attention(op)))
	case engine.Route:
		return t.Route(r, out(0), out(1), out(2), out(3), in(0), spec.Experts,
			spec.ExpertsPerToken), nil
	case engine.Quantize:
		return one(t.Quantize(r, out(0), out(1), in(0), op.In[0].Width))
	case engine.GateUp, engine.Down:
		return one(t.Experts(s.experts(op)))
	case engine.Combine:
		return one(t.Combine(r, out(0), in(0), in(1), spec.Hidden, spec.ExpertsPerToken))
	case engine.Gather:
		return one(t.CopyRows(r, out(0), in(0), s.array(logitArray), spec.Hidden))
	case engine.Tap:
		return one(t.CopyRows(r, out(0), in(0), 0, op.In[0].Width*int(op.In[0].Type.Size())/4))
	}
	return nil, fmt.Errorf("there is no kernel for %s", op.Kind)
}

// activations gives the activations of an operation: float32, or 8 bits and their scales.
func (s *step) activations(in []*engine.Buffer) kernels.Activations {
	if len(in) == 1 {
		return kernels.Activations{X: s.address(in[0])}
	}
	return kernels.Activations{Q: s.address(in[0]), D: s.address(in[1])}
}

func products(parts []kernels.Product,
	makeLaunch func(kernels.Product) kernels.Launch) (list []kernels.Launch) {
	for _, p := range parts {
		list = append(list, makeLaunch(p))
	}
	return list
}

// unquantized is the x of a dense matrix; of 8-bit weights as it was before its Quantize.
func (s *step) unquantized(op *engine.Op) *engine.Buffer {
	for _, q := range s.p.Ops {
		if q.Kind == engine.Quantize && q.Out[0] == op.In[0] {
			return q.In[0]
		}
	}
	return op.In[0]
}

// parts are those of a matrix on x; their results are adjacent columns.
func (s *step) parts(op *engine.Op, x *engine.Buffer) (list []kernels.Product) {
	p := kernels.Product{Rows: s.rows(op.Out[0]), Y: s.address(op.Out[0]), X: s.address(x),
		K: op.In[0].Width, Stride: op.Out[0].Width, Add: op.Add, Weights: string(onQ8[op.Kind])}
	for i := 0; i < len(op.W); i += 2 {
		p.W, p.Bias, p.N = s.address(op.W[i]), s.address(op.W[i+1]), op.PartRows(i/2)
		list = append(list, p)
		p.Y += kernels.Pointer(4 * p.N)
	}
	return list
}

func (s *step) attention(op *engine.Op) kernels.Attention {
	return kernels.Attention{Rows: s.rows(op.Out[0]), O: s.address(op.Out[0]),
		QKV: s.address(op.In[0]), Cache: s.cache(op, op.In[1]), Sinks: s.address(op.W[0]),
		Heads: s.heads(), Window: op.Window, Scale: op.Scale}
}

func (s *step) experts(op *engine.Op) kernels.Experts {
	spec := s.p.Spec
	e := kernels.Experts{Slots: s.p.Rows * spec.ExpertsPerToken, Experts: spec.Experts,
		To: s.address(op.Out[0]), Order: s.address(op.In[0]), Groups: s.address(op.In[1]),
		From: s.activations(op.In[2:]), W: kernels.ExpertMatrix{Blocks: s.address(op.W[0]),
			Scales: s.address(op.W[1]), Bias: s.address(op.W[2])}, N: spec.Hidden,
		K: spec.Intermediate}
	if op.Kind == engine.GateUp {
		e.N, e.K, e.Top, e.Limit = e.K, e.N, spec.ExpertsPerToken, op.Limit
	}
	return e
}
