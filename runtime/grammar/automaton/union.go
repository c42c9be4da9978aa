// Stacks that differ only below their top frame are merged into one stack over a union of the rest.
//
// Otherwise nested alternatives that only differ at their end would be open in all combinations,
// twice as many at each level.
//
// What must stay true: a union accepts what any of its stacks accepts. All stacks of a union have
// the same depth, so they reach the limit of depth together.

package automaton

import (
	"cmp"
	"slices"
)

// alike reports whether frames are equal except for the frames below them.
func (m *machine) alike(x, y int32) bool {
	return x != emptyStack && y != emptyStack && m.compare(x, y) == 0
}

// compare orders frames, ignoring the frames below them.
func (m *machine) compare(x, y int32) int {
	f, g := &m.frames[x], &m.frames[y]
	return cmp.Or(cmp.Compare(f.kind, g.kind), cmp.Compare(f.ref, g.ref), cmp.Compare(f.a, g.a),
		cmp.Compare(f.b, g.b), cmp.Compare(m.depth[x], m.depth[y]))
}

// union sorts simultaneous stacks and merges those that only differ below the top. It modifies its
// argument. The empty stack is first.
func (m *machine) union(open []int32) []int32 {
	for i := 0; i < len(open); i++ {
		if f := &m.frames[open[i]]; f.kind == planUnion {
			open = append(slices.Delete(open, i, i+1), m.unions[f.ref]...)
			i--
		}
	}
	slices.Sort(open)
	open = slices.Compact(open)
	if len(open) < 2 {
		return open
	}
	byFrame := slices.Clone(open)
	slices.SortFunc(byFrame, m.compare)
	merged := false
	for i := 0; i < len(byFrame); {
		from := i
		for i++; i < len(byFrame) && m.alike(byFrame[from], byFrame[i]); i++ {
		}
		if i-from > 1 {
			if !merged {
				merged, open = true, append(open[:0], byFrame[:from]...)
			}
			open = append(open, m.mergeStacks(byFrame[from:i]))
		} else if merged {
			open = append(open, byFrame[from])
		}
	}
	if merged {
		slices.Sort(open)
	}
	return open
}

// mergeStacks makes one stack of several that only differ below the top.
func (m *machine) mergeStacks(stacks []int32) int32 {
	below := make([]int32, len(stacks))
	for i, id := range stacks {
		below[i] = m.frames[id].parent
	}
	f := m.frames[stacks[0]]
	return m.push(f.kind, f.ref, f.a, f.b, m.under(m.union(below)))
}

// under is one stack for several, which union has merged already.
func (m *machine) under(open []int32) int32 {
	if len(open) == 1 {
		return open[0]
	}
	key := setKey(open)
	ref, ok := m.unionOf[key]
	if !ok {
		ref = int32(len(m.unions))
		m.unionOf[key] = ref
		m.unions = append(m.unions, open)
	}
	return m.push(planUnion, ref, 0, 0, open[len(open)-1])
}
