// Tables for long pieces: the tokens in byte order, their longest prefix tokens and the tokens that
// each was merged from. They are created on first use.

package token

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// order is derived from the tables of a Tokenizer and immutable.
type order struct {
	ids     []int32     // the ordinary tokens in byte order
	heads   []uint64    // their first eight bytes as a number
	begin   []int32     // by two bytes: index in ids of the first token not below them
	shorter []uint32    // by token: the longest other token that is its prefix, or absent
	halves  [][2]uint32 // by token of more than one byte: the two that merge into it
}

// Sorted is the ids of all ordinary tokens in the order of their bytes. The caller must not change
// it.
func (t *Tokenizer) Sorted() []int32 { return t.order().ids }

func (t *Tokenizer) newOrder() *order {
	o := &order{begin: make([]int32, 1<<16+1), shorter: make([]uint32, ordinary),
		halves: make([][2]uint32, ordinary)}
	o.ids, o.heads = t.sorted()
	for _, v := range t.pairs {
		if v != 0 {
			o.halves[v&idMask] = [2]uint32{uint32(v >> (2 * idBits) & idMask),
				uint32(v >> idBits & idMask)}
		}
	}
	var open []uint32 // tokens that are prefixes of the last token, itself at the end
	head := 0
	for i, id := range o.ids {
		b := t.ordinaryBytes(uint32(id))
		for len(open) > 0 && !bytes.HasPrefix(b, t.ordinaryBytes(open[len(open)-1])) {
			open = open[:len(open)-1]
		}
		o.shorter[id] = absent
		if len(open) > 0 {
			o.shorter[id] = open[len(open)-1]
		}
		open = append(open, uint32(id))
		if len(b) == 1 {
			continue
		}
		for ; head <= int(b[0])<<8|int(b[1]); head++ {
			o.begin[head] = int32(i)
		}
	}
	for ; head < len(o.begin); head++ {
		o.begin[head] = int32(len(o.ids))
	}
	return o
}

// sorted sorts the ids. Most differ in their heads.
func (t *Tokenizer) sorted() (ids []int32, heads []uint64) {
	type entry struct {
		head uint64
		id   int32
	}
	entries := make([]entry, ordinary)
	for i := range entries {
		entries[i] = entry{headOf(t.ordinaryBytes(uint32(i))), int32(i)}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return bytes.Compare(t.ordinaryBytes(uint32(a.id)), t.ordinaryBytes(uint32(b.id)))
	})
	for _, e := range entries {
		ids, heads = append(ids, e.id), append(heads, e.head)
	}
	return ids, heads
}

// headOf is the first eight bytes of b as a number, padded with zeros.
func headOf(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var head [8]byte
	copy(head[:], b)
	return binary.BigEndian.Uint64(head[:])
}

// longest is the longest token that is a prefix of b, which is not empty.
func (t *Tokenizer) longest(b []byte) uint32 {
	if len(b) == 1 {
		return t.byteID[b[0]]
	}
	o := t.order()
	b = b[:min(len(b), longestToken)]
	place, head := int(b[0])<<8|int(b[1]), headOf(b)
	// the last token that is not after b has every token that is a prefix of b as its prefix
	low, high := o.begin[place], o.begin[place+1]
	for low < high {
		middle := (low + high) / 2
		h := o.heads[middle]
		if h < head || h == head && bytes.Compare(t.ordinaryBytes(uint32(o.ids[middle])), b) <= 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == o.begin[place] {
		return t.byteID[b[0]]
	}
	id := uint32(o.ids[low-1])
	for !bytes.HasPrefix(b, t.ordinaryBytes(id)) {
		id = o.shorter[id]
	}
	return id
}
