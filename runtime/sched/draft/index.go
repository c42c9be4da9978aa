// Package draft guesses the next tokens of a text from what the text has said before, and says when
// trying a guess pays. A guess costs time at most: who uses it checks every token of it.
//
// This file finds the guesses: the place where the text's end has stood before, the longest match
// of a few candidates, by hash chains as in LZ77.
//
// What must stay true:
//   - A token is added in constant time, and a proposal takes a bounded time, however the text
//     repeats itself.
//   - Memory grows with the text only: 20 bytes a token.
package draft

import "slices"

const (
	gram       = 3  // tokens that must have stood before for a place to be looked at
	candidates = 16 // places that are looked at, the latest first
	longest    = 64 // tokens that two places are compared by
)

// barrier stands between two texts. No token equals it.
const barrier = -1

// Index is a text that grows, and behind which places its tokens stand. It belongs to one sequence
// and one goroutine.
type Index struct {
	text []int32
	// by the hash of gram tokens: the latest place that follows them, 0 for none; the length is a
	// power of two
	head []int32
	prev []int32 // by place: the one before with the same hash
	// text[:predicted] is what the caller expects the answer to be
	predicted int
	grew      int // of text: what head and prev know
}

// Proposal is a guess.
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

// Add appends what the text has more of than len tokens.
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
	// the end itself is not a place yet: nothing follows it
	for at := max(gram, x.grew); at < len(x.text); at++ {
		h := x.hash(at)
		x.prev[at], x.head[h] = x.head[h], int32(at)
	}
	x.grew = max(x.grew, len(x.text))
}

// hash is that of the tokens before a place.
func (x *Index) hash(at int) uint32 {
	t := x.text[at-gram : at]
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
	at := int(x.head[x.hash(n)])
	for range candidates {
		if at == 0 {
			break
		}
		if m := x.match(at, n); m >= gram && (m > p.Match || m == p.Match && at < x.predicted) {
			best, p.Match = at, m
		}
		at = int(x.prev[at])
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

// match is how many tokens before two places are the same.
func (x *Index) match(a, b int) (n int) {
	for n < min(a, longest) && x.text[a-1-n] == x.text[b-1-n] && x.text[a-1-n] != barrier {
		n++
	}
	return n
}
