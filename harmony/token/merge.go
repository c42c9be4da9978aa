// Byte pair encoding of one piece that is not a token itself: begin with its bytes, and as long as
// two neighbours merge, merge the pair of the lowest rank, the leftmost of equals.

package token

// shortPiece is the length up to which looking through all pairs for the lowest is fast.
const shortPiece = 128

// merge appends the tokens of the piece b to dst. b is not empty.
func (t *Tokenizer) merge(dst []int32, b []byte) []int32 {
	if len(b) > shortPiece {
		dst, _ = t.mergeLong(dst, b, nil)
		return dst
	}
	var ids, ranks [shortPiece]uint32 // ranks[i] is what ids[i] and ids[i+1] merge into
	n := len(b)
	for i, c := range b {
		ids[i] = t.byteID[c]
	}
	for i := range n - 1 {
		ranks[i] = t.bytePair[uint(b[i])<<8|uint(b[i+1])]
	}
	for n > 1 {
		best, at := absent, 0
		for i, r := range ranks[:n-1] {
			if r < best {
				best, at = r, i
			}
		}
		if best == absent {
			break
		}
		n--
		ids[at] = best
		copy(ids[at+1:n], ids[at+2:n+1])
		copy(ranks[at:n-1], ranks[at+1:n])
		if at > 0 {
			ranks[at-1] = t.pairs.merged(ids[at-1], best)
		}
		if at < n-1 {
			ranks[at] = t.pairs.merged(best, ids[at+1])
		}
	}
	for _, id := range ids[:n] {
		dst = append(dst, int32(id))
	}
	return dst
}
