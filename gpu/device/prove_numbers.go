package device

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/ossrun/ossrun/runtime/engine"
)

// The numbers of a proof: activations that need no rounding, and the difference of two buffers.

// toBF16 cuts values to bf16.
func toBF16(x []float32) {
	for i, v := range x {
		x[i] = math.Float32frombits(math.Float32bits(v) &^ 0xffff)
	}
}

// toMXFP4 rounds values to what one term of MXFP4 holds: blocks of 32, four bits each under one
// power of two.
func toMXFP4(x []float32) {
	for ; len(x) >= 32; x = x[32:] {
		most := 0.0
		for _, v := range x[:32] {
			most = math.Max(most, math.Abs(float64(v)))
		}
		scale := math.Exp2(math.Ceil(math.Log2(most / 6)))
		if most == 0 || math.IsNaN(scale) || math.IsInf(scale, 0) {
			continue
		}
		for i, v := range x[:32] {
			y := math.Abs(float64(v)) / scale
			step := 0.5
			if y >= 4 {
				step = 2
			} else if y >= 2 {
				step = 1
			}
			x[i] = float32(math.Copysign(math.Floor(y/step)*step*scale, float64(v)))
		}
	}
}

// fromE4M3 turns codes of 8 bits (4 of exponent with bias 7, 3 of mantissa) into float32.
func fromE4M3(codes []byte) []byte {
	values := make([]byte, 0, 4*len(codes))
	for _, c := range codes {
		x := math.Float32frombits(uint32(c&0x7f)<<20) * 0x1p120
		values = binary.NativeEndian.AppendUint32(values, math.Float32bits(x)|uint32(c&0x80)<<24)
	}
	return values
}

// difference is the largest between two buffers, relative to the largest value; integers are equal
// or off by everything.
func difference(t engine.Type, want, got []byte) float64 {
	if t != engine.F32 && t != engine.BF16 {
		if slices.Equal(want, got) {
			return 0
		}
		return math.Inf(1)
	}
	size := int(t.Size())
	value := func(data []byte, i int) float64 {
		if size == 2 {
			bits := uint32(binary.NativeEndian.Uint16(data[2*i:]))
			return float64(math.Float32frombits(bits << 16))
		}
		return float64(math.Float32frombits(binary.NativeEndian.Uint32(data[4*i:])))
	}
	var most, off float64
	for i := range len(want) / size {
		a, b := value(want, i), value(got, i)
		if math.IsNaN(a) != math.IsNaN(b) || math.IsInf(b-a, 0) {
			return math.Inf(1)
		}
		if math.IsNaN(a) {
			continue
		}
		most, off = math.Max(most, math.Abs(a)), math.Max(off, math.Abs(a-b))
	}
	if off == 0 {
		return 0
	}
	return off / most
}
