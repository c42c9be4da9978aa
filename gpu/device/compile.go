package device

import (
	"fmt"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/kernels"
	"github.com/ossrun/ossrun/runtime/engine"
)

// From operations to launches: the dictionary between engine.Program and gpu/kernels.

// launch is a kernel, ready.
type launch struct {
	function *driver.Function
	shape    driver.Shape
	args     *driver.Arguments
}

// recorder turns the operations of one program into launches.
type recorder struct {
	dev         *Device
	p           *engine.Program
	t           kernels.Target
	layout      layout
	state       kernels.Pointer
	logits      kernels.Pointer
	frequencies kernels.Pointer
	reference   bool            // no variants
	only        *way            // of matrices of many rows; nil: what the compute mode allows
	attends     bool            // the attention kernels can do these heads
	partial     kernels.Pointer // their scratch; 0 where they need none
	arrived     kernels.Pointer // counters of blocks, 0 before and after every kernel
	runs        int             // that a long context is cut in
	mx          kernels.Pointer // activations in terms of MXFP4; 0 where no variant has them
}

// operationError says which operation of a program cannot be compiled.
type operationError struct {
	at    int
	label string
	err   error
}

func (e operationError) Error() string {
	return fmt.Sprintf("operation %d (%s): %v", e.at, e.label, e.err)
}
func (e operationError) Unwrap() error { return e.err }

// mostGroup and mostHeadDim are what the attention kernels have registers for.
const (
	mostHeadDim = 256
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

// own checks that a buffer lies in this device's memory, whole.
func (r *recorder) own(b *engine.Buffer) error {
	if b == nil || b.Home == engine.Logits {
		return nil
	}
	have, ok := b.Region.(*region)
	if !ok || have.dev != r.dev {
		return fmt.Errorf("%s does not lie in the memory of this device", b.Name)
	}
	if err := have.check(b.Offset, int(r.p.BytesOf(b))); err != nil {
		return fmt.Errorf("%s: %w", b.Name, err)
	}
	return nil
}

// at is where a buffer lies; 0 for a bias that is not there.
func (r *recorder) at(b *engine.Buffer) kernels.Pointer {
	switch {
	case b == nil:
		return 0
	case b.Home == engine.Logits:
		return r.logits
	}
	return kernels.Pointer(b.Region.(*region).at) + kernels.Pointer(b.Offset)
}

// rows is where the live count of a buffer's rows lies, and the most it can be.
func (r *recorder) rows(b *engine.Buffer) (kernels.Pointer, int) {
	switch b.Extent {
	case engine.PerSlot:
		return r.state + 8, r.p.Rows * r.p.Spec.ExpertsPerToken
	case engine.PerLogit:
		return r.state + 4, r.p.RowsOf(b)
	}
	return r.state, r.p.Rows
}

func (r *recorder) array(i int) kernels.Pointer {
	return r.state +
		kernels.Pointer(r.layout.place(i))
}

func (r *recorder) heads() kernels.Heads {
	return kernels.Heads{Query: r.p.Spec.Heads, KV: r.p.Spec.KVHeads, Dim: r.p.Spec.HeadDim}
}

// elements are the types that a cache's layers may have, as the kernels name them.
var elements = map[engine.Type]kernels.Element{engine.F32: kernels.F32, engine.BF16: kernels.BF16,
	engine.U8: kernels.E4M3}

// cache is the pool as a layer sees it.
func (r *recorder) cache(op *engine.Op, pool *engine.Buffer) kernels.Cache {
	s, element := r.p.Spec, pool.Type
	if element == engine.U8 && op.Window > 0 {
		element = engine.BF16 // in a cache of 8 bits as well
	}
	layer := int64(op.CacheLayer) * int64(s.KVHeads) * 2 * engine.PageTokens * int64(s.HeadDim) *
		element.Size()
	tables := fullArray
	switch {
	case op.Twin:
		tables = twinArray
	case op.Window > 0:
		tables = windowArray
	}
	return kernels.Cache{Layer: r.at(pool) + kernels.Pointer(layer),
		PageElements: int64(pool.Width) * pool.Type.Size() / element.Size(),
		Elements:     elements[element],
		Positions:    r.array(positionsArray), Tables: r.array(tablesArray),
		TableAt: r.array(tables)}
}

// record gives the launches of one operation.
func (r *recorder) record(op *engine.Op) ([]kernels.Launch, error) {
	s, t := r.p.Spec, r.t
	out := func(i int) kernels.Pointer { return r.at(op.Out[i]) }
	in := func(i int) kernels.Pointer { return r.at(op.In[i]) }
	w := func(i int) kernels.Pointer { return r.at(op.W[i]) }
	live, bucket := r.rows(op.Out[0])
	one := func(l kernels.Launch) ([]kernels.Launch, error) { return []kernels.Launch{l}, nil }
	slots := r.p.Rows * s.ExpertsPerToken
	switch op.Kind {
	case engine.Embed:
		return one(t.Embed(live, bucket, out(0), r.array(tokensArray), w(0), s.Hidden))
	case engine.Angles:
		return one(t.Angles(live, bucket, out(0), r.array(positionsArray), r.frequencies,
			s.HeadDim/2, op.Scale))
	case engine.Norm:
		return one(t.Norm(live, bucket, out(0), in(0), w(0), op.In[0].Width, op.Eps))
	case engine.Linear:
		return r.linear(op), nil
	case engine.LinearQ8:
		return r.linearQ8(op, t.LinearQ8), nil
	case engine.Rope:
		return one(t.Rope(live, bucket, out(0), in(0), r.heads()))
	case engine.WriteKV:
		live, bucket = r.rows(op.In[0])
		return one(t.WriteKV(live, bucket, r.cache(op, op.Out[0]), in(0), r.heads()))
	case engine.Attend:
		return one(t.Attend(live, bucket, out(0), in(0), r.cache(op, op.In[1]), w(0), r.heads(),
			op.Window, op.Scale))
	case engine.Route:
		return t.Route(live, bucket, out(0), out(1), out(2), out(3), in(0), s.Experts,
			s.ExpertsPerToken), nil
	case engine.Quantize:
		return one(t.Quantize(live, bucket, out(0), out(1), in(0), op.In[0].Width))
	case engine.GateUp:
		return one(t.GateUp(slots, out(0), in(0), in(1), r.activations(op), r.matrix(op),
			s.Intermediate, s.Hidden, s.ExpertsPerToken, op.Limit))
	case engine.Down:
		return one(t.Down(slots, out(0), in(0), in(1), r.activations(op), r.matrix(op), s.Hidden,
			s.Intermediate))
	case engine.Combine:
		return one(t.Combine(live, bucket, out(0), in(0), in(1), s.Hidden, s.ExpertsPerToken))
	case engine.Gather:
		return one(t.Gather(live, bucket, out(0), in(0), r.array(logitArray), s.Hidden))
	case engine.Tap:
		return one(t.CopyRows(live, bucket, out(0), in(0), op.In[0].Width*int(op.In[0].Type.Size())/
			4))
	}
	return nil, fmt.Errorf("there is no kernel for %s", op.Kind)
}

// linear is one launch a part, side by side in the result.
func (r *recorder) linear(op *engine.Op) (list []kernels.Launch) {
	live, bucket := r.rows(op.Out[0])
	y, stride := r.at(op.Out[0]), op.Out[0].Width
	for i := 0; i < len(op.W); i += 2 {
		list = append(list, r.t.Linear(live, bucket, y, r.at(op.In[0]), r.at(op.W[i]),
			r.at(op.W[i+1]), op.In[0].Width, op.W[i].Rows, stride, op.Add))
		y += kernels.Pointer(4 * op.W[i].Rows)
	}
	return list
}

// activations are an expert operation's inputs: float32, or 8 bits and scales.
func (r *recorder) activations(op *engine.Op) kernels.Activations {
	if len(op.In) == 3 {
		return kernels.Activations{X: r.at(op.In[2])}
	}
	return kernels.Activations{Q: r.at(op.In[2]), D: r.at(op.In[3])}
}

func (r *recorder) matrix(op *engine.Op) kernels.ExpertMatrix {
	return kernels.ExpertMatrix{Blocks: r.at(op.W[0]), Scales: r.at(op.W[1]), Bias: r.at(op.W[2])}
}

// unasked is how much dynamic shared memory a launch may have without permission: with what its
// kernel has of its own, a few hundred bytes, that is the 48 KiB that NVIDIA's cards give.
const unasked = kernels.MostShared - 1<<10

// ready finds the kernel of a launch and packs its arguments.
func (r *recorder) ready(l kernels.Launch) (launch, error) {
	f, err := r.dev.function(l.Kernel)
	if err != nil {
		return launch{}, err
	}
	if l.Shared > unasked {
		if err := f.AllowShared(int(l.Shared)); err != nil {
			return launch{}, err
		}
	}
	a := &driver.Arguments{}
	for i, v := range l.Args {
		switch v := v.(type) {
		case kernels.Pointer:
			a.Pointer(driver.Pointer(v))
		case int32:
			a.Int32(v)
		case int64:
			a.Int64(v)
		case float32:
			a.Float32(v)
		default:
			return launch{}, fmt.Errorf("kernel %s: argument %d is a %T", l.Kernel, i, v)
		}
	}
	return launch{f, driver.Shape{Grid: l.Grid, Block: l.Block, Shared: l.Shared}, a}, nil
}
