package convert

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ossrun/ossrun/models"
)

// TestEncode: a block's values come back as that block if its largest code is 4 or 6, as in all
// rounded files; other values get the best of all scales.
func TestEncode(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var codes, to [models.BlockBytes]byte
	values := make([]float32, models.BlockSize)
	for range 2000 {
		scale := byte(1 + random.IntN(252))
		for i := range codes {
			codes[i] = byte(random.Uint32())
		}
		codes[random.IntN(16)] = byte(6+random.IntN(2))<<4 | 9
		for i := range values {
			c := codes[i/2] >> (4 * (i % 2)) & 15
			v := math.Ldexp(float64(steps[c&7]), int(scale)-bias)
			values[i] = float32(math.Copysign(v, float64(8-int(c))-0.5))
		}
		got, loss := encode(values, to[:])
		if got != scale || !bytes.Equal(to[:], codes[:]) || loss.Exact != 1 || loss.Error != 0 {
			t.Fatalf("scale %d, %x becomes %d, %x, %+v", scale, codes, got, to, loss)
		}
	}
	for range 2000 {
		for i := range values {
			values[i] = float32(random.NormFloat64() * math.Exp(3*random.NormFloat64()))
		}
		scale, loss := encode(values, to[:])
		if off := distance(values, scale, to[:]); math.Abs(off-loss.Error) > 1e-9*off {
			t.Fatalf("%v is off by %v, and said to be by %v", values, off, loss.Error)
		}
		for other := int(scale) - 6; other < int(scale)+6; other++ {
			if off := least(values, other-bias); off < loss.Error*(1-1e-9) {
				t.Fatalf("%v: scale %d is off by %v, %d by %v", values, scale, loss.Error, other,
					off)
			}
		}
	}
	clear(values)
	scale, loss := encode(values, to[:])
	if loss.Exact != 1 || distance(values, scale, to[:]) != 0 {
		t.Errorf("zeros: %+v", loss)
	}
}

// least is the sum of squared differences between values and the nearest numbers under a scale.
func least(values []float32, exponent int) (sum float64) {
	unit := math.Ldexp(1, exponent)
	for _, v := range values {
		off := math.Inf(1)
		for _, step := range steps {
			off = min(off, math.Abs(float64(v)-float64(step)*unit))
		}
		sum += off * off
	}
	return sum
}

// distance is the sum of squared differences between values and a block, by definition.
func distance(values []float32, scale byte, codes []byte) (off float64) {
	for i, v := range values {
		c := codes[i/2] >> (4 * (i % 2)) & 15
		y := math.Ldexp(float64(steps[c&7]), int(scale)-bias)
		if c >= 8 {
			y = -y
		}
		off += (float64(v) - y) * (float64(v) - y)
	}
	return off
}

// BenchmarkEncode: bytes of bfloat16, of which an import reads two per value. There are too many
// blocks for a processor to predict.
func BenchmarkEncode(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 1))
	values, to := make([]float32, 4096*models.BlockSize), make([]byte, models.BlockBytes)
	for i := range values {
		values[i] = float32(random.NormFloat64() / 50)
	}
	b.SetBytes(2 * models.BlockSize)
	for at := 0; b.Loop(); at = (at + models.BlockSize) % len(values) {
		encode(values[at:][:models.BlockSize], to)
	}
}
