// Byte pair encoding of one piece that is not a token itself: start with its bytes, and while any
// two neighbours merge, merge the pair of the lowest rank, the leftmost of equals.

package token

// shortPiece is the length up to which a linear search for the lowest pair is fast.
const shortPiece = 128

// merge appends the tokens of the piece b to dst. b is not empty.
func (t *Tokenizer) merge(dst []int32, b []byte) []int32 {
	if len(b) > shortPiece {
		dst, _ = t.mergeLong(dst, b, nil)
		return dst
	}
	var ids, ranks [shortPiece]uint32 // ranks[i] is the merge of ids[i] and ids[i+1]
	n := len(b)
	for i, c := range b {
		ids[i] = t.byteID[c]
	}
	for i := range n - 1 {
		ranks[i] = t.bytePair[uint(b[i])<<8|uint(b[i+1])]
	}
	for n > 1 {
		best, pos := absent, 0
		for i, r := range ranks[:n-1] {
			if r < best {
				best, pos = r, i
			}
		}
		if best == absent {
			break
		}
		n--
		ids[pos] = best
		copy(ids[pos+1:n], ids[pos+2:n+1])
		copy(ranks[pos:n-1], ranks[pos+1:n])
		if pos > 0 {
			ranks[pos-1] = t.pairs.merged(ids[pos-1], best)
		}
		if pos < n-1 {
			ranks[pos] = t.pairs.merged(best, ids[pos+1])
		}
	}
	for _, id := range ids[:n] {
		dst = append(dst, int32(id))
	}
	return dst
}

// Byte pair encoding of long pieces: a megabyte of one letter, of spaces, of Chinese without
// punctuation.
//
// The simple way is quadratic. Here the longest token that fits is tried first, then shorter ones,
// until one may follow the previous token; if none may, the previous token is taken back. This is
// exact because of a property of byte pair encoding: a sequence of tokens is the encoding of its
// bytes if and only if every two neighbours are the encoding of theirs. (The first merge that
// crosses a boundary between two tokens sees the same in the sequence as in the two alone.) So the
// tokens so far are always the one encoding of the bytes so far. If they cannot continue from a
// position, nothing can, and it is not tried again. The work is linear.

// checkTokens is the number of tokens between two calls of proceed.
const checkTokens = 4096

// mergeLong appends the tokens of the piece b to dst. proceed may be nil; see EncodeWhile.
func (t *Tokenizer) mergeLong(dst []int32, b []byte, proceed func(ids int) bool) ([]int32, bool) {
	first := len(dst)
	var room [4 << 10 / 64]uint64
	dead := room[:] // the positions from which it cannot continue
	if len(b) >= 64*len(dead) {
		dead = make([]uint64, len(b)/64+1)
	}
	var pairs pairCache
	pos, next := 0, t.longest(b)
	for n := 1; pos < len(b); n++ {
		if proceed != nil && n%checkTokens == 0 && !proceed(len(dst)) {
			return dst, false
		}
		for ; next != absent; next = t.order().shorter[next] {
			end := pos + len(t.ordinaryBytes(next))
			if dead[end/64]>>(end%64)&1 == 0 &&
				(len(dst) == first || pairs.neighbours(t, uint32(dst[len(dst)-1]), next)) {
				dst = append(dst, int32(next))
				pos, next = end, absent
				if pos < len(b) {
					next = t.longest(b[pos:])
				}
				break
			}
		}
		if next == absent && pos < len(b) {
			dead[pos/64] |= 1 << (pos % 64)
			next = uint32(dst[len(dst)-1])
			dst = dst[:len(dst)-1]
			pos -= len(t.ordinaryBytes(next))
		}
	}
	return dst, true
}

// neighbours reports whether the bytes of two tokens together are encoded as these two: no merge
// across their boundary may precede one of the merges that make them. These merges are undone from
// the last. limit is one more than the highest rank that would precede the merge undone last; of
// equal ranks the left one is first.
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

// pairCache caches results of neighbours: long pieces consist of few pairs.
type pairCache [256]uint64

func (p *pairCache) neighbours(t *Tokenizer, left, right uint32) bool {
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
