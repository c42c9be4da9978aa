// Byte pair encoding of long pieces: a megabyte of one letter, of spaces, of Chinese without
// punctuation.
//
// The simple way is quadratic. Here the longest token that fits is tried first, then shorter ones
// until one may stand beside the token before it; if none may, the token before is taken back. This
// is exact because of a property of byte pair encoding: a row of tokens is the encoding of its
// bytes if and only if every two neighbours are the encoding of theirs. (The first merge that
// crosses a boundary between two tokens sees the same in the whole row as in the two alone.) So the
// tokens so far are always the one encoding of the bytes so far: if they cannot go on from a place,
// nothing can, and the place is not tried again. The work is linear.

package token

// tokensAsked is how many tokens are made between two questions whether to go on.
const tokensAsked = 4096

// mergeLong appends the tokens of the piece b to dst. more, if not nil, is asked as in EncodeWhile.
func (t *Tokenizer) mergeLong(dst []int32, b []byte, more func(ids int) bool) ([]int32, bool) {
	first := len(dst)
	var room [4 << 10 / 64]uint64
	dead := room[:] // the places from which it cannot go on
	if len(b) >= 64*len(dead) {
		dead = make([]uint64, len(b)/64+1)
	}
	var pairs pairsAsked
	at, next := 0, t.longest(b)
	for n := 1; at < len(b); n++ {
		if more != nil && n%tokensAsked == 0 && !more(len(dst)) {
			return dst, false
		}
		for ; next != absent; next = t.order().shorter[next] {
			end := at + len(t.ordinaryBytes(next))
			if dead[end/64]>>(end%64)&1 == 0 &&
				(len(dst) == first || pairs.neighbours(t, uint32(dst[len(dst)-1]), next)) {
				dst = append(dst, int32(next))
				at, next = end, absent
				if at < len(b) {
					next = t.longest(b[at:])
				}
				break
			}
		}
		if next == absent && at < len(b) {
			dead[at/64] |= 1 << (at % 64)
			next = uint32(dst[len(dst)-1])
			dst = dst[:len(dst)-1]
			at -= len(t.ordinaryBytes(next))
		}
	}
	return dst, true
}

// neighbours tells whether the bytes of two tokens together are encoded as these two: no merge
// across their boundary may come before one of the merges that make them. These merges are undone
// from the last on. limit is one more than the highest rank that would come before the merge undone
// last; of equal ranks the left one comes first.
func (t *Tokenizer) neighbours(left, right uint32) bool {
	o := t.order()
	for limit := absent; ; {
		if t.pairs.merged(left, right) < limit {
			return false
		}
		switch {
		case max(left, right) < single:
			return true
		case left > right:
			limit = left
			left = o.halves[left][1]
		default:
			limit = right + 1
			right = o.halves[right][0]
		}
	}
}

// pairsAsked keeps answers of neighbours: long pieces are made of few pairs.
type pairsAsked [256]uint64

func (p *pairsAsked) neighbours(t *Tokenizer, left, right uint32) bool {
	key := uint64(left)<<idBits | uint64(right)
	slot := &p[key*0x9E3779B97F4A7C15>>(64-8)]
	if *slot>>1 != key|pairSet {
		*slot = (key | pairSet) << 1
		if t.neighbours(left, right) {
			*slot |= 1
		}
	}
	return *slot&1 == 1
}
