package convert

// Numbers to MXFP4 blocks: 32 values of four bits (0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign) under one
// scale, a power of two.
//
// What must stay true: values that an MXFP4 block holds come back as that block, bit for bit: the
// smallest scale under which the largest is at most 6 holds all of them if any scale does. (A block
// whose codes are all below 4 has a twin under that scale: the same numbers.) Other blocks get the
// scale of the least squared error.

import (
	"math"

	"github.com/ossrun/ossrun/models"
)

// Loss is what rounding cost some blocks.
type Loss struct {
	Blocks int64   `json:"blocks"`
	Exact  int64   `json:"exact"` // came back bit for bit
	Error  float64 `json:"error"` // sum of squares of the differences
	Size   float64 `json:"size"`  // sum of squares of the values
	Worst  float64 `json:"worst"` // of one block, relative, root mean square
}

// Relative is the root mean square of the differences, relative to the values'.
func (l Loss) Relative() float64 {
	if l.Size == 0 {
		return 0
	}
	return math.Sqrt(l.Error / l.Size)
}

// Add takes in another's.
func (l *Loss) Add(o Loss) {
	l.Blocks, l.Exact = l.Blocks+o.Blocks, l.Exact+o.Exact
	l.Error, l.Size, l.Worst = l.Error+o.Error, l.Size+o.Size, math.Max(l.Worst, o.Worst)
}

// steps are the magnitudes of the codes; above are the values from which on the next code is
// nearer, the even one of two in the middle.
var (
	steps = [8]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6}
	above = [7]float32{0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5}
)

// code is the nearest one, with the value's sign in its fourth bit.
func code(v float32) byte {
	y, n := float32(math.Abs(float64(v))), byte(0)
	for i, edge := range above {
		if y > edge || y == edge && i%2 == 1 {
			n++
		}
	}
	return n | byte(math.Float32bits(v)>>31)<<3
}

// bias is added to the exponent of a scale that is kept.
const bias = 127

// under encodes values with one scale, and gives the sum of the squared differences.
func under(values []float32, exponent int, codes *[models.BlockSize]byte) (off float64) {
	scale, down := math.Ldexp(1, exponent), float32(math.Ldexp(1, -exponent))
	for i, v := range values {
		c := code(v * down)
		codes[i] = c
		d := math.Abs(float64(v)) - float64(steps[c&7])*scale
		off += d * d
	}
	return off
}

// encode writes the block of 32 finite values.
func encode(values []float32, to []byte) (scale byte, loss Loss) {
	loss.Blocks = 1
	most := 0.0
	for _, v := range values {
		most = math.Max(most, math.Abs(float64(v)))
		loss.Size += float64(v) * float64(v)
	}
	const smallest = -bias
	fitting := smallest
	if most > 0 {
		fitting = max(int(math.Ceil(math.Log2(most/6))), smallest)
		if math.Ldexp(6, fitting) < most { // the logarithm was rounded
			fitting++
		}
	}
	var codes, others [models.BlockSize]byte
	best := fitting
	loss.Error = under(values, best, &codes)
	if loss.Error == 0 {
		loss.Exact = 1
	} else {
		for _, exponent := range [2]int{max(fitting-1, smallest), fitting + 1} {
			if off := under(values, exponent, &others); off < loss.Error {
				loss.Error, best, codes = off, exponent, others
			}
		}
	}
	for i := range to[:models.BlockBytes] {
		to[i] = codes[2*i] | codes[2*i+1]<<4
	}
	loss.Worst = loss.Relative()
	return byte(best + bias), loss
}
