// Package draft guesses the next tokens of a text from its earlier part, and says when trying a
// guess pays. A guess costs time at most: the caller checks every token of it.
//
// This file finds the guesses: an earlier occurrence of the text's end, the longest match of a few
// candidates, by hash chains as in LZ77.
//
// What must stay true:
//   - A token is added in constant time, and a proposal takes a bounded time, however the text
//     repeats itself.
//   - Memory grows with the text only: 20 bytes a token.
package draft

import "slices"

const (
	gram       = 3  // tokens that a candidate must share
	candidates = 16 // positions that are compared, the latest first
	longest    = 64 // tokens that two positions are compared by
)

// barrier separates two texts. No token equals it.
const barrier = -1

// Index is a growing text and the positions after each of its grams. It belongs to one sequence and
// one goroutine.
type Index struct {
	text []int32
	// by the hash of gram tokens: the latest position that follows them, 0 for none; the length is
	// a power of two
	head []int32
	prev []int32 // by position: the previous one with the same hash
	// text[:predicted] is what the caller expects the answer to be
	predicted int
	grew      int // of text: the part in head and prev
}

type Proposal struct {
	Tokens    []int32
	Match     int  // how many tokens before it are the text's last
	Predicted bool // it is taken from the prediction
}

// NewIndex starts with a prediction of the answer (nil: none), which is not part of the text.
func NewIndex(prediction []int32) *Index {
	x := &Index{predicted: len(prediction)}
	if len(prediction) > 0 {
		x.text = append(append(x.text, prediction...), barrier)
	}
	return x
}

// Add appends the tokens of text that the index does not have yet.
func (x *Index) Add(text []int32) {
	begin := 0
	if x.predicted > 0 {
		begin = x.predicted + 1
	}
	x.text = append(x.text, text[len(x.text)-begin:]...)
	if 2*len(x.text) > len(x.head) {
		size := 1 << 10
		for size < 4*len(x.text) {
			size *= 2
		}
		x.head, x.prev, x.grew = make([]int32, size), x.prev[:0], 0
	}
	x.prev = append(x.prev, make([]int32, len(x.text)-len(x.prev))...)
	// the end itself is no candidate yet: nothing follows it
	for pos := max(gram, x.grew); pos < len(x.text); pos++ {
		h := x.hash(pos)
		x.prev[pos], x.head[h] = x.head[h], int32(pos)
	}
	x.grew = max(x.grew, len(x.text))
}

// hash is that of the tokens before a position.
func (x *Index) hash(pos int) uint32 {
	t := x.text[pos-gram : pos]
	h := uint32(t[0])*0x9E3779B1 ^ uint32(t[1])*0x85EBCA77 ^ uint32(t[2])*0xC2B2AE3D
	h ^= h >> 15
	h *= 0x2C1B3C6D
	return (h ^ h>>13) & uint32(len(x.head)-1)
}

// Propose appends to buffer what followed the longest match, at most most tokens. A match that
// reaches into the guess itself repeats it. Of equal matches a prediction is taken, else the
// latest.
func (x *Index) Propose(buffer []int32, most int) (p Proposal) {
	n := len(x.text)
	if n < gram+1 {
		return p
	}
	best := 0
	pos := int(x.head[x.hash(n)])
	for range candidates {
		if pos == 0 {
			break
		}
		if m := x.match(pos, n); m >= gram && (m > p.Match || m == p.Match && pos < x.predicted) {
			best, p.Match = pos, m
		}
		pos = int(x.prev[pos])
	}
	if best == 0 {
		return p
	}
	p.Predicted = best < x.predicted
	p.Tokens = buffer
	for i := range most {
		id, from := int32(barrier), best+i
		if from < n {
			id = x.text[from]
		} else {
			id = p.Tokens[len(buffer)+from-n]
		}
		if id == barrier {
			break
		}
		p.Tokens = append(p.Tokens, id)
	}
	p.Tokens = slices.Clip(p.Tokens[len(buffer):])
	return p
}

// match is how many tokens before two positions are the same.
func (x *Index) match(a, b int) (n int) {
	for n < min(a, longest) && x.text[a-1-n] == x.text[b-1-n] && x.text[a-1-n] != barrier {
		n++
	}
	return n
}
