// The distance of a stack from its end, in approximately bytes: a path of falling distance leads
// out of any text, under any constraint.
//
// What must stay true: from every state some byte leads closer to the end, or begins a character of
// a string that is still too short.

package automaton

// perByte is the weight of a byte of a string: the length of its longest escape, so that an escape
// that was begun is closer to the end.
const perByte = 6

// maxDistance bounds every distance.
const maxDistance = 1 << 24

// distances caches the distances of a machine's parts.
type distances struct {
	nodes  []int32 // the minimum bytes of a value
	steps  map[*DFA][]int32
	frames []int32 // from a frame to the end, plus one; 0: unknown
}

// stepsOf returns the minimum of bytes from each state of an automaton to an end.
func (m *machine) stepsOf(d *DFA) []int32 {
	steps, ok := m.distances.steps[d]
	if !ok {
		steps = d.distances(d.accept, d.reverseEdges(nil))
		m.distances.steps[d] = steps
	}
	return steps
}

// nodeSizes computes the minimum of bytes of each node by fixpoint iteration.
func (m *machine) nodeSizes() {
	m.distances = distances{steps: map[*DFA][]int32{}, nodes: make([]int32, len(m.nodes))}
	for i := range m.distances.nodes {
		m.distances.nodes[i] = maxDistance
	}
	for changed := true; changed; {
		changed = false
		for i, ways := range m.nodes {
			for _, w := range ways {
				if n := m.frameSize(frame{kind: w.kind, ref: w.ref}); n < m.distances.nodes[i] {
					m.distances.nodes[i], changed = n, true
				}
			}
		}
	}
}

// frameSize is the distance to the end of a frame, without the frames below it.
func (m *machine) frameSize(f frame) (n int32) {
	switch f.kind {
	case readLiteral:
		return int32(len(m.literals[f.ref])) - f.a
	case readDFA:
		return m.stepsOf(m.numbers[f.ref])[f.a]
	case readString:
		return m.stringSize(f)
	case planValue:
		return m.distances.nodes[f.ref]
	case planSequence:
		for _, s := range m.sequences[f.ref][f.a:] {
			n = min(n+m.frameSize(frame{kind: s.kind, ref: s.ref}), maxDistance)
		}
	case planItems:
		a := m.arrays[f.ref]
		n = 2
		for i := int(f.a); i < a.Min; i++ {
			item := a.Items
			if i < len(a.Prefix) {
				item = a.Prefix[i]
			}
			n = min(n+1+m.distances.nodes[item], maxDistance)
		}
		for need, i := a.Least-int(f.b), int(f.a); need > 0; i++ {
			node := a.Matches[min(i, len(a.Prefix))]
			if node >= 0 {
				n, need = min(n+1+m.distances.nodes[node], maxDistance), need-1
			} else if i >= len(a.Prefix) {
				break
			}
		}
	case planMembers:
		o := m.objects[f.ref]
		n = 2
		cheapest, must := int32(maxDistance), 0
		for _, p := range o.Properties[f.a:] {
			size := int32(len(p.Name)) + 4 + m.distances.nodes[p.Value]
			if p.Required {
				must++
				n = min(n+size, maxDistance)
			} else {
				cheapest = min(cheapest, size)
			}
		}
		for _, x := range o.Extra {
			cheapest = min(cheapest, 4+m.distances.nodes[x.Value]+
				m.stringSize(frame{kind: readString, ref: x.text}))
		}
		for range o.Min - int(f.b>>1) - must {
			n = min(n+cheapest, maxDistance)
		}
	}
	return n
}

func (m *machine) stringSize(f frame) int32 {
	s := m.strings[f.ref]
	steps := m.stepsOf(s.DFA())
	from := func(state, count int32) int32 {
		return perByte*max(min(steps[state], maxDistance/perByte), int32(s.Min)-count) + 1
	}
	if f.b&15 == escNone {
		return from(f.a, f.b>>4)
	}
	n, prefix := int32(maxDistance), escapeStarts[f.b&15]
	for _, e := range escapes {
		to := s.DFA().step(f.a, e.char)
		if to >= 0 && len(e.text) > len(prefix) && e.text[:len(prefix)] == prefix {
			n = min(n, int32(len(e.text)-len(prefix))+from(to, f.b>>4+1))
		}
	}
	return n
}

func (m *machine) distance(id int32) int32 {
	if id == emptyStack {
		return 0
	}
	if m.distances.nodes == nil {
		m.nodeSizes()
	}
	if missing := len(m.frames) - len(m.distances.frames); missing > 0 {
		m.distances.frames = append(m.distances.frames, make([]int32, missing)...)
	}
	if cached := m.distances.frames[id]; cached > 0 {
		return cached - 1
	}
	f := m.frames[id]
	n := int32(maxDistance)
	if f.kind == planUnion {
		for _, open := range m.unions[f.ref] {
			n = min(n, m.distance(open))
		}
	} else {
		n = min(m.frameSize(f)+m.distance(f.parent), maxDistance)
	}
	m.distances.frames[id] = n + 1
	return n
}

// nearest is the smallest distance of a state's stacks.
func (c *Grammar) nearest(state int32) int32 {
	n := int32(maxDistance)
	for _, id := range c.states[state].open {
		n = min(n, c.m.distance(id))
	}
	return n
}

// maxShortest bounds the text to an end, in bytes.
const maxShortest = 1 << 14

// Shortest is a short text that ends the body: empty if it may end here, or after a disallowed
// token.
func (m *Matcher) Shortest() (text []byte) {
	c := m.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.lookUp(); m.state < 0 {
		return nil
	}
	for pos := (place{m.state, m.text}); !c.states[pos.state].done && len(text) < maxShortest; {
		best, least := place{state: dead}, int32(maxDistance+1)
		var next byte
		for b := range 256 {
			to := c.step(pos.state, byte(b))
			if to < 0 || to == best.state || c.nearest(to) >= least {
				continue
			}
			p, budget := place{state: to}, maxTries
			if c.m.unique {
				if p = c.advance(pos, byte(b)); !c.canContinue(p, &budget) {
					continue
				}
			}
			best, least, next = p, c.nearest(to), byte(b)
		}
		if best.state < 0 {
			break
		}
		pos, text = best, append(text, next)
	}
	return text
}
