package lora

// A tensor with adapters added. Sums are computed in float64 and rounded once, to bfloat16, the
// type of the engine's weights.

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/safetensors"
)

// maxBF16 is the largest bfloat16.
const maxBF16 = 0x1.FEp127

// Sum is a tensor of a model and the adapters that change it.
type Sum struct {
	base  safetensors.Tensor
	first int // row of the base in the model's tensor
	width int // values of a row; 1 of a vector
	parts []part
}

// part is what one adapter changes.
type part struct {
	*change
	name   string
	factor float64   // of the adapter
	a      []float64 // the change's
}

func (a *Adapter) Changes(tensor string) bool { return a.changes[tensor] != nil }

// Add prepares the sum of a tensor of the model, which is BF16, and what adapters change of it.
func Add(base safetensors.Tensor, list []*Adapter) *Sum { return AddFrom(base, 0, list) }

// AddFrom does so where base is some rows of the tensor, from the first on.
func AddFrom(base safetensors.Tensor, first int, list []*Adapter) *Sum {
	s := &Sum{base: base, first: first, width: 1}
	if len(base.Shape) > 1 {
		s.width = base.Shape[1]
	}
	for _, a := range list {
		c := a.changes[base.Name]
		if c == nil {
			continue
		}
		p := part{change: c, name: a.Name, factor: a.Scale}
		if c.a.Data != nil {
			p.a = make([]float64, c.a.Shape[0]*s.width)
			values := make([]float32, len(p.a))
			gguf.Floats(values, c.a.Data, gguf.Kinds[c.a.DType])
			for i, v := range values {
				p.a[i] = float64(v)
			}
		}
		s.parts = append(s.parts, p)
	}
	return s
}

// Rows writes rows of the sum, as bfloat16.
func (s *Sum) Rows(first, count int, to []byte) error {
	w := s.width
	sum, base, saved := make([]float64, w), make([]float32, w), make([]float32, w)
	bits := make([]byte, 4*w)
	var b []float32
	for i := range count {
		row(base, s.base, first+i-s.first, w)
		for j, v := range base {
			sum[j] = float64(v)
		}
		for _, p := range s.parts {
			if p.saved.Data != nil {
				row(saved, p.saved, first+i, w)
				for j, v := range saved {
					sum[j] += p.factor * (float64(v) - float64(base[j]))
				}
			}
			if p.a == nil {
				continue
			}
			rank := len(p.a) / w
			if len(b) < rank {
				b = make([]float32, rank)
			}
			row(b, p.b, first+i, rank)
			for r, v := range b[:rank] {
				addScaled(sum, p.a[r*w:][:w], p.factor*p.scale*float64(v))
			}
		}
		for j, v := range sum {
			if !(math.Abs(v) <= maxBF16) {
				return fmt.Errorf("adapter %s makes %v of a weight of %s, which no bfloat16 holds",
					s.parts[len(s.parts)-1].name, v, s.base.Name)
			}
			binary.LittleEndian.PutUint32(bits[4*j:], math.Float32bits(float32(v)))
		}
		gguf.ToBF16(to[2*i*w:][:2*w], bits, gguf.F32)
	}
	return nil
}

func row(to []float32, t safetensors.Tensor, index, width int) {
	size := width * t.DType.Bits() / 8
	gguf.Floats(to, t.Data[index*size:][:size], gguf.Kinds[t.DType])
}

func addScaled(sum, values []float64, factor float64) {
	values = values[:len(sum)]
	for i := range sum {
		sum[i] += factor * values[i]
	}
}
