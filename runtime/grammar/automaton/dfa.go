// Deterministic automata over bytes: text of a JSON string (its characters, not their escapes),
// numbers as written, and bodies restricted to a regular expression.
//
// What must stay true: automata are trimmed: every state leads to an accepting one, so any live
// state can be finished. Automata of text accept UTF-8 only.

package automaton

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sort"
	"sync"
	"unicode/utf8"
)

// DFA begins in state 0. Bytes that no state distinguishes share a class.
type DFA struct {
	class           [256]uint8
	representatives []byte // a byte of each class
	classes         int
	next            []int32 // [states x classes], -1 for dead
	accept          []bool
	marked          sync.Once // see markTotal
	total           []bool    // by state: it accepts any plain text of a token (see markTotal)
	safe            []uint8   // by state: how many bytes of any plain text it accepts
	free            []bool    // by state: it accepts any text and may end anywhere (see markTotal)
	shapes          *shapes   // of an automaton of text (see text.go)
	number          bool      // an automaton of numbers
	Work            int       // cost of making it, in visited nodes and edges
}

func (d *DFA) step(state int32, b byte) int32 {
	return d.next[int(state)*d.classes+int(d.class[b])]
}

// MaxStates bounds an automaton of one string or number.
const MaxStates = 1 << 14

// The reasons why an automaton cannot be made: its size, or that it would accept nothing.
var (
	ErrTooLarge = errors.New("it needs too large an automaton")
	ErrEmpty    = errors.New("nothing fulfils it")
)

// cuts collects the beginnings of byte classes.
type cuts [257]bool

// add makes from..to a range that classes do not cross.
func (c *cuts) add(from, to byte) { c[from], c[int(to)+1] = true, true }

// textCuts are the bounds of every automaton of text: those of UTF-8 and of plain text in JSON.
func textCuts() cuts {
	var c cuts
	c.add(0, 0x1f)
	c.add('"', '"')
	c.add('\\', '\\')
	for _, b := range []byte{0x80, 0x90, 0xa0, 0xc0, 0xc2, 0xe0, 0xe1, 0xed, 0xee, 0xf0, 0xf1, 0xf4,
		0xf5} {
		c[b] = true
	}
	return c
}

// classes numbers the ranges and picks a byte of each.
func (c *cuts) classes() (class [256]uint8, pick []byte) {
	for b := range 256 {
		if b == 0 || c[b] {
			pick = append(pick, byte(b))
		}
		class[b] = uint8(len(pick) - 1)
	}
	return class, pick
}

func newDFA(c cuts) *DFA {
	d := &DFA{}
	d.class, d.representatives = c.classes()
	d.classes = len(d.representatives)
	return d
}

// buildDFA explores the states from start and trims those that cannot accept. It only calls step
// with one byte of each class.
func buildDFA[S comparable](start S, c cuts, step func(S, byte) (S, bool),
	accept func(S) bool) (*DFA, error) {
	d := newDFA(c)
	ids := make(map[S]int32, 64)
	ids[start] = 0
	states := []S{start}
	last := int32(0) // target of the last edge, mostly also of the next one
	for i := 0; i < len(states); i++ {
		s := states[i]
		d.accept = append(d.accept, accept(s))
		if cap(d.next)-len(d.next) < d.classes {
			d.next = slices.Grow(d.next, len(d.next)+8*d.classes)
		}
		for _, b := range d.representatives {
			to, ok := step(s, b)
			if !ok {
				d.next = append(d.next, -1)
				continue
			}
			// or it has the target of the same byte's edge in the previous state
			if prev := len(d.next) - d.classes; to != states[last] && prev >= 0 &&
				d.next[prev] >= 0 && to == states[d.next[prev]] {
				last = d.next[prev]
			} else if to != states[last] {
				id, ok := ids[to]
				if !ok {
					if len(states) >= MaxStates {
						return nil, ErrTooLarge
					}
					id = int32(len(states))
					ids[to] = id
					states = append(states, to)
				}
				last = id
			}
			d.next = append(d.next, last)
		}
	}
	d.Work = len(d.next)
	if !d.trim() {
		return nil, ErrEmpty
	}
	return d, nil
}

// edges are the indices in next of an automaton's edges, by target state.
type edges struct{ first, index []int32 }

func (e *edges) to(state int32) []int32 { return e.index[e.first[state]:e.first[state+1]] }

// reverseEdges sorts the edges of the selected classes by target; nil: all.
func (d *DFA) reverseEdges(selected []bool) edges {
	e := edges{first: make([]int32, len(d.accept)+1)}
	class := 0
	visitEdges := func(visit func(i int, to int32)) {
		for i, to := range d.next {
			if to >= 0 && (selected == nil || selected[class]) {
				visit(i, to)
			}
			if class++; class == d.classes {
				class = 0
			}
		}
	}
	visitEdges(func(_ int, to int32) { e.first[to]++ })
	for state, sum := 0, int32(0); state < len(e.first); state++ {
		sum += e.first[state]
		e.first[state] = sum
	}
	e.index = make([]int32, e.first[len(d.accept)])
	visitEdges(func(i int, to int32) {
		e.first[to]--
		e.index[e.first[to]] = int32(i)
	})
	return e
}

// trim removes the edges to states that cannot accept; it reports whether the start can.
func (d *DFA) trim() bool {
	steps := d.distances(d.accept, d.reverseEdges(nil))
	for i, to := range d.next {
		if to >= 0 && steps[to] == noWay {
			d.next[i] = -1
		}
	}
	return steps[0] != noWay
}

// always exceeds the length of any token.
const always = longestToken + 1

const noWay = math.MaxInt32

// distances is the fewest steps over some edges from each state to a marked one, or noWay.
func (d *DFA) distances(marked []bool, back edges) []int32 {
	steps := make([]int32, len(marked))
	var queue []int32
	for state, m := range marked {
		if steps[state] = noWay; m {
			steps[state] = 0
			queue = append(queue, int32(state))
		}
	}
	for i := 0; i < len(queue); i++ {
		for _, edge := range back.to(queue[i]) {
			if from := edge / int32(d.classes); steps[from] == noWay {
				steps[from] = steps[queue[i]] + 1
				queue = append(queue, from)
			}
		}
	}
	return steps
}

// markTotal finds the states between characters from which every plain text leads to live states:
// masks need no walk there. It is only for a program's text automata; many are intermediate.
func (d *DFA) markTotal() { d.marked.Do(d.findTotal) }

func (d *DFA) findTotal() {
	pick := d.representatives
	phase := slices.Repeat([]int8{-1}, len(d.accept))
	phase[0] = 0
	order := []int32{0}
	for i := 0; i < len(order); i++ {
		s := order[i]
		for k, b := range pick {
			if to := d.next[int(s)*d.classes+k]; to >= 0 && phase[to] < 0 {
				u, _ := utf8Step(uint8(phase[s]), b)
				phase[to] = int8(u)
				order = append(order, to)
			}
		}
	}
	plain := make([]bool, len(pick))
	for k, b := range pick {
		plain[k] = b >= 0x20 && b != '"' && b != '\\'
	}
	// a state is bad if it has no edge for a byte of plain text
	bad := make([]bool, len(d.accept))
	for _, s := range order {
		for k, b := range pick {
			if plain[k] && d.next[int(s)*d.classes+k] < 0 {
				_, ok := utf8Step(uint8(phase[s]), b)
				bad[s] = bad[s] || ok
			}
		}
	}
	d.safe, d.total = make([]uint8, len(d.accept)), make([]bool, len(d.accept))
	for i, steps := range d.distances(bad, d.reverseEdges(plain)) {
		d.safe[i] = uint8(min(steps, always))
		d.total[i] = d.safe[i] == always && phase[i] == 0
	}
	d.shapes = newShapes(d, order, phase)
	d.free = make([]bool, len(d.accept))
	for i := range d.free {
		d.free[i] = d.total[i] && d.accept[i] && d.shapes.end[i] == int32(i)
		for k, b := range pick {
			d.free[i] = d.free[i] && (b >= utf8.RuneSelf || d.next[i*d.classes+k] == int32(i))
		}
	}
}

// utf8Next is the automaton of UTF-8: by state and byte the next state plus one, 0 for none.
// States: 0: between characters; 1..3: that many bytes missing; 4..7: after E0, ED, F0, F4.
var utf8Next = func() (next [8][256]uint8) {
	for u, ranges := range [8][]struct{ from, to, next uint8 }{
		{{0, 0x7f, 0}, {0xc2, 0xdf, 1}, {0xe0, 0xe0, 4}, {0xe1, 0xec, 2}, {0xed, 0xed, 5},
			{0xee, 0xef, 2}, {0xf0, 0xf0, 6}, {0xf1, 0xf3, 3}, {0xf4, 0xf4, 7}},
		{{0x80, 0xbf, 0}}, {{0x80, 0xbf, 1}}, {{0x80, 0xbf, 2}},
		{{0xa0, 0xbf, 1}}, {{0x80, 0x9f, 1}}, {{0x90, 0xbf, 2}}, {{0x80, 0x8f, 2}},
	} {
		for _, r := range ranges {
			for b := r.from; b <= r.to; b++ {
				next[u][b] = r.next + 1
			}
		}
	}
	return next
}()

func utf8Step(u uint8, b byte) (next uint8, ok bool) {
	n := utf8Next[u][b]
	return n - 1, n > 0
}

func (d *DFA) Accepts(s string) bool {
	state := int32(0)
	for i := range len(s) {
		if state = d.step(state, s[i]); state < 0 {
			return false
		}
	}
	return d.accept[state]
}

// Factor is one automaton of an intersection, or its complement.
type Factor struct {
	DFA *DFA
	Not bool
}

const MaxFactors = 6

// Intersect is the automaton of texts that all factors accept, with min to max characters (max < 0:
// no bound).
func Intersect(factors []Factor, min, max int) (*DFA, error) {
	type pair struct { // without padding, so that it is hashed at once
		states   [MaxFactors]int32
		u, count int32
	}
	c := textCuts()
	for _, f := range factors {
		for _, b := range f.DFA.representatives {
			c[b] = true
		}
	}
	most := int32(max)
	if max < 0 {
		most = int32(min)
	}
	return buildDFA(pair{}, c, func(p pair, b byte) (pair, bool) {
		first := p.u == 0
		u, ok := utf8Step(uint8(p.u), b)
		if !ok {
			return p, false
		}
		p.u = int32(u)
		if first {
			if p.count < most {
				p.count++
			} else if max >= 0 {
				return p, false
			}
		}
		for i, f := range factors {
			if p.states[i] >= 0 {
				p.states[i] = f.DFA.step(p.states[i], b)
			}
			if p.states[i] < 0 && !f.Not {
				return p, false
			}
		}
		return p, true
	}, func(p pair) bool {
		if p.u != 0 || int(p.count) < min {
			return false
		}
		for i, f := range factors {
			if (p.states[i] >= 0 && f.DFA.accept[p.states[i]]) == f.Not {
				return false
			}
		}
		return true
	})
}

// Count is the number of texts that the automaton accepts, up to most, or most if uncertain: it
// looks at few.
func (d *DFA) Count(most int) (n int) {
	type way struct {
		state int32
		texts int
	}
	var bytes [256]int // of each class
	for _, class := range d.class {
		bytes[class]++
	}
	from := []way{{0, 1}}
	for steps := 0; len(from) > 0 && n < most; steps++ {
		if steps > 1000 {
			return most
		}
		w := from[0]
		if from = from[1:]; d.accept[w.state] {
			n += w.texts
		}
		for class := range d.classes {
			if to := d.next[int(w.state)*d.classes+class]; to >= 0 {
				from = append(from, way{to, min(w.texts*bytes[class], most)})
			}
		}
	}
	return min(n, most)
}

// OtherThan is the automaton of all texts except names. It has a state for each prefix of a name
// and, for all other texts, one for each position in a character.
func OtherThan(names []string) (*DFA, error) {
	c := textCuts()
	for _, name := range names {
		for i := range len(name) {
			c.add(name[i], name[i])
		}
	}
	names = slices.Sorted(slices.Values(names))
	type prefix struct { // without padding, so that it is hashed at once
		from, to int32 // the names with this prefix; none: to is 0
		length   int32
		u        int32
	}
	return buildDFA(prefix{to: int32(len(names))}, c, func(p prefix, b byte) (prefix, bool) {
		u, ok := utf8Step(uint8(p.u), b)
		firstFrom := func(b int) int32 { // the first name that continues with b or more
			return p.from + int32(sort.Search(int(p.to-p.from), func(i int) bool {
				name := names[p.from+int32(i)]
				return len(name) > int(p.length) && int(name[p.length]) >= b
			}))
		}
		next := prefix{firstFrom(int(b)), firstFrom(int(b) + 1), p.length + 1, int32(u)}
		if next.from == next.to {
			next = prefix{u: int32(u)}
		}
		return next, ok
	}, func(p prefix) bool {
		return p.u == 0 && (p.to == 0 || len(names[p.from]) > int(p.length))
	})
}

var AnyText = sync.OnceValue(func() *DFA {
	d, err := Intersect(nil, 0, -1)
	if err != nil {
		panic("automaton: " + err.Error()) // it has no inputs
	}
	return d
})

func setKey(set []int32) string {
	key := make([]byte, 0, 4*len(set))
	for _, n := range set {
		key = binary.LittleEndian.AppendUint32(key, uint32(n))
	}
	return string(key)
}

func appendSet(out []int32, key string) []int32 {
	for i := 0; i < len(key); i += 4 {
		out = append(out, int32(binary.LittleEndian.Uint32([]byte(key[i:i+4]))))
	}
	return out
}
