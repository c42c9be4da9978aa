package convert

// Numbers to MXFP4 blocks: 32 values of four bits (0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign) under one
// scale, a power of two.
//
// What must stay true: values of an MXFP4 block come back as that block, bit for bit: the smallest
// scale under which the largest is at most 6 holds all of them if any scale does. (A block whose
// codes are all below 4 has a twin under that scale: the same numbers.) Other blocks get the scale
// of the least squared error: that one or half of it. A larger scale has no number up to 6 that
// this one lacks. A quarter never beats half: the largest value's squared error grows by 2.25 or
// more, and that of each of the 31 others shrinks by 0.0625 at most.

import (
	"math"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/gguf"
)

// Loss is the rounding error of some blocks.
type Loss struct {
	Blocks int64   `json:"blocks"`
	Exact  int64   `json:"exact"` // unchanged bit for bit
	Error  float64 `json:"error"` // sum of squared differences
	Size   float64 `json:"size"`  // sum of squared values
	Worst  float64 `json:"worst"` // of one block, relative, root mean square
}

// Relative is the root mean square of the differences, relative to the values'.
func (l Loss) Relative() float64 {
	if l.Size == 0 {
		return 0
	}
	return math.Sqrt(l.Error / l.Size)
}

func (l *Loss) Add(o Loss) {
	l.Blocks, l.Exact = l.Blocks+o.Blocks, l.Exact+o.Exact
	l.Error, l.Size, l.Worst = l.Error+o.Error, l.Size+o.Size, math.Max(l.Worst, o.Worst)
}

// steps are the values of the codes.
var steps = gguf.E2M1

// nearest is the code of a magnitude. A cell is all magnitudes with the same exponent and the same
// two highest bits of the mantissa. It has two entries, for its first number and for the others,
// because the limits between codes are first numbers. A limit gets the even code.
var nearest = [64]byte{
	0, 0, // up to 0.25
	0, 1, 1, 1, 1, 1, 1, 1, // 0.25
	1, 1, 1, 1, 2, 2, 2, 2, // 0.5
	2, 2, 2, 3, 3, 3, 4, 4, // 1
	4, 4, 4, 5, 5, 5, 6, 6, // 2
	6, 6, 6, 7, 7, 7, 7, 7, // 4
}

const (
	cellBits    = 21
	lowestCell  = 0x3e800000>>cellBits - 1 // below 0.25
	highestCell = 0x40e00000 >> cellBits   // from 7 on
)

// bias is added to a stored scale's exponent.
const bias = 127

// tryScale encodes values with one scale, and returns the sum of the squared differences. Above
// most it stops, with incomplete codes.
func tryScale(values *[models.BlockSize]float32, exponent int, to *[models.BlockBytes]byte,
	most float64) float64 {
	down := float32(math.Ldexp(1, -exponent))
	unit := math.Ldexp(1, exponent)
	unit *= unit
	most /= unit
	var even, odd float64
	for i := range to {
		low, lowDiff := code(values[2*i], down)
		high, highDiff := code(values[2*i+1], down)
		to[i] = low | high<<4
		even, odd = even+lowDiff*lowDiff, odd+highDiff*highDiff
		if i%4 == 3 && even+odd > most {
			break
		}
	}
	return (even + odd) * unit
}

// code encodes v times down, and returns the difference.
func code(v, down float32) (c byte, diff float64) {
	v *= down
	bits := math.Float32bits(v)
	cell := min(max(bits<<1>>(cellBits+1), lowestCell), highestCell) - lowestCell
	rest := (bits&(1<<cellBits-1) + 1<<cellBits - 1) >> cellBits
	c = nearest[(2*cell+rest)&63] | byte(bits>>31<<3)
	return c, float64(v - steps[c])
}

// encode writes a block of 32 values. If one is not finite, so is the loss's Size.
func encode(values []float32, to []byte) (scale byte, loss Loss) {
	loss.Blocks = 1
	most := uint32(0) // bits of the largest magnitude; they compare as it does
	for _, v := range values {
		most = max(most, math.Float32bits(v)&^(1<<31))
		loss.Size += float64(v) * float64(v)
	}
	if math.IsNaN(loss.Size) || math.IsInf(loss.Size, 0) {
		return 0, loss
	}
	const smallest = -bias
	fitting := int(most>>23) - bias - 2 // 6 is 1.5 times 2^2
	if most&(1<<23-1) > 1<<22 {
		fitting++
	}
	fitting = max(fitting, smallest)
	var candidate [models.BlockBytes]byte
	block, out := (*[models.BlockSize]float32)(values), (*[models.BlockBytes]byte)(to)
	best := fitting
	loss.Error = tryScale(block, best, out, math.Inf(1))
	if loss.Error == 0 {
		loss.Exact = 1
	} else {
		exponent := max(fitting-1, smallest)
		if diff := tryScale(block, exponent, &candidate, loss.Error); diff < loss.Error {
			loss.Error, best, *out = diff, exponent, candidate
		}
	}
	loss.Worst = loss.Relative()
	return byte(best + bias), loss
}

func decode(blocks, scales []byte, to []float32) {
	for block, scale := range scales {
		unit := math.Ldexp(1, int(scale)-bias)
		values := to[block*models.BlockSize:][:models.BlockSize]
		for i, pair := range blocks[block*models.BlockBytes:][:models.BlockBytes] {
			values[2*i], values[2*i+1] = float32(float64(steps[pair&15])*unit),
				float32(float64(steps[pair>>4])*unit)
		}
	}
}
