// Top-k, top-p and min-p. Each keeps a beginning of the tokens in the order of falling logits, so
// each is one cut, and all together are the strictest of them. Only the few tokens around a cut are
// sorted.

package sample

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

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

// top returns the k highest allowed tokens in rank order (or all, if fewer), using buf.
// A token enters the buffer only when it beats the k-th of those sorted so far; the buffer is
// sorted when 2k are in it.
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

// topPCut keeps the fewest tokens, most probable first, that hold at least topP of the weight of
// c's tokens. The weights are summed in buckets of 1/64 nat, down to 4 nats first, since that is
// mostly enough; only the bucket in which the sum passes topP is sorted.
func (r *row) topPCut(c cut, w weights, topP float64, ws *workspace) cut {
	target := topP * r.mass(c, w, ws.sums)
	index, sum, ok := 0, 0.0, false
	for _, deepest := range [...]int{4 * bucketsPerNat, 12 * bucketsPerNat, buckets - 1} {
		r.fillBuckets(c, w, deepest, ws)
		if index, sum, ok = findBucket(ws.buckets[:], target); ok {
			break
		}
	}
	border := ws.candidates[:0]
	for b, highest := range r.maxima {
		if highest < c.logit || bucket(w.steps(highest)) > index {
			continue
		}
		v, word := r.block(b)
		for ; word != 0; word &= word - 1 {
			i := bits.TrailingZeros64(word)
			if c.keeps(v[i], int32(b*blockTokens+i)) && bucket(w.steps(v[i])) == index {
				border = append(border, candidate{v[i], int32(b*blockTokens + i)})
			}
		}
	}
	ws.candidates = border
	slices.SortFunc(border, byRank)
	last := border[len(border)-1]
	for _, n := range border {
		if sum += w.weight(n.logit); sum >= target {
			last = n
			break
		}
	}
	return cut(last)
}

// fillBuckets sums the weights of the kept tokens by bucket, down to those of bucket deepest.
func (r *row) fillBuckets(c cut, w weights, deepest int, ws *workspace) {
	clear(ws.buckets[:])
	for b, highest := range r.maxima {
		if highest < c.logit || bucket(w.steps(highest)) > deepest {
			continue
		}
		v, word := r.block(b)
		for ; word != 0; word &= word - 1 {
			i := bits.TrailingZeros64(word)
			if !c.keeps(v[i], int32(b*blockTokens+i)) {
				continue
			}
			if t := w.steps(v[i]); bucket(t) <= deepest {
				ws.buckets[bucket(t)] += exp2Steps(t)
			}
		}
	}
}

// findBucket returns the bucket in which the running sum passes target, and the sum before it; if
// none does, the last bucket that is not empty. With all buckets filled that is a target of nearly
// the full sum, which rounding left above it.
func findBucket(mass []float64, target float64) (index int, below float64, ok bool) {
	sum := 0.0
	for b, m := range mass {
		if m == 0 {
			continue
		}
		index, below = b, sum
		if sum += m; sum >= target {
			return index, below, true
		}
	}
	return index, below, false
}

// bucket is the place of a weight, given by its logarithm as in weights.steps, in falling order.
func bucket(steps float64) int { return min(int(-steps*(bucketsPerNat/expScale)), buckets-1) }
