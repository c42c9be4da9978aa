package enginetest

import (
	"math"
	"slices"

	"github.com/ossrun/ossrun/models"
)

// The operations as plain float64 loops, written to be read next to the formulas. Where a result is
// a sum, the sum of the absolute terms comes with it: rounding errors are measured against that,
// not against a result that may have cancelled to nothing.

// fromBF16 is the value of a bf16.
func fromBF16(bits uint16) float64 { return float64(math.Float32frombits(uint32(bits) << 16)) }

// toBF16 rounds to nearest, ties to even.
func toBF16(v float32) uint16 {
	bits := math.Float32bits(v)
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// roundE4M3 is the nearest number of e4m3, ties to even: steps of 2^-3 of the power of two below,
// of 2^-9 under 2^-6, up to 448.
func roundE4M3(v float64) float64 {
	_, exponent := math.Frexp(v) // |v| in [2^(exponent-1), 2^exponent)
	step := math.Ldexp(1, max(exponent-1, -6)-3)
	return math.Max(-448, math.Min(448, math.RoundToEven(v/step)*step))
}

// dot is w·x + bias and the sum of the absolute terms.
func dot(w, x []float64, bias float64) (sum, size float64) {
	sum, size = bias, math.Abs(bias)
	for i := range w {
		sum += w[i] * x[i]
		size += math.Abs(w[i] * x[i])
	}
	return sum, size
}

func wide(x []float32) []float64 {
	v := make([]float64, len(x))
	for i := range x {
		v[i] = float64(x[i])
	}
	return v
}

// rmsNorm is x / sqrt(mean(x²) + eps) * w.
func rmsNorm(x, w []float64, eps float64) []float64 {
	square := 0.0
	for _, v := range x {
		square += v * v
	}
	y := make([]float64, len(x))
	for i := range y {
		y[i] = x[i] / math.Sqrt(square/float64(len(x))+eps) * w[i]
	}
	return y
}

// rotate turns the pairs (i, i+dim/2) of every head by the angles a: cosines, then sines. size is
// the sum of each result's absolute terms.
func rotate(x, a []float64, dim int) (y, size []float64) {
	y, size = make([]float64, len(x)), make([]float64, len(x))
	half := dim / 2
	for h := 0; h < len(x); h += dim {
		for i := range half {
			c, s := a[i], a[half+i]
			low, high := x[h+i], x[h+half+i]
			y[h+i], size[h+i] = low*c-high*s, math.Abs(low*c)+math.Abs(high*s)
			y[h+half+i], size[h+half+i] = high*c+low*s, math.Abs(high*c)+math.Abs(low*s)
		}
	}
	return y, size
}

// attention of one query head over keys and values [n][dim], and the sink: one more logit,
// unscaled, without a value.
func attention(q []float64, keys, values [][]float64, sink float64) []float64 {
	logits, top := make([]float64, len(keys)), sink
	for i, k := range keys {
		logits[i], _ = dot(q, k, 0)
		logits[i] /= math.Sqrt(float64(len(q)))
		top = math.Max(top, logits[i])
	}
	total := math.Exp(sink - top)
	o := make([]float64, len(q))
	for i, v := range values {
		p := math.Exp(logits[i] - top)
		total += p
		for j := range o {
			o[j] += p * v[j]
		}
	}
	for j := range o {
		o[j] /= total
	}
	return o
}

// topK are the k largest logits' indices, largest first, the lower index first among equals; and
// the softmax over them alone.
func topK(logits []float64, k int) (experts []int, weights []float64) {
	for e := range logits {
		experts = append(experts, e)
	}
	slices.SortStableFunc(experts, func(a, b int) int {
		switch {
		case logits[a] > logits[b]:
			return -1
		case logits[a] < logits[b]:
			return 1
		}
		return 0
	})
	experts = experts[:k]
	total := 0.0
	for _, e := range experts {
		p := math.Exp(logits[e] - logits[experts[0]])
		weights = append(weights, p)
		total += p
	}
	for i := range weights {
		weights[i] /= total
	}
	return experts, weights
}

// e2m1 are the values of the sixteen 4-bit codes.
var e2m1 = [16]float64{0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6}

// mxfp4 decodes rows: byte b of a block holds element 2b low, 2b+1 high; 32 elements share the
// scale 2^(code-127).
func mxfp4(blocks, scales []byte) []float64 {
	v := make([]float64, 2*len(blocks))
	for g, code := range scales {
		scale := math.Ldexp(1, int(code)-127)
		for i := 16 * g; i < 16*(g+1); i++ {
			v[2*i], v[2*i+1] = e2m1[blocks[i]&15]*scale, e2m1[blocks[i]>>4]*scale
		}
	}
	return v
}

// swiglu is gate·sigmoid(1.702·gate)·(up+1), gate clamped above, up on both sides.
func swiglu(gate, up, limit float64) float64 {
	gate = math.Min(gate, limit)
	up = math.Max(-limit, math.Min(limit, up))
	return gate / (1 + math.Exp(-1.702*gate)) * (up + 1)
}

// scaleStep is from one scale that is tried to the next, of a block's first.
const scaleStep = 0.01

// chosen is which of so many scales from `first` on leaves the least squared error of a block, and
// whether it does so clearly: devices add up errors in an order of their own.
func chosen(block []float64, first float32, scales int) (best float32, clear bool) {
	least, next := math.Inf(1), math.Inf(1)
	for c := range max(1, scales) {
		scale, lost := first*(1+scaleStep*float32(c)), 0.0
		for _, v := range block {
			rest := v - float64(scale)*math.RoundToEven(v/float64(scale))
			lost += rest * rest
		}
		if lost < least {
			best, least, next = scale, lost, least
		} else {
			next = min(next, lost)
		}
	}
	return best, next > 1.01*least
}

// quantised rounds to whole numbers of at most most (127: 8 bits; 2047: 12) times a scale, in
// blocks of 32: what a matrix on quantised rows sees of x. The scale and the quotient are
// float32's, which is part of the definition.
func quantised(x []float64, most float64, scales int) []float64 {
	y := make([]float64, len(x))
	for at := 0; at < len(x); at += 32 {
		largest := 0.0
		for _, v := range x[at : at+32] {
			largest = math.Max(largest, math.Abs(v))
		}
		scale := float32(largest) / float32(most)
		if scale == 0 {
			continue
		}
		scale, _ = chosen(x[at:at+32], scale, scales)
		for i := at; i < at+32; i++ {
			y[i] = math.RoundToEven(float64(float32(x[i])/scale)) * float64(scale)
		}
	}
	return y
}

// slidesHere tells how many positions a layer of a test shape sees; 0: all.
func slidesHere(s models.Spec, layer int) int {
	if s.Sliding(layer) {
		return s.Window
	}
	return 0
}
