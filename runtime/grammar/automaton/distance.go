// The distance of a stack from its end, in approximately bytes: a path of falling distance leads
// out of any text, under any constraint.
//
// What must stay true: from every state some byte leads closer to the end, or begins a character of
// a string that is still too short.

package automaton

// perByte is the weight of a byte of a string: the length of its longest escape, so that an escape
// that was begun is closer to the end.
const perByte = 6

// farthest bounds every distance.
const farthest = 1 << 24

// distances caches the distances of a machine's parts.
type distances struct {
	nodes  []int32 // the minimum bytes of a value
	steps  map[*DFA][]int32
	frames []int32 // from a frame to the end, plus one; 0: unknown
}

// stepsOf returns the minimum of bytes from each state of an automaton to an end.
func (m *machine) stepsOf(d *DFA) []int32 {
	steps, ok := m.far.steps[d]
	if !ok {
		steps = d.distances(d.accept, d.back(nil))
		m.far.steps[d] = steps
	}
	return steps
}

// nodeSizes computes the minimum of bytes of each node by fixpoint iteration.
func (m *machine) nodeSizes() {
	m.far = distances{steps: map[*DFA][]int32{}, nodes: make([]int32, len(m.nodes))}
	for i := range m.far.nodes {
		m.far.nodes[i] = farthest
	}
	for changed := true; changed; {
		changed = false
		for i, ways := range m.nodes {
			for _, w := range ways {
				if n := m.own(frame{kind: w.kind, of: w.of}); n < m.far.nodes[i] {
					m.far.nodes[i], changed = n, true
				}
			}
		}
	}
}

// frameSize is the distance to the end of a frame, without the frames below it.
func (m *machine) own(f frame) (n int32) {
	switch f.kind {
	case readLiteral:
		return int32(len(m.literals[f.of])) - f.a
	case readDFA:
		return m.stepsOf(m.numbers[f.of])[f.a]
	case readString:
		return m.ownString(f)
	case planValue:
		return m.far.nodes[f.of]
	case planSequence:
		for _, s := range m.sequences[f.of][f.a:] {
			n = min(n+m.own(frame{kind: s.kind, of: s.of}), farthest)
		}
	case planItems:
		a := m.arrays[f.of]
		n = 2
		for i := int(f.a); i < a.Min; i++ {
			item := a.Items
			if i < len(a.Prefix) {
				item = a.Prefix[i]
			}
			n = min(n+1+m.far.nodes[item], farthest)
		}
		for need, i := a.Least-int(f.b), int(f.a); need > 0; i++ {
			found := a.Found[min(i, len(a.Prefix))]
			if found >= 0 {
				n, need = min(n+1+m.far.nodes[found], farthest), need-1
			} else if i >= len(a.Prefix) {
				break
			}
		}
	case planMembers:
		o := m.objects[f.of]
		n = 2
		cheapest, must := int32(farthest), 0
		for _, p := range o.Properties[f.a:] {
			size := int32(len(p.Name)) + 4 + m.far.nodes[p.Value]
			if p.Required {
				must++
				n = min(n+size, farthest)
			} else {
				cheapest = min(cheapest, size)
			}
		}
		for _, x := range o.Extra {
			cheapest = min(cheapest, 4+m.far.nodes[x.Value]+
				m.ownString(frame{kind: readString, of: x.text}))
		}
		for range o.Min - int(f.b>>1) - must {
			n = min(n+cheapest, farthest)
		}
	}
	return n
}

func (m *machine) ownString(f frame) int32 {
	s := m.strings[f.of]
	steps := m.stepsOf(s.DFA())
	from := func(state, count int32) int32 {
		return perByte*max(min(steps[state], farthest/perByte), int32(s.Min)-count) + 1
	}
	if f.b&15 == escNone {
		return from(f.a, f.b>>4)
	}
	n, begun := int32(farthest), escapeStarts[f.b&15]
	for _, e := range escapes {
		to := s.DFA().step(f.a, e.char)
		if to >= 0 && len(e.text) > len(begun) && e.text[:len(begun)] == begun {
			n = min(n, int32(len(e.text)-len(begun))+from(to, f.b>>4+1))
		}
	}
	return n
}

// distance is a stack's distance from its end.
func (m *machine) distance(id int32) int32 {
	if id == ended {
		return 0
	}
	if m.far.nodes == nil {
		m.nodeSizes()
	}
	if missing := len(m.frames) - len(m.far.frames); missing > 0 {
		m.far.frames = append(m.far.frames, make([]int32, missing)...)
	}
	if known := m.far.frames[id]; known > 0 {
		return known - 1
	}
	f := m.frames[id]
	n := int32(farthest)
	if f.kind == planUnion {
		for _, open := range m.unions[f.of] {
			n = min(n, m.distance(open))
		}
	} else {
		n = min(m.own(f)+m.distance(f.parent), farthest)
	}
	m.far.frames[id] = n + 1
	return n
}

// nearest is the smallest distance of a state's stacks.
func (c *Grammar) nearest(state int32) int32 {
	n := int32(farthest)
	for _, id := range c.states[state].open {
		n = min(n, c.m.distance(id))
	}
	return n
}

// maxShortest bounds the text to an end, in bytes.
const mostLeft = 1 << 14

// Shortest is a short text that ends the body: empty if it may end here, or after a disallowed
// token.
func (m *Matcher) Shortest() (text []byte) {
	c := m.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.find(); m.at < 0 {
		return nil
	}
	for at := (place{m.at, m.text}); !c.states[at.at].done && len(text) < mostLeft; {
		best, least := place{at: dead}, int32(farthest+1)
		var next byte
		for b := range 256 {
			to := c.step(at.at, byte(b))
			if to < 0 || to == best.at || c.nearest(to) >= least {
				continue
			}
			p, left := place{at: to}, mostSought
			if c.m.unique {
				if p = c.advance(at, byte(b)); !c.leadsOn(p, &left) {
					continue
				}
			}
			best, least, next = p, c.nearest(to), byte(b)
		}
		if best.at < 0 {
			break
		}
		at, text = best, append(text, next)
	}
	return text
}
