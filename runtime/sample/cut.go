// Top-k, top-p and min-p. Each keeps a beginning of the tokens in the order of falling logits, so each is one cut, and
// all together are the strictest of them. Nothing is sorted but the few tokens around a cut.

package sample

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// candidate is a token with its logit.
type candidate struct {
	logit float32
	id    int32
}

// byRank orders falling logits, equal ones by rising id.
func byRank(a, b candidate) int {
	if c := cmp.Compare(b.logit, a.logit); c != 0 {
		return c
	}
	return cmp.Compare(a.id, b.id)
}

// top returns the k highest allowed tokens in rank order (fewer where there are fewer), using buf. A token enters the
// buffer only when it beats the k-th of those sorted so far; the buffer is sorted when 2k are in it.
func (r *row) top(k int, buf []candidate) []candidate {
	buf = slices.Grow(buf[:0], min(2*k, len(r.logits))+blockTokens)
	bar := float32(math.Inf(-1)) // a token must be above it
	for b, highest := range r.maxima {
		if !(highest > bar) {
			continue
		}
		v, word := r.block(b)
		for ; word != 0; word &= word - 1 {
			i := bits.TrailingZeros64(word)
			if v[i] > bar {
				buf = append(buf, candidate{v[i], int32(b*blockTokens + i)})
			}
		}
		if len(buf) >= 2*k {
			slices.SortFunc(buf, byRank)
			buf = buf[:k]
			bar = buf[k-1].logit // a later token has a higher id, so an equal one loses
		}
	}
	slices.SortFunc(buf, byRank)
	return buf[:min(k, len(buf))]
}

// minPCut keeps the tokens whose weight is at least minP. minP > 0.
func minPCut(highest, temperature, minP float32) cut {
	least := float64(highest) + float64(temperature)*math.Log(float64(minP))
	logit := float32(max(least, -math.MaxFloat32))
	if float64(logit) < least {
		logit = math.Nextafter32(logit, float32(math.Inf(1)))
	}
	return cut{logit, math.MaxInt32}
}

// bucketsPerNat is the resolution in which topPCut looks for the place of its cut.
const bucketsPerNat = 64

const buckets = floorNats*bucketsPerNat + 2

// topPCut keeps the fewest tokens, most probable first, that hold at least topP of the weight of what c keeps. The
// weights are summed in buckets of 1/64 nat; only the bucket in which the sum passes topP is sorted.
func (r *row) topPCut(c cut, w weights, topP float64, ws *workspace) cut {
	mass := ws.buckets[:]
	clear(mass)
	for b, highest := range r.maxima {
		if highest < c.logit {
			continue
		}
		v, word := r.block(b)
		for ; word != 0; word &= word - 1 {
			i := bits.TrailingZeros64(word)
			if c.keeps(v[i], int32(b*blockTokens+i)) {
				t := w.steps(v[i])
				mass[bucket(t)] += exp2Steps(t)
			}
		}
	}
	whole := 0.0
	for _, m := range mass {
		whole += m
	}
	target, sum, at := topP*whole, 0.0, 0
	for b, m := range mass {
		if m == 0 {
			continue
		}
		at = b
		if sum+m >= target {
			break
		}
		sum += m
	}
	near := ws.candidates[:0]
	for b, highest := range r.maxima {
		if highest < c.logit || bucket(w.steps(highest)) > at {
			continue
		}
		v, word := r.block(b)
		for ; word != 0; word &= word - 1 {
			i := bits.TrailingZeros64(word)
			if c.keeps(v[i], int32(b*blockTokens+i)) && bucket(w.steps(v[i])) == at {
				near = append(near, candidate{v[i], int32(b*blockTokens + i)})
			}
		}
	}
	ws.candidates = near
	slices.SortFunc(near, byRank)
	last := near[len(near)-1]
	for _, n := range near {
		if sum += w.of(n.logit); sum >= target {
			last = n
			break
		}
	}
	return cut{last.logit, last.id}
}

// bucket is the place of a weight, given by its logarithm as in weights.steps, in falling order.
func bucket(steps float64) int { return min(int(-steps*(bucketsPerNat/expScale)), buckets-1) }
