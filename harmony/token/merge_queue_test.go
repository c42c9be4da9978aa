// Byte pair encoding with a heap of the pairs that can merge: the plain algorithm, fast enough for
// pieces of some thousand bytes.

package token

// mergeQueue encodes one row of bytes at a time. Node i begins at byte i; ids, next and rank are
// only valid for nodes that still exist. A heap entry whose rank differs from its node's is stale
// and skipped.
type mergeQueue struct {
	ids  []uint32 // token of the node
	rank []uint32 // what the node and its next one merge into, or absent
	next []int32  // first byte of the next node, len(ids) after the last one
	prev []int32
	heap []uint64 // rank<<32 | node, the lowest first
}

func (q *mergeQueue) resize(n int) {
	if cap(q.ids) < n {
		q.ids, q.rank = make([]uint32, n), make([]uint32, n)
		q.next, q.prev = make([]int32, n), make([]int32, n)
		q.heap = make([]uint64, 0, n)
	}
	q.ids, q.rank, q.next, q.prev, q.heap = q.ids[:n], q.rank[:n], q.next[:n], q.prev[:n],
		q.heap[:0]
}

// encode stores the tokens of b, which is not empty, in the nodes from node 0.
func (q *mergeQueue) encode(t *Tokenizer, b []byte) {
	n := len(b)
	q.resize(n)
	for i, c := range b {
		q.ids[i], q.rank[i] = t.byteID[c], absent
		q.next[i], q.prev[i] = int32(i+1), int32(i-1)
		if i+1 < n {
			if r := t.bytePair[uint(c)<<8|uint(b[i+1])]; r != absent {
				q.rank[i] = r
				q.heap = append(q.heap, uint64(r)<<32|uint64(i))
			}
		}
	}
	for i := len(q.heap)/2 - 1; i >= 0; i-- {
		q.down(i)
	}
	for len(q.heap) > 0 {
		top := q.heap[0]
		i, r := int32(uint32(top)), uint32(top>>32)
		last := len(q.heap) - 1
		q.heap[0] = q.heap[last]
		q.heap = q.heap[:last]
		q.down(0)
		if q.rank[i] != r {
			continue
		}
		right := q.next[i]
		q.ids[i] = r
		q.rank[right] = absent
		q.next[i] = q.next[right]
		if after := q.next[i]; int(after) < n {
			q.prev[after] = i
		}
		q.pair(t, i, n)
		if q.prev[i] >= 0 {
			q.pair(t, q.prev[i], n)
		}
	}
}

// pair looks up the merge of node i and the next one after one of them has changed.
func (q *mergeQueue) pair(t *Tokenizer, i int32, n int) {
	q.rank[i] = absent
	right := q.next[i]
	if int(right) == n {
		return
	}
	r := t.pairs.merged(q.ids[i], q.ids[right])
	if r == absent {
		return
	}
	q.rank[i] = r
	q.heap = append(q.heap, uint64(r)<<32|uint64(i))
	for at := len(q.heap) - 1; at > 0; {
		up := (at - 1) / 2
		if q.heap[up] <= q.heap[at] {
			break
		}
		q.heap[up], q.heap[at] = q.heap[at], q.heap[up]
		at = up
	}
}

// down moves the entry at i down to its place.
func (q *mergeQueue) down(i int) {
	for {
		low := 2*i + 1
		if low >= len(q.heap) {
			return
		}
		if low+1 < len(q.heap) && q.heap[low+1] < q.heap[low] {
			low++
		}
		if q.heap[i] <= q.heap[low] {
			return
		}
		q.heap[i], q.heap[low] = q.heap[low], q.heap[i]
		i = low
	}
}
