// Byte pair encoding of long pieces: a megabyte of one letter, of spaces, of Chinese without
// punctuation.
//
// The simple way is quadratic. A heap of pairs makes it n log n, but over a megabyte it misses the
// cache at every step. So a long piece is encoded window by window, each from a token boundary of
// the one before. This is exact because of a property of byte pair encoding: a row of tokens is the
// encoding of its bytes if and only if every two neighbours are the encoding of theirs. (The first
// merge that crosses a boundary between two tokens sees, in the whole row, just what it sees in the
// two alone.) Within a window that holds by construction; between windows neighbours checks it, and
// where it does not hold the window before is made again, at least twice as long. So the worst case
// is that of the heap.

package token

import "bytes"

const (
	window = 1024 // bytes encoded at a time
	// bytes at the end of a window that are left to the next one: their tokens may change with what
	// follows
	margin = 160
	// windows that are encoded before it is asked whether to go on
	windowsAsked = 64
)

// doneWindow is where a window began, in bytes of the piece and in tokens of the result, and how
// many bytes it looked at.
type doneWindow struct{ bytes, tokens, length int }

// mergeLong appends the tokens of the piece b to dst.
func (t *Tokenizer) mergeLong(dst []int32, b []byte) []int32 {
	if all, ok := t.mergeRun(dst, b); ok {
		return all
	}
	dst, _ = t.mergeWindows(dst, b, window, margin, nil)
	return dst
}

// mergeWindows is mergeLong for windows of size bytes, the last tail bytes of which are left to the
// next one. The result does not depend on either. more, if not nil, is asked as in EncodeWhile.
func (t *Tokenizer) mergeWindows(dst []int32, b []byte, size, tail int,
	more func(ids int) bool) ([]int32, bool) {
	q := queues.Get().(*mergeQueue)
	defer q.release()
	var done []doneWindow
	var before []byte // what q has encoded
	next := size
	for from, n := 0, 1; from < len(b); n++ {
		if more != nil && n%windowsAsked == 0 && !more(len(dst)) {
			return dst, false
		}
		to := min(from+next, len(b))
		if w := b[from:to]; !bytes.Equal(w, before) { // runs of one letter are the same again
			q.encode(t, w)
			before = w
		}
		if len(done) > 0 && !t.neighbours(dst[len(dst)-1], int32(q.ids[0])) {
			last := done[len(done)-1]
			done = done[:len(done)-1]
			from, dst, next = last.bytes, dst[:last.tokens], 2*max(last.length, to-last.bytes)
			continue
		}
		end := to - from
		if to < len(b) {
			end -= tail
		}
		if int(q.next[0]) > end { // not even one token is certain
			next *= 2
			continue
		}
		done = append(done, doneWindow{from, len(dst), to - from})
		i := int32(0)
		for int(i) < to-from && int(q.next[i]) <= end {
			dst = append(dst, int32(q.ids[i]))
			i = q.next[i]
		}
		from += int(i)
		next = size
	}
	return dst, true
}

// neighbours tells whether the bytes of left and right together are encoded as left and right.
func (t *Tokenizer) neighbours(left, right int32) bool {
	var room [2 * longestToken]byte
	both := append(append(room[:0], t.ordinaryBytes(uint32(left))...),
		t.ordinaryBytes(uint32(right))...)
	if len(both) <= shortPiece {
		var ids [shortPiece]int32
		got := t.merge(ids[:0], both)
		return len(got) == 2 && got[0] == left && got[1] == right
	}
	q := queues.Get().(*mergeQueue)
	defer q.release()
	q.encode(t, both)
	n := q.next[0]
	return q.ids[0] == uint32(left) && int(n) < len(both) && q.ids[n] == uint32(right) &&
		int(q.next[n]) == len(both)
}
