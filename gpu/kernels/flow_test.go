package kernels

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What a wave of AMD's may have under way at each of its instructions, on any path through a
// kernel: memory answers when it likes, and only the waits that the compiler writes keep an
// instruction from what has not come yet. The counters are those of the ISA's documents, what
// blocks owe each other is from LLVM's "User Guide for AMDGPU Backend", memory models of gfx90a,
// gfx942, gfx11 and gfx12.
//
// What must stay true: whatever is not known for certain counts as under way, and an instruction
// that the reading does not know is an error, so that silence means that all was looked at.

// The kinds of memory operations. Those of one counter come back in their order, but for scalar
// loads, and what empties or writes back a cache is waited for by a wait for all.
const (
	loads uint8 = iota
	stores
	shared     // loads, stores and atomics of shared memory
	shuffles   // they count as shared memory and come back in its order, but leave it alone
	scalars    // scalar loads
	writeBacks // of a cache
	kinds
)

var kindNames = [kinds]string{"a load", "a store", "an operation of shared memory", "a shuffle",
	"a scalar load", "writing back a cache"}

// span is registers of one file: vector ones from 0, accumulators from 1000, scalar from 2000.
type span struct{ from, to int }

// none touches nothing.
var none = span{-1, -2}

func (a span) meets(b span) bool { return a.from <= b.to && b.from <= a.to }

// wait is for a counter to fall to n.
type wait struct {
	counter uint8
	n       uint8
}

// step is an instruction.
type step struct {
	text    string
	op      string
	address uint64
	code    uint32 // its first word
	touches []span // first what it writes
	kind    uint8  // of a memory operation, kinds of anything else
	counter uint8
	brings  span // registers that a load writes
	device  bool // an atomic operation, load or store for other blocks
	atomic  bool
	asks    bool // what others have written: a count, or a load that is repeated until it is right
	waits   []wait
	barrier bool
	// what it throws out of the caches: all that a fence of the device must, or one of two
	throws   uint8
	branches bool
	target   int  // of a branch, else -1
	jumps    bool // a branch that never goes on
	ends     bool
}

// Other facts about a path.
const (
	told      uint8 = 1 << iota // this wave asked what other blocks have written
	staleFar                    // its block knows since a barrier, caches have older data
	staleNear                   // the same of RDNA's first cache, that a second instruction empties
	kept                        // a store is in the cache of its chiplet
	unsaid                      // a store was under way, or kept, at the last barrier
)

// moment is what may be so at an instruction.
type moment struct {
	facts   uint8
	pending []operation // by step
}

// operation is under way, with so many of its counter's behind it, at least.
type operation struct {
	at  int32
	age uint8
}

// join adds what another path says; true if it is new.
func (m *moment) join(other moment) bool {
	changed := m.facts|other.facts != m.facts
	m.facts |= other.facts
	i := 0
	for _, o := range other.pending {
		for i < len(m.pending) && m.pending[i].at < o.at {
			i++
		}
		if i == len(m.pending) || m.pending[i].at != o.at {
			m.pending, changed = slices.Insert(m.pending, i, o), true
		} else if o.age < m.pending[i].age {
			m.pending[i].age, changed = o.age, true
		}
	}
	return changed
}

func (m moment) clone() moment { return moment{m.facts, slices.Clone(m.pending)} }

// flow is a kernel, with what may be so where its blocks of instructions begin.
type flow struct {
	steps  []step
	starts []int // first steps of blocks, and the end
	block  []int // by step
	before []*moment
	// writesBack: stores stay in the cache of a chiplet until that is written back
	writesBack bool
}

// fault is what an instruction must not meet.
type fault struct {
	at   int
	what string
	from int // the operation that is under way, -1 of a fact
}

// removed is a wait that a mutation leaves out, for one counter; at -1: none.
type removed struct {
	at      int
	counter uint8
}

// pass takes what may be so through one step.
func (f *flow) pass(m *moment, i int, without removed, found func(fault)) {
	s := &f.steps[i]
	for _, w := range s.waits {
		if without.at == i && without.counter == w.counter {
			continue
		}
		m.pending = slices.DeleteFunc(m.pending, func(o operation) bool {
			p := &f.steps[o.at]
			switch {
			case p.counter != w.counter:
				return false
			case p.kind == loads || p.kind == stores || p.kind == shared || p.kind == shuffles:
				return o.age >= w.n
			}
			return w.n == 0
		})
	}
	late := m.facts&kept != 0
	for _, o := range m.pending {
		p := &f.steps[o.at]
		if wrong := against(s, p); wrong != "" {
			found(fault{i, wrong, int(o.at)})
		}
		late = late || p.kind == stores || p.kind == writeBacks
	}
	tells := s.device && (s.atomic || s.kind == stores)
	if tells && m.facts&unsaid != 0 {
		found(fault{i, "a store was not there yet at the barrier before", -1})
	}
	if tells && m.facts&kept != 0 {
		found(fault{i, "a store may be in a cache that was not written back", -1})
	}
	if s.kind == loads && !s.device && m.facts&(staleFar|staleNear) != 0 {
		found(fault{i, "what is read may be in a cache that was not emptied", -1})
	}
	m.facts &^= s.throws
	switch {
	case s.barrier:
		if m.facts &^= unsaid; late {
			m.facts |= unsaid
		}
		if m.facts&told != 0 {
			m.facts = m.facts&^told | staleFar | staleNear
		}
	case s.kind == writeBacks:
		m.facts &^= kept
	case s.asks:
		m.facts |= told
	case s.kind == stores && !s.device && f.writesBack:
		m.facts |= kept
	}
	if s.kind == kinds {
		return
	}
	at, twice := slices.BinarySearchFunc(m.pending, int32(i), func(o operation, at int32) int {
		return int(o.at - at)
	})
	if !twice {
		m.pending = slices.Insert(m.pending, at, operation{at: int32(i)})
	}
	for j, o := range m.pending {
		if p := &f.steps[o.at]; s.kind < scalars && p.counter == s.counter && o.age < 64 {
			m.pending[j].age++
		}
	}
	m.pending[at].age = 0
}

// against is the fault of a step while an operation is under way.
func against(s, p *step) string {
	for n, t := range s.touches {
		// Loads of one counter come back in their order: the later one may overwrite the earlier.
		inOrder := n == 0 && t == s.brings && s.counter == p.counter &&
			max(s.kind, p.kind) < scalars
		if t.meets(p.brings) && !inOrder {
			return "a register is touched before it was loaded"
		}
	}
	switch {
	case s.barrier && p.kind == shared:
		return "shared memory is not waited for at a barrier"
	case s.device && (s.atomic || s.kind == stores) && (p.kind == stores || p.kind == writeBacks):
		return "a store is not waited for before other blocks are told"
	case s.throws&staleFar != 0 && (p.kind == stores || p.kind == writeBacks || p.kind == loads):
		return "memory is not waited for in a fence"
	}
	return ""
}

// solve follows all paths from where block `from` begins until nothing new is learnt, or found
// says that it is enough.
func (f *flow) solve(before []*moment, from int, without removed, found func(fault) bool) {
	work := []int{from}
	for len(work) > 0 {
		low := 0 // the first of them in the kernel's order
		for i := range work {
			if work[i] < work[low] {
				low = i
			}
		}
		b := work[low]
		work = slices.Delete(work, low, low+1)
		m, enough := before[b].clone(), false
		for i := f.starts[b]; i < f.starts[b+1]; i++ {
			f.pass(&m, i, without, func(w fault) { enough = found(w) || enough })
		}
		if enough {
			return
		}
		for _, n := range f.next(b) {
			var all moment
			if before[n] != nil {
				all = before[n].clone()
			}
			if all.join(m) || before[n] == nil {
				before[n] = &all
				if !slices.Contains(work, n) {
					work = append(work, n)
				}
			}
		}
	}
}

// next are the blocks that may follow one.
func (f *flow) next(b int) (all []int) {
	last := &f.steps[f.starts[b+1]-1]
	if last.target >= 0 {
		all = append(all, f.block[last.target])
	}
	if !last.ends && !last.jumps && f.starts[b+1] < len(f.steps) {
		all = append(all, b+1)
	}
	return all
}

// faults of a kernel, each once. What may be so at its blocks is kept for mutations.
func (f *flow) faults() []fault {
	all := map[fault]bool{}
	f.before = make([]*moment, len(f.starts)-1)
	f.before[0] = &moment{}
	f.solve(f.before, 0, removed{at: -1}, func(w fault) bool { all[w] = true; return false })
	return slices.SortedFunc(maps.Keys(all), func(a, b fault) int {
		return (a.at-b.at)*1000000 + a.from - b.from
	})
}

// notices whether anything is wrong without a wait. Without it more may be so and nothing less, so
// the paths begin at its block with the known facts.
func (f *flow) notices(without removed) (noticed bool) {
	f.solve(slices.Clone(f.before), f.block[without.at], without, func(fault) bool {
		noticed = true
		return true
	})
	return noticed
}

// unread is an instruction that no path comes to, "" where there is none but what fills up.
func (f *flow) unread() string {
	for b, m := range f.before {
		for _, s := range f.steps[f.starts[b]:f.starts[b+1]] {
			if m == nil && s.op != "s_code_end" && s.op != "s_nop" {
				return s.text
			}
		}
	}
	return ""
}

func (f *flow) String(w fault) string {
	text := fmt.Sprintf("%d: %s: %s", w.at, f.steps[w.at].text, w.what)
	if w.from >= 0 {
		text += fmt.Sprintf(" (%s under way: %d: %s)", kindNames[f.steps[w.from].kind], w.from,
			f.steps[w.from].text)
	}
	return strings.TrimSpace(text)
}
