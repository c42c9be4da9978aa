// The compiler: it finds the nodes of a schema and which of them can be satisfied, and makes the
// program.
//
// A node is a set of schemas that all must hold. Equal sets are one node, so recursion ends. What
// must stay true: the program only refers to nodes that a finite value satisfies.

package schema

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

type compiler struct {
	*reader
	ctx      context.Context // of the request
	polls    int
	program  *automaton.Program
	nodes    []*node
	nodeOf   map[string]int32
	key      []byte                             // see node
	overlaps map[*schema][]overlap              // by schema with a oneOf
	current  *node                              // the node whose shapes are being found
	enums    map[*jsondoc.Value]map[string]bool // see members
	places   map[*schema]map[*schema]bool       // see findPlace

	// see logic.go
	negations     map[*schema]*negation
	exclusives    map[*schema][]*schema
	withoutOneOfs map[*schema]*schema
	*rounds

	anyString    *automaton.String // shared by every string without keywords
	variantCount int               // of all nodes
	work         int               // of all automata of text
}

func newCompiler(ctx context.Context, d *jsondoc.Value,
	relaxed map[*jsondoc.Value]map[string]bool, shared *rounds) *compiler {
	return &compiler{reader: newReader(d, relaxed), ctx: ctx, program: automaton.NewProgram(),
		nodeOf: map[string]int32{}, overlaps: map[*schema][]overlap{},
		enums:     map[*jsondoc.Value]map[string]bool{},
		anyString: &automaton.String{Make: automaton.AnyText, Max: -1},
		negations: map[*schema]*negation{}, exclusives: map[*schema][]*schema{},
		withoutOneOfs: map[*schema]*schema{}, rounds: shared}
}

// node is a set of schemas and the ways to satisfy all of them.
type node struct {
	all      []*schema
	shapes   []shape
	expanded bool      // the shapes have been found
	oneOf    []*schema // the schemas with a oneOf that the shapes depend on
	live     bool      // it can be satisfied
}

// overlap is a node that must be unsatisfiable: two alternatives of a oneOf at once.
type overlap struct {
	pair [2]int
	n    int32
}

// stage is the method that keeps two alternatives of a oneOf from both holding.
type stage uint8

const (
	disjoint          stage = iota // no value satisfies both
	disjointInContext              // no value satisfies both and the keywords next to the oneOf
	negated                        // each alternative excludes the other
)

// separation is the stage of a pair, and the kinds of values that satisfy both: any value of a
// kind, or some.
type separation struct {
	stage
	full, partial uint8
}

// rounds is the shared state of one document's compilations, for any relaxation.
type rounds struct {
	// by schema with a oneOf: the stage of each pair of its alternatives
	stages      map[*jsondoc.Value]map[[2]int]separation
	complements map[string]*automaton.String // by listed names: all other names
	crossings   map[crossingKey]crossing
	effort      int // of all compilations, in approximately nanoseconds

	lenient bool                // unsupported keywords are dropped
	dropped []*UnsupportedError // the dropped keywords
	free    bool                // the remaining schema accepts any value, or any object
}

func newRounds() *rounds {
	return &rounds{stages: map[*jsondoc.Value]map[[2]int]separation{},
		complements: map[string]*automaton.String{}, crossings: map[crossingKey]crossing{}}
}

// errOverlap requests another round, because some pairs have moved to another stage.
var errOverlap = errors.New("alternatives overlap")

const (
	maxSchemaNodes = 200_000 // of a compiled schema
	// maxCompileEffort bounds one compilation without its automata: about 0.1 s
	maxCompileEffort = 3 << 25
)

// node returns the number of the node of schemas that all must hold; its shapes are found later.
func (c *compiler) node(all []*schema) int32 {
	all = slices.DeleteFunc(all,
		func(s *schema) bool { return s.value.Kind == jsondoc.Bool && s.value.Truth })
	if len(all) == 1 && all[0].node > 0 {
		return all[0].node - 1
	}
	slices.SortFunc(all, func(a, b *schema) int { return int(a.id - b.id) })
	all = slices.Compact(all)
	c.key = c.key[:0]
	for _, s := range all {
		c.key = binary.LittleEndian.AppendUint32(c.key, uint32(s.id))
	}
	id, ok := c.nodeOf[string(c.key)]
	if !ok {
		id = int32(len(c.nodes))
		c.nodeOf[string(c.key)] = id
		c.nodes = append(c.nodes, &node{all: slices.Clone(all)})
		switch len(all) {
		case 0:
			c.program.Any = id
		case 1:
			all[0].node = id + 1
		}
	}
	return id
}

// impossible reports whether a node contains the schema false, which no value satisfies.
func (c *compiler) impossible(id int32) bool {
	return slices.ContainsFunc(c.nodes[id].all,
		func(s *schema) bool { return s.value.Kind == jsondoc.Bool && !s.value.Truth })
}

// maxCompileWork bounds the work on all automata of a schema together: some seconds.
const maxCompileWork = 4 * automaton.MaxWork

func (c *compiler) spend(s *schema, keyword string, d *automaton.DFA) error {
	c.effort += d.Work
	if c.work += d.Work; c.work > maxCompileWork {
		return s.unsupported(keyword, "the expressions of the schema are too large in all")
	}
	return c.ctx.Err() // each may have taken a while
}

// compile finds the node of the given schemas and all nodes below it, and makes the program. After
// errOverlap it continues with the nodes that depend on the changes.
func (c *compiler) compile(all []*schema) (int32, error) {
	root, start := all[0], c.effort-c.work
	first := c.node(all)
	for i := 0; i < len(c.nodes); i++ {
		n := c.nodes[i]
		if n.expanded {
			continue
		}
		n.expanded, c.current = true, n
		if i > maxSchemaNodes {
			return 0, root.unsupported("schema",
				fmt.Sprintf("it is larger than %d places", maxSchemaNodes))
		}
		if c.effort-start-c.work > maxCompileEffort {
			return 0, root.unsupported("schema", "its alternatives take too long to tell apart")
		}
		if err := c.poll(); err != nil {
			return 0, err
		}
		c.effort += 2000
		variants, err := c.variants(n.all)
		if err != nil {
			return 0, err
		}
		for _, variant := range variants {
			s, err := c.shapes(variant)
			if err != nil {
				return 0, err
			}
			n.shapes = append(n.shapes, s...)
		}
	}
	reached := c.reached(first)
	for changed := true; changed; {
		changed = false
		for i := len(c.nodes) - 1; i >= 0; i-- {
			if n := c.nodes[i]; reached[i] && !n.live && slices.ContainsFunc(n.shapes, c.live) {
				n.live, changed = true, true
			}
		}
	}
	if c.overlap() {
		return 0, errOverlap
	}
	if !c.nodes[first].live {
		return 0, &InvalidError{root.path(), "nothing fulfils it"}
	}
	for _, n := range c.nodes {
		if err := c.poll(); err != nil {
			return 0, err
		}
		var alternatives []automaton.Symbol
		for i := range n.shapes {
			if s := &n.shapes[i]; n.live && c.live(*s) { // no unreached one is live
				a, err := c.emit(s)
				if err != nil {
					return 0, err
				}
				alternatives = append(alternatives, a)
			}
		}
		c.program.Add(alternatives)
	}
	return first, nil
}

// reached marks the nodes that a node needs: those below it, and those of the pairs that must be
// apart. Nodes that were only needed in an earlier round are not marked.
func (c *compiler) reached(from int32) []bool {
	reached := make([]bool, len(c.nodes))
	var todo []int32
	add := func(id int32) {
		if !reached[id] {
			reached[id] = true
			todo = append(todo, id)
		}
	}
	add(from)
	for len(todo) > 0 {
		n := c.nodes[todo[len(todo)-1]]
		todo = todo[:len(todo)-1]
		for _, s := range n.oneOf {
			for _, o := range c.overlaps[s] {
				add(o.n)
			}
		}
		for _, s := range n.shapes {
			for _, id := range childNodes(s) {
				add(id)
			}
		}
	}
	return reached
}

func childNodes(s shape) (out []int32) {
	switch {
	case s.object != nil:
		for _, p := range s.object.Properties {
			out = append(out, p.Value)
		}
		for _, x := range s.object.Extra {
			out = append(out, x.Value)
		}
	case s.array != nil:
		out = slices.Concat(s.array.Matches, s.array.Prefix, []int32{s.array.Items})
	}
	return out
}

// overlap moves each pair of alternatives that may overlap to its next stage, and reports whether
// there was such a pair. The shapes that depend on it must be found again.
func (c *compiler) overlap() bool {
	moved := map[*schema]bool{}
	for s, overlaps := range c.overlaps {
		for _, o := range overlaps {
			if !c.nodes[o.n].live {
				continue
			}
			pairs := c.stages[s.original]
			if pairs == nil {
				pairs = map[[2]int]separation{}
				c.stages[s.original] = pairs
			}
			p := separation{stage: pairs[o.pair].stage + 1}
			if p.stage == disjointInContext && len(s.value.Members) == 1 {
				p.stage = negated
			}
			p.full, p.partial = c.kinds(o.n)
			if slices.ContainsFunc(c.nodes[o.n].oneOf, c.unsettled) {
				p.full, p.partial = 0, p.full|p.partial // it will accept less
			}
			pairs[o.pair] = p
			moved[s] = true
		}
	}
	if len(moved) == 0 {
		return false
	}
	for s := range moved {
		delete(c.overlaps, s)
		delete(c.exclusives, s)
	}
	for _, n := range c.nodes {
		n.live = false
		if slices.ContainsFunc(n.oneOf, func(s *schema) bool { return moved[s] }) {
			n.expanded, n.oneOf, n.shapes = false, nil, nil
		}
	}
	return true
}

// unsettled reports whether some alternatives of a oneOf are not yet known to be disjoint.
func (c *compiler) unsettled(s *schema) bool {
	return slices.ContainsFunc(c.overlaps[s], func(o overlap) bool { return c.nodes[o.n].live })
}

// kinds are the kinds of JSON values that a node accepts, as bits: those with any value, and those
// with some values only.
func (c *compiler) kinds(id int32) (full, partial uint8) {
	booleans := map[string]bool{}
	for i := range c.nodes[id].shapes {
		s := &c.nodes[id].shapes[i]
		kind := jsondoc.Null
		switch {
		case !c.live(*s):
			continue
		case s.number != nil:
			kind = jsondoc.Number
		case s.text != nil:
			kind = jsondoc.String
		case s.array != nil:
			kind = jsondoc.Array
		case s.object != nil:
			kind = jsondoc.Object
		case s.literal == "true", s.literal == "false":
			kind = jsondoc.Bool
			booleans[s.literal] = true
		case s.literal[0] == '"':
			kind = jsondoc.String
		case s.literal[0] == '[':
			kind = jsondoc.Array
		case s.literal[0] == '{':
			kind = jsondoc.Object
		case s.literal != "null":
			kind = jsondoc.Number
		}
		if c.acceptsAll(s) && (kind != jsondoc.Bool || len(booleans) == 2) {
			full |= 1 << kind
		} else {
			partial |= 1 << kind
		}
	}
	return full, partial &^ full
}

// live reports whether a shape can be satisfied, given the known live nodes.
func (c *compiler) live(s shape) bool {
	switch {
	case s.object != nil:
		have, must := 0, 0
		for _, p := range s.object.Properties {
			if c.nodes[p.Value].live {
				have++
			} else if p.Required {
				return false
			}
			if p.Required {
				must++
			}
		}
		if s.object.Max >= 0 && (must > s.object.Max || s.object.Min > s.object.Max) {
			return false
		}
		return have >= s.object.Min || slices.ContainsFunc(s.object.Extra,
			func(x automaton.Extra) bool { return c.nodes[x.Value].live })
	case s.array != nil:
		a := c.liveItems(s.array)
		if n, all := c.values(a.Items, a.Min); a.Unique && all && n < a.Min {
			return false
		}
		return (a.Max < 0 || a.Max >= a.Min) && a.CanMatch(0) >= a.Least
	}
	return true
}

// values counts the values of a node, up to most; all: literals are its only values.
func (c *compiler) values(id int32, most int) (n int, all bool) {
	listed := map[string]bool{}
	all = true
	for _, s := range c.nodes[id].shapes {
		if s.literal != "" {
			listed[s.literal] = true
			continue
		}
		all = false
		o, a := s.object, s.array
		if s.text != nil && s.text.Max < 0 && s.text.DFA() == automaton.AnyText() ||
			s.number == automaton.AnyNumber() || a != nil && a.Max < 0 ||
			o != nil && len(o.Extra) > 0 && o.Max < 0 {
			return most, false
		}
		d := s.number
		if s.text != nil {
			d = s.text.DFA()
		}
		if d != nil {
			n += d.Count(most)
		} else {
			n++
		}
	}
	return min(n+len(listed), most), all
}

// bounded reports whether a value in a node may have an object with unlisted names and a bound on
// its members. Then all remaining values may be reorderings of the same members.
func (c *compiler) bounded(id int32, seen map[int32]bool) bool {
	if seen[id] {
		return false
	}
	seen[id] = true
	return slices.ContainsFunc(c.nodes[id].shapes, func(s shape) bool {
		if s.object != nil && len(s.object.Extra) > 0 && s.object.Max >= 0 {
			return true
		}
		return slices.ContainsFunc(childNodes(s), func(n int32) bool { return c.bounded(n, seen) })
	})
}

// liveItems is an array without its unsatisfiable parts.
func (c *compiler) liveItems(array *automaton.Array) automaton.Array {
	a := *array
	a.Max, a.Matches = c.maxItems(array), slices.Clone(a.Matches)
	for i, n := range a.Matches {
		if !c.nodes[n].live {
			a.Matches[i] = -1
		}
	}
	return a
}

// maxItems is the maximum number of an array's items; -1: no bound.
func (c *compiler) maxItems(a *automaton.Array) int {
	for i := 0; i <= len(a.Prefix); i++ {
		item := a.Items
		if i < len(a.Prefix) {
			item = a.Prefix[i]
		}
		if a.Max >= 0 && i >= a.Max {
			return a.Max
		}
		if !c.nodes[item].live {
			return i
		}
	}
	return a.Max
}

// emit adds a live shape to the program, without its unsatisfiable parts.
func (c *compiler) emit(s *shape) (automaton.Symbol, error) {
	p := c.program
	switch {
	case s.number != nil:
		return p.Number(s.number), nil
	case s.text != nil:
		return p.String(s.text), nil
	case s.array != nil:
		a := c.liveItems(s.array)
		if n, _ := c.values(a.Items, a.Min); a.Unique && n < a.Min || s.unique != nil &&
			c.bounded(a.Items, map[int32]bool{}) {
			return automaton.Symbol{}, s.unique.unsupported("uniqueItems",
				"is not supported where so few items differ")
		}
		return p.Array(&a), nil
	case s.object != nil:
		o := s.object.Object
		o.Properties = slices.DeleteFunc(slices.Clone(o.Properties),
			func(p automaton.Property) bool { return !c.nodes[p.Value].live })
		o.Extra = slices.DeleteFunc(slices.Clone(o.Extra),
			func(x automaton.Extra) bool { return !c.nodes[x.Value].live })
		must := 0
		for _, p := range o.Properties {
			if p.Required {
				must++
			}
		}
		if len(o.Extra) > 0 && o.Min > must+1 {
			return automaton.Symbol{}, jointError(s.object.schemas,
				"with names that are not listed it is not supported", "minProperties",
				"minProperties")
		}
		return p.Object(&o), nil
	}
	return p.Literal(s.literal), nil
}
