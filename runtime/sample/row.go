// Passes over one row of logits. A row is walked in blocks of 64 tokens, one word of the mask each, with the highest
// allowed logit of each block known: a pass that wants tokens above some logit skips the blocks that have none.

package sample

import (
	"math"
	"math/bits"
	"slices"
)

const blockTokens = 64

// floorNats is how far below the most probable token one is still counted. A whole vocabulary of tokens below it weighs
// less than 201088*exp(-50) = 4e-17, under the step of 2^-53 in which Uniform counts.
const floorNats = 50

// row is what one choice is made from: the logits after penalties and bias (-Inf: banned), and the mask.
type row struct {
	logits []float32
	mask   []uint64  // nil: all allowed; words that it lacks count as zero
	maxima []float32 // [blocks] highest allowed logit, -Inf without one
}

func blocks(tokens int) int { return (tokens + blockTokens - 1) / blockTokens }

// block returns the logits of block b and the bits of those allowed; no bit is set past the end of the row.
func (r *row) block(b int) ([]float32, uint64) {
	v := r.logits[b*blockTokens:]
	word := ^uint64(0)
	if len(v) > blockTokens {
		v = v[:blockTokens]
	} else {
		word >>= uint(blockTokens - len(v))
	}
	if r.mask != nil {
		if b >= len(r.mask) {
			return v, 0
		}
		word &= r.mask[b]
	}
	return v, word
}

// scan fills maxima [blocks], without a mask, and tells whether all logits are finite.
func scan(logits, maxima []float32) (finite bool) {
	const exponent, carry = 0x7f800000, 0x00800000 // an exponent of all ones carries into the sign bit
	var bad uint32
	for block := range maxima {
		v := logits[block*blockTokens:]
		v = v[:min(len(v), blockTokens)]
		a, b, c, d := v[0], v[0], v[0], v[0]
		for ; len(v) >= 4; v = v[4:] {
			w, x, y, z := v[0], v[1], v[2], v[3]
			bad |= (math.Float32bits(w)&exponent + carry) | (math.Float32bits(x)&exponent + carry) |
				(math.Float32bits(y)&exponent + carry) | (math.Float32bits(z)&exponent + carry)
			a, b, c, d = max(a, w), max(b, x), max(c, y), max(d, z) // without branches: they would be mispredicted in every block
		}
		for _, w := range v {
			bad |= math.Float32bits(w)&exponent + carry
			a = max(a, w)
		}
		maxima[block] = max(a, b, c, d)
	}
	return bad>>31 == 0
}

// refresh sets the maximum of block b from its logits and the mask.
func (r *row) refresh(b int) {
	highest := float32(math.Inf(-1))
	v, word := r.block(b)
	if word == ^uint64(0) {
		r.maxima[b] = slices.Max(v)
		return
	}
	for ; word != 0; word &= word - 1 {
		if x := v[bits.TrailingZeros64(word)]; x > highest {
			highest = x
		}
	}
	r.maxima[b] = highest
}

// best returns the lowest id of the highest allowed logit, -1 where every allowed one is banned.
func (r *row) best() (int32, float32) {
	at, highest := -1, float32(math.Inf(-1))
	for b, x := range r.maxima {
		if x > highest {
			at, highest = b, x
		}
	}
	if at < 0 {
		return -1, highest
	}
	v, word := r.block(at)
	for v[bits.TrailingZeros64(word)] != highest {
		word &= word - 1
	}
	return int32(at*blockTokens + bits.TrailingZeros64(word)), highest
}

// cut is where the kept tokens end in the order of falling logits, equal logits by rising id: the last kept one.
type cut struct {
	logit float32
	id    int32
}

// everything keeps all tokens but those that are banned.
var everything = cut{-math.MaxFloat32, math.MaxInt32}

func (c cut) keeps(logit float32, id int32) bool {
	return logit > c.logit || logit == c.logit && id <= c.id
}

// stricter returns the cut that keeps fewer.
func (c cut) stricter(d cut) cut {
	if d.logit > c.logit || d.logit == c.logit && d.id < c.id {
		return d
	}
	return c
}

// floor is the cut at floorNats.
func floor(highest, temperature float32) cut {
	return cut{float32(max(float64(highest)-floorNats*float64(temperature), -math.MaxFloat32)), math.MaxInt32}
}

// weights turns logits to probabilities relative to the highest: exp((logit - highest) / temperature).
type weights struct{ highest, scale float64 }

func newWeights(highest, temperature float32) weights {
	return weights{float64(highest), expScale / float64(temperature)}
}

// steps is the logarithm of the weight in steps of exp2Steps; it never rises where the logit falls.
func (w weights) steps(logit float32) float64 { return (float64(logit) - w.highest) * w.scale }

func (w weights) of(logit float32) float64 { return exp2Steps(w.steps(logit)) }

// mass fills sums [blocks] with the weights of the kept tokens and returns the whole.
func (r *row) mass(c cut, w weights, sums []float64) (whole float64) {
	for b, highest := range r.maxima {
		sums[b] = 0
		if highest < c.logit {
			continue
		}
		if v, word := r.block(b); word == ^uint64(0) {
			sums[b] = denseMass((*[blockTokens]float32)(v), int32(b*blockTokens), c, w)
		} else {
			for ; word != 0; word &= word - 1 {
				i := bits.TrailingZeros64(word)
				if c.keeps(v[i], int32(b*blockTokens+i)) {
					sums[b] += w.of(v[i])
				}
			}
		}
		whole += sums[b]
	}
	return whole
}

// denseMass is the weight of the kept tokens of a block that the mask allows as a whole; first is the id of its first.
// Four sums run side by side, since each addition waits for the one before it.
func denseMass(v *[blockTokens]float32, first int32, c cut, w weights) float64 {
	var s0, s1, s2, s3 float64
	for i := 0; i < blockTokens; i += 4 {
		x0, x1, x2, x3 := v[i], v[i+1], v[i+2], v[i+3]
		if x0 > c.logit && x1 > c.logit && x2 > c.logit && x3 > c.logit {
			s0 += exp2Steps((float64(x0) - w.highest) * w.scale)
			s1 += exp2Steps((float64(x1) - w.highest) * w.scale)
			s2 += exp2Steps((float64(x2) - w.highest) * w.scale)
			s3 += exp2Steps((float64(x3) - w.highest) * w.scale)
			continue
		}
		for j, x := range v[i : i+4] {
			if c.keeps(x, first+int32(i+j)) {
				s0 += w.of(x)
			}
		}
	}
	return (s0 + s1) + (s2 + s3)
}

// draw returns the token at which the running sum of weights, by rising id, passes the share u of the whole.
func (r *row) draw(c cut, w weights, sums []float64, whole, u float64) int32 {
	target, sum, before, at := u*whole, 0.0, 0.0, 0
	for b, s := range sums {
		if s == 0 {
			continue
		}
		at, before = b, sum
		if sum += s; sum > target {
			break
		}
	}
	// Rounding can leave the target at or past the end of this block's own sum: its last kept token is then meant.
	v, word := r.block(at)
	id := int32(-1)
	for ; word != 0; word &= word - 1 {
		i := bits.TrailingZeros64(word)
		if n := int32(at*blockTokens + i); c.keeps(v[i], n) {
			id = n
			if before += w.of(v[i]); before > target {
				break
			}
		}
	}
	return id
}
