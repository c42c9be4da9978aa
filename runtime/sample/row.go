// Passes over one row of logits. A row is walked in blocks of 64 tokens, one word of the mask each,
// with the highest allowed logit of each block known: a pass that wants tokens above some logit
// skips the blocks that have none.

package sample

import (
	"math"
	"math/bits"
	"slices"
)

const blockTokens = 64

// floorNats is how far below the most probable token one is still counted. A whole vocabulary of
// tokens below it weighs less than 201088*exp(-50) = 4e-17, under the step of 2^-53 in which
// Uniform counts.
const floorNats = 50

// row is the input of one choice: the logits after penalties and bias (-Inf: banned), and the mask.
type row struct {
	logits []float32
	mask   []uint64  // nil: all allowed; words that it lacks count as zero
	maxima []float32 // [blocks] highest allowed logit, -Inf without one
}

func blocks(tokens int) int { return (tokens + blockTokens - 1) / blockTokens }

// block returns the logits of block b and the bits of those allowed; no bit is set past the end of
// the row.
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
	n := len(logits) / blockTokens
	finite = scanBlocks(logits[:n*blockTokens], maxima[:n])
	if rest := logits[n*blockTokens:]; len(rest) > 0 {
		maxima[n] = slices.Max(rest)
		for _, x := range rest {
			finite = finite && x-x == 0
		}
	}
	return finite
}

// scanBlocksGo is scan for whole blocks. It has no branches on the logits, which would be
// mispredicted in every block.
func scanBlocksGo(logits, maxima []float32) (finite bool) {
	// an exponent of all ones carries into the sign bit
	const exponent, carry = 0x7f800000, 0x00800000
	var bad uint32
	for block := range maxima {
		v := (*[blockTokens]float32)(logits[block*blockTokens:])
		a, b, c, d := v[0], v[1], v[2], v[3]
		for i := 0; i < blockTokens; i += 4 {
			w, x, y, z := v[i], v[i+1], v[i+2], v[i+3]
			bad |= (math.Float32bits(w)&exponent + carry) | (math.Float32bits(x)&exponent + carry) |
				(math.Float32bits(y)&exponent + carry) | (math.Float32bits(z)&exponent + carry)
			a, b, c, d = max(a, w), max(b, x), max(c, y), max(d, z)
		}
		maxima[block] = max(a, b, c, d)
	}
	return bad>>31 == 0
}

// denseTokens is how many tokens of a block must be allowed for it to be looked at as a whole, the
// others banned.
const denseTokens = 6

// isDense tells whether a block is looked at as a whole.
func isDense(v []float32, word uint64) bool {
	return len(v) == blockTokens && bits.OnesCount64(word) >= denseTokens
}

// keepGo copies a block, with -Inf for the tokens that word does not allow, and returns the highest
// of the others.
func keepGo(out, v *[blockTokens]float32, word uint64) (highest float32) {
	banned := math.Float32bits(float32(math.Inf(-1)))
	highest = float32(math.Inf(-1))
	for i := range v {
		drop := uint32(word>>i&1) - 1 // all ones for a token that is not allowed
		out[i] = math.Float32frombits(math.Float32bits(v[i])&^drop | banned&drop)
		highest = max(highest, out[i])
	}
	return highest
}

// refresh sets the maximum of block b from its logits and the mask.
func (r *row) refresh(b int) {
	highest := float32(math.Inf(-1))
	v, word := r.block(b)
	if isDense(v, word) {
		var out [blockTokens]float32
		r.maxima[b] = keep(&out, (*[blockTokens]float32)(v), word)
		return
	}
	for ; word != 0; word &= word - 1 {
		if x := v[bits.TrailingZeros64(word)]; x > highest {
			highest = x
		}
	}
	r.maxima[b] = highest
}

// best returns the lowest id of the highest allowed logit, -1 if every allowed one is banned.
func (r *row) best() (int32, float32) {
	index, highest := -1, float32(math.Inf(-1))
	for b, x := range r.maxima {
		if x > highest {
			index, highest = b, x
		}
	}
	if index < 0 {
		return -1, highest
	}
	v, word := r.block(index)
	for v[bits.TrailingZeros64(word)] != highest {
		word &= word - 1
	}
	return int32(index*blockTokens + bits.TrailingZeros64(word)), highest
}

// cut is the last kept token in the order of falling logits, equal logits by rising id.
type cut struct {
	logit float32
	id    int32
}

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
	return cut{float32(max(float64(highest)-floorNats*float64(temperature), -math.MaxFloat32)),
		math.MaxInt32}
}

// weights turns logits to probabilities relative to the highest: exp((logit - highest) /
// temperature).
type weights struct{ highest, scale float64 }

func newWeights(highest, temperature float32) weights {
	return weights{float64(highest), expScale / float64(temperature)}
}

// steps is the logarithm of the weight in steps of exp2Steps; it never rises as the logit falls.
func (w weights) steps(logit float32) float64 { return (float64(logit) - w.highest) * w.scale }

func (w weights) weight(logit float32) float64 { return exp2Steps(w.steps(logit)) }

// mass fills sums [blocks] with the weights of the kept tokens and returns their total.
func (r *row) mass(c cut, w weights, sums []float64) (sum float64) {
	above := math.Nextafter32(c.logit, float32(math.Inf(1))) // the least kept after c.id
	var out [blockTokens]float32
	for b, highest := range r.maxima {
		sums[b] = 0
		if highest < c.logit {
			continue
		}
		v, word := r.block(b)
		first, last := int32(b*blockTokens), int32(b*blockTokens+blockTokens-1)
		if isDense(v, word) && (last <= c.id || first > c.id) {
			block, least := (*[blockTokens]float32)(v), c.logit
			if first > c.id {
				least = above
			}
			if word != ^uint64(0) {
				keep(&out, block, word)
				block = &out
			}
			sums[b] = denseMass(block, least, w.highest, w.scale)
		} else {
			for ; word != 0; word &= word - 1 {
				i := bits.TrailingZeros64(word)
				if c.keeps(v[i], first+int32(i)) {
					sums[b] += w.weight(v[i])
				}
			}
		}
		sum += sums[b]
	}
	return sum
}

// denseMassGo is the weight of the tokens of a block whose logit is least or more. It has four
// sums, since each addition waits for the previous one.
func denseMassGo(v *[blockTokens]float32, least float32, highest, scale float64) float64 {
	var s0, s1, s2, s3 float64
	for i := 0; i < blockTokens; i += 4 {
		x0, x1, x2, x3 := v[i], v[i+1], v[i+2], v[i+3]
		if x0 >= least {
			s0 += exp2Steps((float64(x0) - highest) * scale)
		}
		if x1 >= least {
			s1 += exp2Steps((float64(x1) - highest) * scale)
		}
		if x2 >= least {
			s2 += exp2Steps((float64(x2) - highest) * scale)
		}
		if x3 >= least {
			s3 += exp2Steps((float64(x3) - highest) * scale)
		}
	}
	return (s0 + s1) + (s2 + s3)
}

// draw returns the token at which the running sum of weights, by rising id, passes the share u of
// the total.
func (r *row) draw(c cut, w weights, sums []float64, total, u float64) int32 {
	target, sum, below, index := u*total, 0.0, 0.0, 0
	for b, s := range sums {
		if s == 0 {
			continue
		}
		index, below = b, sum
		if sum += s; sum > target {
			break
		}
	}
	// Rounding can leave the target at or past the end of this block's own sum: its last kept token
	// is then meant.
	v, word := r.block(index)
	id := int32(-1)
	for ; word != 0; word &= word - 1 {
		i := bits.TrailingZeros64(word)
		if n := int32(index*blockTokens + i); c.keeps(v[i], n) {
			id = n
			if below += w.weight(v[i]); below > target {
				break
			}
		}
	}
	return id
}
