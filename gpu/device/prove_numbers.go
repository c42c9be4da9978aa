package device

import (
	"math"
	"slices"

	"github.com/ossrun/ossrun/runtime/engine"
)

// The numbers of a proof: activations that need no rounding, and the difference of two buffers.

func toBF16(x []float32) {
	for i, v := range x {
		bits := math.Float32bits(v)
		x[i] = math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff)
	}
}

// toMXFP4 rounds values to one term of MXFP4: blocks of 32, four bits under a power of two.
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
			step := math.Exp2(math.Floor(math.Log2(math.Max(y, 1)))) / 2
			x[i] = float32(math.Copysign(math.Floor(y/step)*step*scale, float64(v)))
		}
	}
}

// difference is the largest, relative to the largest value; integers are equal or off by all.
func difference(t engine.Type, want, got []byte) float64 {
	a, b := floats(t, want), floats(t, got)
	if a == nil && !slices.Equal(want, got) {
		return math.Inf(1)
	}
	var most, worst float64
	for i := range a {
		if math.IsNaN(a[i]) != math.IsNaN(b[i]) || math.IsInf(b[i]-a[i], 0) {
			return math.Inf(1)
		}
		if math.IsNaN(a[i]) {
			continue
		}
		most, worst = math.Max(most, math.Abs(a[i])), math.Max(worst, math.Abs(a[i]-b[i]))
	}
	return worst / math.Max(most, math.SmallestNonzeroFloat64)
}

// floats are the numbers of a buffer, nil for integers. Unsigned 8 bits are e4m3: 4 bits of
// exponent with bias 7, 3 of mantissa.
func floats(t engine.Type, data []byte) (list []float64) {
	switch t {
	case engine.F32:
		for _, v := range engine.Numbers[float32](data) {
			list = append(list, float64(v))
		}
	case engine.BF16:
		for _, v := range engine.Numbers[uint16](data) {
			list = append(list, float64(math.Float32frombits(uint32(v)<<16)))
		}
	case engine.U8:
		for _, c := range data {
			v := float64(math.Float32frombits(uint32(c&0x7f)<<20) * 0x1p120)
			list = append(list, math.Copysign(v, float64(int8(c))))
		}
	}
	return list
}
