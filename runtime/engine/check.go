package engine

import (
	"fmt"

	"github.com/ossrun/ossrun/models/q8"
)

// The operand rules of program.go's table, as code. A program that passes can be run without
// further questions about shapes and types.

// want is what an operand must be; width 0 or extent open leaves it free.
type want struct {
	what   string
	types  []Type
	extent Extent
	width  int
}

const open Extent = 255

// arity is how many operands each kind has: Out, In, W. Linear has pairs of weights; an expert
// matrix reads one buffer of activations or two.
var arity = [kinds]struct{ out, in, w int }{
	Embed: {1, 0, 1}, Angles: {1, 0, 0}, Norm: {1, 1, 1}, Linear: {1, 1, -1}, Rope: {1, 1, 0},
	WriteKV: {1, 1, 0}, Attend: {1, 2, 1},
	Route: {4, 1, 0}, Quantize: {2, 1, 0}, GateUp: {1, -1, 3}, Down: {1, -1, 3}, Combine: {1, 2, 0},
	Gather: {1, 1, 0}, Tap: {1, 1, 0}, LinearQ8: {1, 2, -1},
}

func checkArity(op *Op) error {
	if op.Kind >= kinds {
		return fmt.Errorf("unknown operation %d", op.Kind)
	}
	a := arity[op.Kind]
	for _, operand := range []struct {
		what string
		n    int
		list []*Buffer
	}{{"outputs", a.out, op.Out}, {"inputs", a.in, op.In}, {"weights", a.w, op.W}} {
		if operand.n >= 0 && len(operand.list) != operand.n {
			return fmt.Errorf("has %d %s, not %d", len(operand.list), operand.what, operand.n)
		}
		for i, b := range operand.list {
			bias := (op.Kind == Linear || op.Kind == LinearQ8) && operand.what == "weights" &&
				i%2 == 1
			if b == nil && !bias {
				return fmt.Errorf("%d of the %s is missing", i, operand.what)
			}
		}
	}
	return nil
}

func (p *Program) checkOp(op *Op) error {
	if err := checkArity(op); err != nil {
		return err
	}
	s := p.Spec
	qkv := (s.Heads + 2*s.KVHeads) * s.HeadDim
	f32 := []Type{F32}
	bf16 := []Type{BF16}
	i32 := []Type{I32}
	switch op.Kind {
	case Embed:
		return first(operands(op.Out, want{"x", f32, PerRow, s.Hidden}),
			operands(op.W, want{"embedding", bf16, Fixed, s.Hidden}))
	case Angles:
		if len(op.Frequencies) != s.HeadDim/2 {
			return fmt.Errorf("%d frequencies for heads of %d", len(op.Frequencies), s.HeadDim)
		}
		return operands(op.Out, want{"a", f32, PerRow, s.HeadDim})
	case Norm:
		x := op.In[0]
		return first(operands(op.In, want{"x", f32, open, 0}),
			operands(op.Out, want{"y", f32, x.Extent, x.Width}),
			operands(op.W, want{"w", bf16, Fixed, x.Width}))
	case Linear:
		return checkLinear(op)
	case LinearQ8:
		return checkLinearQ8(op)
	case Rope:
		return first(operands(op.Out, want{"qkv", f32, PerRow, qkv}),
			operands(op.In, want{"a", f32, PerRow, s.HeadDim}))
	case WriteKV:
		return first(operands(op.Out, want{"cache", []Type{p.Settings.kvType()}, Fixed, 0}),
			operands(op.In, want{"qkv", f32, PerRow, qkv}))
	case Attend:
		return first(operands(op.Out, want{"o", f32, PerRow, s.Heads * s.HeadDim}),
			operands(op.In, want{"qkv", f32, PerRow, qkv},
				want{"cache", []Type{p.Settings.kvType()}, Fixed, 0}),
			operands(op.W, want{"sinks", bf16, Fixed, s.Heads}))
	case Route:
		return first(operands(op.Out, want{"experts", i32, PerRow, s.ExpertsPerToken},
			want{"weights", f32, PerRow, s.ExpertsPerToken},
			want{"order", i32, PerSlot, 1}, want{"groups", i32, Fixed, 1 + 2*s.Experts}),
			operands(op.In, want{"router", f32, PerRow, s.Experts}))
	case Quantize:
		x := op.In[0]
		if x.Width%32 != 0 {
			return fmt.Errorf("rows of %d are not whole blocks of 32", x.Width)
		}
		return first(operands(op.In, want{"x", f32, open, 0}),
			operands(op.Out, want{"q", []Type{I8, I16}, x.Extent, x.Width},
				want{"d", f32, x.Extent, scales(op.Out[0])}))
	case GateUp:
		return checkExperts(op, s.Experts, PerRow, s.Hidden, 2*s.Intermediate,
			want{"h", f32, PerSlot, s.Intermediate})
	case Down:
		return checkExperts(op, s.Experts, PerSlot, s.Intermediate, s.Hidden,
			want{"y", f32, PerSlot, s.Hidden})
	case Combine:
		return first(operands(op.Out, want{"x", f32, PerRow, s.Hidden}),
			operands(op.In, want{"y", f32, PerSlot, s.Hidden}, want{"weights", f32, PerRow,
				s.ExpertsPerToken}))
	case Gather:
		return first(operands(op.Out, want{"y", f32, PerLogit, s.Hidden}),
			operands(op.In, want{"x", f32, PerRow, s.Hidden}))
	case Tap:
		return operands(op.Out, want{"y", []Type{op.In[0].Type}, op.In[0].Extent, op.In[0].Width})
	}
	return fmt.Errorf("unknown operation %d", op.Kind)
}

// scales is how many numbers go with a row of q.
func scales(q *Buffer) int {
	if q.Type == I16 {
		return q.Width / 32
	}
	return q.Width / 16
}

// checkLinear: the parts' rows fill the result, every part as wide as the input.
func checkLinear(op *Op) error {
	if len(op.W) == 0 || len(op.W)%2 != 0 {
		return fmt.Errorf("needs pairs of weight and bias, has %d", len(op.W))
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

// checkLinearQ8: as checkLinear. A part without a bias has all columns of the result: its own rows
// are padded to groups of q8.GroupRows.
func checkLinearQ8(op *Op) error {
	if len(op.W) == 0 || len(op.W)%2 != 0 {
		return fmt.Errorf("needs pairs of weight and bias, has %d", len(op.W))
	}
	q, d, y, n := op.In[0], op.In[1], op.Out[0], 0
	if (q.Type != I8 && q.Type != I16) || d.Type != F32 || y.Type != F32 || q.Extent != y.Extent ||
		d.Extent != y.Extent || q.Width%32 != 0 || d.Width != scales(q) {
		return fmt.Errorf("inputs must be quantised rows in whole blocks and their scales, of " +
			"the result's kind")
	}
	for i := 0; i < len(op.W); i += 2 {
		w, bias, rows := op.W[i], op.W[i+1], op.PartRows(i/2)
		if w.Type != U8 || w.Width != q8.GroupBytes(q.Width) || w.Rows != q8.Groups(rows) {
			return fmt.Errorf("%s is not 8-bit [%d, %d]", w.Name, rows, q.Width)
		}
		if bias != nil && (bias.Type != BF16 || bias.Width != rows) {
			return fmt.Errorf("%s is not bf16 [%d]", bias.Name, rows)
		}
		n += rows
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
		inputs = append(inputs, want{"q", []Type{I8}, extent, k}, want{"d", []Type{F32}, extent,
			k / 16})
	}
	if k%32 != 0 {
		return fmt.Errorf("rows of %d are not whole blocks of 32", k)
	}
	if op.W[0].Rows != e*n || op.W[1].Rows != e*n || op.W[2].Rows != e {
		return fmt.Errorf("weights are not those of %d experts of %d rows", e, n)
	}
	return first(operands(op.Out, out), operands(op.In, inputs...),
		operands(op.W, want{"blocks", []Type{U8}, Fixed, k / 2}, want{"scales", []Type{U8}, Fixed,
			k / 32}, want{"bias", []Type{BF16}, Fixed, n}))
}

func operands(have []*Buffer, wanted ...want) error {
	if len(have) != len(wanted) {
		return fmt.Errorf("has %d operands where %d are needed", len(have), len(wanted))
	}
	for i, w := range wanted {
		b := have[i]
		typed := false
		for _, t := range w.types {
			typed = typed || t == b.Type
		}
		if !typed || (w.extent != open && b.Extent != w.extent) ||
			(w.width != 0 && b.Width != w.width) {
			return fmt.Errorf("%s (%s) is %s with rows of %d, which does not fit", w.what, b.Name,
				b.Type, b.Width)
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
