// Regions of an automaton of text: states with the same shape, among which text can continue
// without changing what may follow.
//
// What must stay true: the states of a region have one shape, and the bytes that leave the region
// and the number of characters after which it may be full are known. Only plain text is considered.

package automaton

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

const (
	maxRegion  = 64 // states of a region
	maxStaying = 8  // states of a region in which texts of any length stay
	maxDeep    = 24 // characters for which a region is followed; few tokens have more
	maxWide    = 8  // states of a region that characters beyond ASCII leave
	// ASCII characters that a state accepts: with fewer, a walk skips most of the trie at once
	minAccepted = 24
)

// shapes describes the states of an automaton by plain text: states with equal shapes accept the
// same characters. Inside a character a shape lists, for a byte of each class, the byte's target
// shape, or that the character is complete. Shapes are computed with the automaton, so that no mask
// waits for them.
type shapes struct {
	d       *DFA
	ascii   []byte  // a byte of each class of plain ASCII
	beyond  []byte  // a byte of each class beyond ASCII
	byState []int32 // by state; 0: unknown
	// by state: the target of all characters beyond ASCII that are read from here; -1: none, or
	// several
	end      []int32
	ids      map[string]int32 // during the computation
	complete []bool           // by shape: every character beyond ASCII is accepted
	narrow   []bool           // by shape: no character beyond ASCII is accepted
}

const (
	noShape    int32 = iota + 1 // no plain text can follow
	wholeShape                  // the character is complete
	firstShape
)

// newShapes computes the shapes of the states that text leads to; place is each state's position in
// a character.
func newShapes(d *DFA, states []int32, place []int8) *shapes {
	s := &shapes{d: d, byState: make([]int32, len(d.accept)), end: make([]int32, len(d.accept)),
		ids: map[string]int32{}}
	s.complete, s.narrow = []bool{noShape: false, wholeShape: true}, []bool{noShape: true,
		wholeShape: false}
	for _, b := range d.representatives {
		switch {
		case b >= utf8.RuneSelf:
			s.beyond = append(s.beyond, b)
		case isPlain[b]:
			s.ascii = append(s.ascii, b)
		}
	}
	for _, state := range states {
		s.shape(state, uint8(place[state]))
	}
	s.ids = nil // every state that text leads to has its shape
	return s
}

// shape is the shape of a state at position u of a character (see utf8Step).
func (s *shapes) shape(state int32, u uint8) int32 {
	if state < 0 {
		return noShape
	}
	if s.byState[state] != 0 {
		return s.byState[state]
	}
	var room [128]byte
	key := room[:0]
	end, ends := int32(-1), 0
	nonEmpty, complete, narrow := false, true, true
	if u == 0 {
		key = append(key, "text"...) // differs from all shape numbers
		for _, b := range s.ascii {
			bit := byte(0)
			if s.d.step(state, b) >= 0 {
				nonEmpty, bit = true, 1
			}
			key = append(key, bit)
		}
	}
	for _, b := range s.beyond {
		next, ok := utf8Step(u, b)
		if !ok {
			continue
		}
		to := s.d.step(state, b)
		shape := wholeShape
		if to < 0 || next != 0 {
			if shape = s.shape(to, next); to >= 0 {
				to = s.end[to]
			}
		}
		if shape != noShape && (ends == 0 || to != end) {
			end = to
			ends++
		}
		complete, narrow = complete && s.complete[shape], narrow && shape == noShape
		key = binary.LittleEndian.AppendUint32(key, uint32(shape))
	}
	shape := noShape
	if nonEmpty || !narrow {
		var ok bool
		if shape, ok = s.ids[string(key)]; !ok {
			shape = int32(len(s.complete))
			s.ids[string(key)] = shape
			s.complete, s.narrow = append(s.complete, complete), append(s.narrow, narrow)
		}
	}
	if s.byState[state], s.end[state] = shape, end; ends != 1 {
		s.end[state] = -1
	}
	return shape
}

// textKinds is the kinds of bytes (trie.go) of which every byte of plain text is accepted: a
// character of ASCII, or the first byte of another, after which a character is at position u.
func textKinds(takes func(b, u uint8) bool) (kinds uint64) {
	for kind, bounds := range kindRanges {
		all := true
		for b := int(bounds[0]); b <= int(bounds[1]) && all; b++ {
			if u, ok := utf8Step(0, byte(b)); ok {
				all = (b >= utf8.RuneSelf || isPlain[b]) && takes(byte(b), u)
			}
		}
		if all {
			kinds |= 1 << kind
		}
	}
	return kinds
}

// loops is the kinds of bytes of which any text leads back to a state.
func (s *shapes) loops(state int32) uint64 {
	looping := false // a state inside a character has no loops
	kinds := textKinds(func(b, u uint8) bool {
		to := s.d.step(state, b)
		loop := to == state
		if u != 0 {
			loop = to >= 0 && s.end[to] == state && s.complete[s.shape(to, u)]
		}
		looping = looping || loop
		return loop
	})
	if !looping {
		return 0
	}
	return kinds
}

// region is the states that plain text reaches from a state through states of the same shape.
type region struct {
	*shapes
	states []int32
	inside []bool // of all states
	exits  []bool // by class: characters of ASCII that leave the region from some state
	wide   bool   // some characters beyond ASCII leave
	// after room characters the text may be full: plain text cannot follow; -1: never. exact: it is
	// full after exactly as many.
	room  int
	exact bool
	seen  []bool // visited states inside a character
}

// regionOf computes the region of a state; false if it has more than most states or accepts too few
// characters to be useful. It looks at most maxDeep characters ahead.
func regionOf(s *shapes, from int32, most int) (*region, bool) {
	n := len(s.d.accept)
	r := &region{shapes: s, states: []int32{from}, inside: make([]bool, n), exits: make([]bool,
		s.d.classes), room: -1, exact: true, seen: make([]bool, n)}
	accepted, exits := 0, 0
	for b, plain := range isPlain {
		to := s.d.step(from, byte(b))
		if !plain || to < 0 {
			continue
		}
		accepted++
		if shape := s.shape(to, 0); shape != noShape && shape != s.shape(from, 0) {
			exits++
		}
	}
	if accepted < minAccepted || 2*exits > accepted { // no gain if most characters lead elsewhere
		return nil, false
	}
	r.inside[from] = true
	begin := 0
	for depth := 0; begin < len(r.states); depth++ {
		end := len(r.states)
		full := false
		for i := begin; i < end; i++ {
			for _, b := range s.ascii {
				if to := s.d.step(r.states[i], b); to >= 0 && !r.enter(to, end, &full) {
					r.exits[s.d.class[b]] = true
				}
			}
			r.lookBeyond(r.states[i], 0, end, &full)
		}
		switch {
		case full:
			r.room = depth + 1
			r.exact = r.exact && len(r.states) == end
			r.states = r.states[:end]
			return r, true
		case len(r.states) > most:
			return nil, false
		case depth+1 == maxDeep && len(r.states) > end:
			r.room, r.exact = maxDeep, false
			return r, true
		}
		begin = end
	}
	return r, true
}

// enter adds a state to the region; false if it does not belong there. A state that no plain text
// can follow sets full and is not added. The states from index deeper on have this depth.
func (r *region) enter(state int32, deeper int, full *bool) bool {
	if r.inside[state] {
		r.exact = r.exact && slices.Contains(r.states[deeper:], state)
		return true
	}
	switch r.shape(state, 0) {
	case noShape:
		*full = true
		return true
	case r.shape(r.states[0], 0):
		r.inside[state] = true
		r.states = append(r.states, state)
		return true
	}
	return false
}

// lookBeyond enters the targets of characters beyond ASCII.
func (r *region) lookBeyond(from int32, u uint8, deeper int, full *bool) {
	for _, b := range r.beyond {
		next, ok := utf8Step(u, b)
		to := r.d.step(from, b)
		switch {
		case !ok || to < 0:
		case next == 0:
			r.wide = !r.enter(to, deeper, full) || r.wide
		case r.seen[to]:
		case r.end[to] >= 0:
			r.seen[to] = true
			r.wide = !r.enter(r.end[to], deeper, full) || r.wide
		default:
			r.seen[to] = true
			r.lookBeyond(to, next, deeper, full)
		}
	}
}

// freeKinds is the kinds of bytes of which texts of any length stay in the region; 0 with a bound.
func (r *region) freeKinds() uint64 {
	if r.room >= 0 {
		return 0
	}
	return textKinds(func(b, u uint8) bool {
		to := r.d.step(r.states[0], b)
		if u != 0 {
			return !r.wide && r.complete[r.shape(to, u)]
		}
		return to >= 0 && !r.exits[r.d.class[b]]
	})
}
