package engine

import "fmt"

// The operand rules of program.go's table, as code. A program that passes can be run without further questions about shapes and types.

// want is what an operand must be; width 0 or extent open leaves it free.
type want struct {
	what   string
	types  []Type
	extent Extent
	width  int
}

const open Extent = 255

func (p *Program) checkOp(op *Op) error {
	s := p.Spec
	qkv := (s.Heads + 2*s.KVHeads) * s.HeadDim
	f32 := []Type{F32}
	bf16 := []Type{BF16}
	i32 := []Type{I32}
	switch op.Kind {
	case Embed:
		return first(operands(op.Out, want{"x", f32, PerRow, s.Hidden}), operands(op.W, want{"embedding", bf16, Fixed, s.Hidden}))
	case Angles:
		if len(op.Frequencies) != s.HeadDim/2 {
			return fmt.Errorf("%d frequencies for heads of %d", len(op.Frequencies), s.HeadDim)
		}
		return operands(op.Out, want{"a", f32, PerRow, s.HeadDim})
	case Norm:
		if len(op.In) != 1 {
			return fmt.Errorf("needs one input")
		}
		x := op.In[0]
		return first(operands(op.In, want{"x", f32, open, 0}), operands(op.Out, want{"y", f32, x.Extent, x.Width}),
			operands(op.W, want{"w", bf16, Fixed, x.Width}))
	case Linear:
		return checkLinear(op)
	case Rope:
		return first(operands(op.Out, want{"qkv", f32, PerRow, qkv}), operands(op.In, want{"a", f32, PerRow, s.HeadDim}))
	case WriteKV:
		return first(operands(op.Out, want{"cache", []Type{p.Options.kvType()}, Fixed, 0}), operands(op.In, want{"qkv", f32, PerRow, qkv}))
	case Attend:
		return first(operands(op.Out, want{"o", f32, PerRow, s.Heads * s.HeadDim}),
			operands(op.In, want{"qkv", f32, PerRow, qkv}, want{"cache", []Type{p.Options.kvType()}, Fixed, 0}),
			operands(op.W, want{"sinks", bf16, Fixed, s.Heads}))
	case Route:
		return first(operands(op.Out, want{"experts", i32, PerRow, s.ExpertsPerToken}, want{"weights", f32, PerRow, s.ExpertsPerToken},
			want{"order", i32, PerSlot, 1}, want{"groups", i32, Fixed, 1 + 2*s.Experts}),
			operands(op.In, want{"router", f32, PerRow, s.Experts}))
	case Quantize:
		if len(op.In) != 1 || op.In[0].Width%32 != 0 {
			return fmt.Errorf("needs one input of whole blocks of 32")
		}
		x := op.In[0]
		return first(operands(op.In, want{"x", f32, open, 0}),
			operands(op.Out, want{"q", []Type{I8}, x.Extent, x.Width}, want{"d", f32, x.Extent, x.Width / 16}))
	case GateUp:
		return checkExperts(op, s.Experts, PerRow, s.Hidden, 2*s.Intermediate, want{"h", f32, PerSlot, s.Intermediate})
	case Down:
		return checkExperts(op, s.Experts, PerSlot, s.Intermediate, s.Hidden, want{"y", f32, PerSlot, s.Hidden})
	case Combine:
		return first(operands(op.Out, want{"x", f32, PerRow, s.Hidden}),
			operands(op.In, want{"y", f32, PerSlot, s.Hidden}, want{"weights", f32, PerRow, s.ExpertsPerToken}))
	case Gather:
		return first(operands(op.Out, want{"y", f32, PerLogit, s.Hidden}), operands(op.In, want{"x", f32, PerRow, s.Hidden}))
	case Tap:
		if len(op.In) != 1 {
			return fmt.Errorf("needs one input")
		}
		return operands(op.Out, want{"y", []Type{op.In[0].Type}, op.In[0].Extent, op.In[0].Width})
	}
	return fmt.Errorf("unknown operation %d", op.Kind)
}

// checkLinear: the parts' rows fill the result, every part as wide as the input.
func checkLinear(op *Op) error {
	if len(op.In) != 1 || len(op.Out) != 1 || len(op.W) == 0 || len(op.W)%2 != 0 {
		return fmt.Errorf("needs an input, a result and pairs of weight and bias")
	}
	x, y, n := op.In[0], op.Out[0], 0
	if x.Type != F32 || y.Type != F32 || x.Extent != y.Extent {
		return fmt.Errorf("input and result must be f32 rows of one kind")
	}
	for i := 0; i < len(op.W); i += 2 {
		w, bias := op.W[i], op.W[i+1]
		if w.Type != BF16 || w.Width != x.Width {
			return fmt.Errorf("%s is not bf16 [n, %d]", w.Name, x.Width)
		}
		if bias != nil && (bias.Type != BF16 || bias.Width != w.Rows) {
			return fmt.Errorf("%s is not bf16 [%d]", bias.Name, w.Rows)
		}
		n += w.Rows
	}
	if n != y.Width {
		return fmt.Errorf("the parts have %d rows, the result %d columns", n, y.Width)
	}
	return nil
}

// checkExperts: e matrices [n, k] on inputs of k columns, plain or 8-bit.
func checkExperts(op *Op, e int, extent Extent, k, n int, out want) error {
	inputs := []want{{"order", []Type{I32}, PerSlot, 1}, {"groups", []Type{I32}, Fixed, 1 + 2*e}}
	switch len(op.In) {
	case 3:
		inputs = append(inputs, want{"x", []Type{F32}, extent, k})
	case 4:
		inputs = append(inputs, want{"q", []Type{I8}, extent, k}, want{"d", []Type{F32}, extent, k / 16})
	}
	if k%32 != 0 {
		return fmt.Errorf("rows of %d are not whole blocks of 32", k)
	}
	if len(op.W) == 3 && (op.W[0].Rows != e*n || op.W[1].Rows != e*n || op.W[2].Rows != e) {
		return fmt.Errorf("weights are not those of %d experts of %d rows", e, n)
	}
	return first(operands(op.Out, out), operands(op.In, inputs...),
		operands(op.W, want{"blocks", []Type{U8}, Fixed, k / 2}, want{"scales", []Type{U8}, Fixed, k / 32}, want{"bias", []Type{BF16}, Fixed, n}))
}

func operands(have []*Buffer, wanted ...want) error {
	if len(have) != len(wanted) {
		return fmt.Errorf("has %d operands where %d are needed", len(have), len(wanted))
	}
	for i, w := range wanted {
		b := have[i]
		if b == nil {
			return fmt.Errorf("%s is missing", w.what)
		}
		typed := false
		for _, t := range w.types {
			typed = typed || t == b.Type
		}
		if !typed || (w.extent != open && b.Extent != w.extent) || (w.width != 0 && b.Width != w.width) {
			return fmt.Errorf("%s (%s) is %s with rows of %d, which does not fit", w.what, b.Name, b.Type, b.Width)
		}
	}
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
