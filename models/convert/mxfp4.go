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

// steps are the magnitudes of the codes.
var steps = [8]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6}

// signed are the numbers of the codes.
var signed = [16]float64{0, 0.5, 1, 1.5, 2, 3, 4, 6, math.Copysign(0, -1), -0.5, -1, -1.5, -2, -3,
	-4, -6}

// Added and taken away again, they round to a multiple of 0.5 and of 1, the even one of two;
// the sum's lowest bits are the multiple.
const (
	toHalves = 3 << 21
	toOnes   = 3 << 22
)

// bias is added to the exponent of a scale that is kept.
const bias = 127

// under encodes values with one scale, and gives the sum of the squared differences. Beyond most it
// stops, and the codes are not whole.
func under(values []float32, exponent int, to *[models.BlockSize]byte, most float64) (off float64) {
	down := float32(math.Ldexp(1, -exponent))
	unit := math.Ldexp(1, exponent)
	unit *= unit
	for i, v := range values {
		bits := math.Float32bits(v)
		y := math.Float32frombits(bits&^(1<<31)) * down
		near, code := float32(6), uint32(7)
		switch {
		case y < 2:
			sum := y + toHalves
			near, code = sum-toHalves, math.Float32bits(sum)&7
		case y < 4:
			sum := y + toOnes
			near, code = sum-toOnes, 2+math.Float32bits(sum)&7
		case y <= 5:
			near, code = 4, 6
		}
		to[i] = byte(code | bits>>31<<3)
		d := float64(y - near)
		off += d * d
		if i%8 == 7 && off*unit > most {
			break
		}
	}
	return off * unit
}

// encode writes the block of 32 values. One that is not finite is in the loss's Size.
func encode(values []float32, to []byte) (scale byte, loss Loss) {
	loss.Blocks = 1
	most := uint32(0) // the bits of the largest magnitude, which are in its order
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
	var whole, others [models.BlockSize]byte
	best := fitting
	loss.Error = under(values, best, &whole, math.Inf(1))
	if loss.Error == 0 {
		loss.Exact = 1
	} else {
		for _, exponent := range [2]int{max(fitting-1, smallest), fitting + 1} {
			if off := under(values, exponent, &others, loss.Error); off < loss.Error {
				loss.Error, best, whole = off, exponent, others
			}
		}
	}
	for i := range to[:models.BlockBytes] {
		to[i] = whole[2*i] | whole[2*i+1]<<4
	}
	loss.Worst = loss.Relative()
	return byte(best + bias), loss
}

// decode gives the values of blocks.
func decode(blocks, scales []byte, to []float32) {
	for at, scale := range scales {
		unit := math.Ldexp(1, int(scale)-bias)
		values := to[at*models.BlockSize:][:models.BlockSize]
		for i, pair := range blocks[at*models.BlockBytes:][:models.BlockBytes] {
			values[2*i], values[2*i+1] = float32(signed[pair&15]*unit),
				float32(signed[pair>>4]*unit)
		}
	}
}
