package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/models/q8"
)

// The operand rules of program.go's table: a program that passes needs no further questions.

// operandRule is the required form of an operand.
type operandRule struct {
	what    string
	element Type
	extent  Extent
	width   int // 0: any
}

const (
	open   Extent = 255 // any
	absent Extent = 254 // no operand
)

// operand returns operand i, or a buffer without a shape if there is none, which operands refuses.
func operand(list []*Buffer, i int) *Buffer {
	if i < len(list) && list[i] != nil {
		return list[i]
	}
	return &Buffer{}
}

func (p *Program) checkOp(op *Op) (err error) {
	s, kv := p.Spec, p.Settings.kvType()
	x, y := operand(op.In, 0), operand(op.Out, 0)
	qkv := operandRule{"qkv", F32, PerRow, (s.Heads + 2*s.KVHeads) * s.HeadDim}
	cache := operandRule{"cache", kv, Fixed, 0}
	hidden := operandRule{"x", F32, PerRow, s.Hidden}
	chosen := operandRule{"weights", F32, PerRow, s.ExpertsPerToken}
	order := operandRule{"order", I32, PerSlot, 1}
	groups := operandRule{"groups", I32, Fixed, 1 + 2*s.Experts}
	var out, in, w []operandRule
	switch op.Kind {
	case Embed:
		out, w = []operandRule{hidden}, []operandRule{{"embedding", BF16, Fixed, s.Hidden}}
	case Angles:
		out = []operandRule{{"a", F32, PerRow, s.HeadDim}}
		if len(op.Frequencies) != s.HeadDim/2 {
			err = fmt.Errorf("%d frequencies for heads of %d", len(op.Frequencies), s.HeadDim)
		}
	case Norm:
		in, out = []operandRule{{"x", F32, open, 0}}, []operandRule{{"y", F32, x.Extent, x.Width}}
		w = []operandRule{{"w", BF16, Fixed, x.Width}}
	case Linear:
		in = rounded(op, []operandRule{{"x", F32, y.Extent, 0}}, x, y.Extent)
		out = []operandRule{{"y", F32, open, 0}}
		w, err = parts(op, BF16, x.Width, func(w *Buffer, _ int) bool { return true })
	case LinearQ8:
		q := quantised(x, y.Extent)
		in, out = q[:], []operandRule{{"y", F32, open, 0}}
		w, err = parts(op, U8, q8.GroupBytes(x.Width),
			func(w *Buffer, rows int) bool { return w.Rows == q8.Groups(rows) })
		err = errors.Join(err, wholeBlocks(x.Width))
	case Rope:
		out, in = []operandRule{qkv}, []operandRule{{"a", F32, PerRow, s.HeadDim}}
	case WriteKV:
		out, in = []operandRule{cache}, []operandRule{qkv}
	case Attend:
		out, in = []operandRule{{"o", F32, PerRow, s.Heads * s.HeadDim}}, []operandRule{qkv, cache}
		w = slices.Repeat([]operandRule{{"sinks", BF16, Fixed, s.Heads}}, max(1, len(op.W)))
	case Route:
		out = []operandRule{{"experts", I32, PerRow, s.ExpertsPerToken}, chosen, order, groups}
		in = []operandRule{{"router", F32, PerRow, s.Experts}}
	case Quantize:
		q := quantised(&Buffer{Type: y.Type, Width: x.Width}, x.Extent)
		in, out, err = []operandRule{{"x", F32, open, 0}}, q[:], wholeBlocks(x.Width)
	case Round:
		in = []operandRule{{"x", F32, open, 0}, order}[:max(1, min(2, len(op.In)))]
		out, err = []operandRule{{"t", BF16, y.Extent, x.Width + TilePad}}, wholeBlocks(x.Width)
	case GateUp, Down:
		k, n, read := s.Hidden, 2*s.Intermediate, PerRow
		out = []operandRule{{"h", F32, PerSlot, s.Intermediate}}
		if op.Kind == Down {
			k, n, read = s.Intermediate, s.Hidden, PerSlot
			out = []operandRule{{"y", F32, PerSlot, s.Hidden}}
		}
		in = []operandRule{order, groups, {"x", F32, read, k}}
		if len(op.In) >= 4 {
			in = []operandRule{order, groups, {"q", I8, read, k}, {"d", F32, read, k / 16}}
		}
		in = rounded(op, in, operand(op.In, 2), PerSlot)
		w = []operandRule{{"blocks", U8, Fixed, k / 2}, {"scales", U8, Fixed, k / 32},
			{"bias", BF16, Fixed, n}}
		rows := s.Experts * n
		if operand(op.W, 0).Rows != rows || operand(op.W, 1).Rows != rows ||
			operand(op.W, 2).Rows != s.Experts {
			err = fmt.Errorf("weights are not those of %d experts of %d rows", s.Experts, n)
		}
		err = errors.Join(err, wholeBlocks(k))
	case Combine:
		out, in = []operandRule{hidden}, []operandRule{{"y", F32, PerSlot, s.Hidden}, chosen}
	case Gather:
		out, in = []operandRule{{"y", F32, PerLogit, s.Hidden}}, []operandRule{hidden}
	case Tap:
		in = []operandRule{{"x", x.Type, open, 0}}
		out = []operandRule{{"y", x.Type, x.Extent, x.Width}}
	default:
		return fmt.Errorf("unknown operation %d", op.Kind)
	}
	return cmp.Or(operands("outputs", op.Out, out), operands("inputs", op.In, in),
		operands("weights", op.W, w), err)
}

// quantised are rows in 8 or 12 bits and their scales.
func quantised(q *Buffer, e Extent) [2]operandRule {
	element, scales := I8, q.Width/16
	if q.Type == I16 {
		element, scales = I16, q.Width/32
	}
	return [2]operandRule{{"q", element, e, q.Width}, {"d", F32, e, scales}}
}

// rounded adds Round's rows of x to the inputs, if there is one more.
func rounded(op *Op, in []operandRule, x *Buffer, e Extent) []operandRule {
	if len(op.In) > len(in) {
		in = append(in, operandRule{"t", BF16, e, x.Width + TilePad})
	}
	return in
}

func wholeBlocks(width int) error {
	if width%32 != 0 {
		return fmt.Errorf("rows of %d are not whole blocks of 32", width)
	}
	return nil
}

// parts are the pairs of weight and bias of a linear layer, whose rows fill the result.
func parts(op *Op, element Type, width int,
	suits func(w *Buffer, rows int) bool) ([]operandRule, error) {
	if len(op.W) == 0 || len(op.W)%2 != 0 || len(op.Out) == 0 {
		return nil, fmt.Errorf("needs a result, and pairs of weight and bias: has %d", len(op.W))
	}
	var list []operandRule
	n := 0
	for i := 0; i < len(op.W); i += 2 {
		w := op.W[i]
		if w == nil {
			return nil, errors.New("a weight is missing")
		}
		rows := op.PartRows(i / 2)
		if !suits(w, rows) {
			return nil, fmt.Errorf("%s is not one of %d rows", w.Name, rows)
		}
		bias := operandRule{"bias", BF16, Fixed, rows}
		if op.W[i+1] == nil {
			bias.extent = absent
		}
		list = append(list, operandRule{"weight", element, Fixed, width}, bias)
		n += rows
	}
	if y := operand(op.Out, 0); n != y.Width {
		return nil, fmt.Errorf("the parts have %d rows, the result %d columns", n, y.Width)
	}
	return list, nil
}

func operands(what string, have []*Buffer, required []operandRule) error {
	if len(have) != len(required) {
		return fmt.Errorf("has %d %s, not %d", len(have), what, len(required))
	}
	for i, w := range required {
		b := have[i]
		switch {
		case b == nil && w.extent == absent:
		case b == nil:
			return fmt.Errorf("the %s is missing", w.what)
		case b.Type != w.element, w.extent != open && b.Extent != w.extent,
			w.width != 0 && b.Width != w.width:
			return fmt.Errorf("%s (%s) is %s with rows of %d, which does not fit", w.what, b.Name,
				b.Type, b.Width)
		}
	}
	return nil
}
