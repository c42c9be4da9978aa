// Regular expressions to automata: the pattern of a JSON Schema, guided regex, and the formats.
//
// The syntax is Go's (RE2), interpreted as in ECMA 262 where the two differ: \s is Unicode's white
// space, the dot stops at every line end, \uXXXX is a character. Non-regular syntax, look-around
// and back references, is refused.

package automaton

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// spaces is the meaning of \s, written for a class.
const spaces = `\t\n\x0b\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}` +
	`\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`

// notSpaces is the complement.
const notSpaces = `\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}` +
	`\x{200b}-\x{2027}\x{202a}-\x{202e}` +
	`\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`

// fromECMA rewrites an expression for Go's parser.
func fromECMA(p string) (string, error) {
	var b strings.Builder
	class := false
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case c == '[' && !class:
			class = true
			if strings.HasPrefix(p[i:], "[^]") {
				b.WriteString(`(?s:.)`)
				i, class = i+2, false
				continue
			}
			if strings.HasPrefix(p[i:], "[]") {
				return "", errors.New("an empty class matches nothing")
			}
		case c == '[':
			b.WriteByte('\\') // ECMA has no classes inside classes
		case c == ']':
			class = false
		case c == '.' && !class:
			b.WriteString(`[^\n\r\x{2028}\x{2029}]`)
			continue
		case c == '\\' && i+1 < len(p):
			i++
			switch p[i] {
			case 's', 'S':
				set := spaces
				if p[i] == 'S' {
					set = notSpaces
				}
				if !class {
					set = "[" + set + "]"
				}
				b.WriteString(set)
			case 'b', 'B':
				if !class {
					return "", errors.New(`word boundaries are not supported`)
				}
				b.WriteString(`\x08`)
			case 'u':
				n := 4
				if i+n >= len(p) {
					return "", errors.New(`\u needs four digits`)
				}
				b.WriteString(`\x{` + p[i+1:i+1+n] + `}`)
				i += n
			case '/':
				b.WriteByte('/')
			default:
				b.WriteByte('\\')
				b.WriteByte(p[i])
			}
			continue
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}

// nfa is the automaton of an expression: nodes with edges over byte ranges and empty edges. The
// first nodes are the instructions of Go's compiler.
type nfa struct{ nodes []nfaNode }

type nfaNode struct {
	empty      []int32
	bytes      []nfaEdge
	begin, end bool // the empty edges only hold at the beginning or end of the text
}

type nfaEdge struct {
	lo, hi byte
	to     int32
}

const (
	maxNodes = 1 << 16
	// MaxWork bounds the cost of an automaton, in visited nodes and edges.
	MaxWork = 1 << 26
	// pollEvery is the number of edges between two checks for cancellation.
	pollEvery = 64
)

func (n *nfa) add() int32 {
	n.nodes = append(n.nodes, nfaNode{})
	return int32(len(n.nodes) - 1)
}

func newNFA(program *syntax.Prog) (*nfa, error) {
	if len(program.Inst) > maxNodes {
		return nil, ErrTooLarge
	}
	n := &nfa{nodes: make([]nfaNode, len(program.Inst), 4*len(program.Inst))}
	for i, inst := range program.Inst {
		node, out := int32(i), int32(inst.Out)
		switch inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			n.nodes[node].empty = []int32{out, int32(inst.Arg)}
		case syntax.InstCapture, syntax.InstNop:
			n.nodes[node].empty = []int32{out}
		case syntax.InstEmptyWidth:
			op := syntax.EmptyOp(inst.Arg)
			if op != syntax.EmptyBeginText && op != syntax.EmptyEndText {
				return nil, errors.New("word boundaries and ends of lines are not supported")
			}
			n.nodes[node].begin, n.nodes[node].end = op == syntax.EmptyBeginText,
				op == syntax.EmptyEndText
			n.nodes[node].empty = []int32{out}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			pairs := inst.Rune
			if len(pairs) == 1 {
				r := pairs[0]
				pairs = []rune{r, r}
				if inst.Op == syntax.InstRune && syntax.Flags(inst.Arg)&syntax.FoldCase != 0 {
					for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
						pairs = append(pairs, f, f)
					}
				}
			}
			tails := map[tail]int32{}
			for k := 0; k+1 < len(pairs); k += 2 {
				n.runeRange(node, out, pairs[k], pairs[k+1], tails)
			}
		}
		if len(n.nodes) > maxNodes {
			return nil, ErrTooLarge
		}
	}
	return n, nil
}

// tail is a byte range before a node: characters with equal last bytes share the nodes for them.
type tail struct {
	lo, hi byte
	to     int32
}

// runeRange splits a range of characters where their UTF-8 changes its length or all but its last
// bytes.
func (n *nfa) runeRange(from, to int32, lo, hi rune, tails map[tail]int32) {
	if lo > hi {
		return
	}
	for _, edge := range []rune{0x7f, 0x7ff, 0xd7ff, 0xdfff, 0xffff} {
		if lo <= edge && hi > edge {
			n.runeRange(from, to, lo, edge, tails)
			n.runeRange(from, to, edge+1, hi, tails)
			return
		}
	}
	if lo >= 0xd800 && hi <= 0xdfff {
		return // surrogates are no characters
	}
	a, b := utf8.AppendRune(nil, lo), utf8.AppendRune(nil, hi)
	// where the earlier bytes differ, the last k bytes should be complete ranges
	for k := len(a) - 1; k > 0; k-- {
		low := rune(1)<<(6*k) - 1
		if lo>>(6*k) == hi>>(6*k) {
			continue
		}
		if lo&low != 0 {
			n.runeRange(from, to, lo, lo|low, tails)
			n.runeRange(from, to, (lo|low)+1, hi, tails)
			return
		}
		if hi&low != low {
			n.runeRange(from, to, lo, hi&^low-1, tails)
			n.runeRange(from, to, hi&^low, hi, tails)
			return
		}
	}
	for i := len(a) - 1; i > 0; i-- {
		key := tail{a[i], b[i], to}
		node, ok := tails[key]
		if !ok {
			node = n.add()
			n.nodes[node].bytes = []nfaEdge{{a[i], b[i], to}}
			tails[key] = node
		}
		to = node
	}
	n.nodes[from].bytes = append(n.nodes[from].bytes, nfaEdge{a[0], b[0], to})
}

type patternKey struct {
	expression string
	search     bool
}

var patterns = Cache[patternKey, *DFA]{Most: MaxCached}

// Pattern returns the possibly cached automaton of the texts that an expression matches: anywhere
// in the text with search, else completely.
func Pattern(ctx context.Context, expression string, search bool) (*DFA, error) {
	return patterns.Get(patternKey{expression, search},
		func() (*DFA, error) { return patternDFA(ctx, expression, search) })
}

// lookAhead splits ^(?=A)B into ^(?:A) and ^B, which a text must both match, and ^(?!A)B into the
// same, of which it must not match the first.
func lookAhead(p string) (ahead, rest string, not, ok bool) {
	not = strings.HasPrefix(p, "^(?!")
	if !not && !strings.HasPrefix(p, "^(?=") {
		return "", "", false, false
	}
	depth, end, class := 0, 0, false
	for i := 1; i < len(p); i++ {
		switch c := p[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 && end == 0 {
				end = i
			}
		case c == '|' && depth == 0: // another branch without it
			return "", "", false, false
		}
	}
	if end == 0 || strings.IndexAny(p[end+1:], "*+?{") == 0 {
		return "", "", false, false
	}
	return "^(?:" + p[4:end] + ")", "^" + p[end+1:], not, true
}

func patternDFA(ctx context.Context, expression string, search bool) (*DFA, error) {
	if ahead, rest, not, ok := lookAhead(expression); ok && search {
		d, err := Pattern(ctx, rest, true)
		if err != nil {
			return nil, err
		}
		a, err := Pattern(ctx, ahead, true)
		if not && errors.Is(err, ErrEmpty) {
			return d, nil
		}
		if err != nil {
			return nil, err
		}
		return Intersect([]Factor{{DFA: d}, {DFA: a, Not: not}}, 0, -1)
	}
	text, err := fromECMA(expression)
	if err != nil {
		return nil, err
	}
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("it is not a regular expression that is understood: %w", err)
	}
	if search {
		any := &syntax.Regexp{Op: syntax.OpStar,
			Sub: []*syntax.Regexp{{Op: syntax.OpAnyChar}}}
		re = &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{any, re, any}}
	}
	program, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, err
	}
	n, err := newNFA(program)
	if err != nil {
		return nil, err
	}
	match := slices.IndexFunc(program.Inst,
		func(i syntax.Inst) bool { return i.Op == syntax.InstMatch })
	return n.determinize(ctx, int32(program.Start), int32(match))
}

// determinize makes the automaton whose states are sets of nodes.
func (n *nfa) determinize(ctx context.Context, start, match int32) (*DFA, error) {
	c := textCuts()
	for _, node := range n.nodes {
		for _, e := range node.bytes {
			c.add(e.lo, e.hi)
		}
	}
	b := subsets{nfa: n, match: match, mark: make([]int32, len(n.nodes)), ids: map[string]int32{},
		closed: map[string]int32{}, aheadOf: -1, target: -1}
	b.sets = []string{b.pack(b.closure([]int32{start}, true, false))}
	b.class, b.picks = c.classes()
	b.ahead = make([][]int32, len(b.picks))
	steps := 0
	d, err := buildDFA(0, c, func(s int32, char byte) (int32, bool) {
		if steps++; steps%pollEvery == 0 && ctx.Err() != nil {
			b.work = MaxWork + 1
		}
		if b.work > MaxWork {
			return 0, false
		}
		return b.next(s, char)
	}, b.accepts)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if b.work > MaxWork {
		return nil, ErrTooLarge
	}
	if err != nil {
		return nil, err
	}
	d.Work += b.work
	return d, nil
}

// subsets is a subset construction. A state is the packed set of nodes in sets at its index.
type subsets struct {
	*nfa
	match int32
	mark  []int32 // by node: the round that saw it last
	round int32
	// visited nodes and edges: an expression that needs too many is refused, like one that needs
	// too many states
	work   int
	sets   []string         // the first is the beginning of the text
	ids    map[string]int32 // the states of sets, except the first
	closed map[string]int32 // cache of closure: several bytes lead to the same
	class  [256]uint8       // by byte
	picks  []byte           // a byte of each class

	ahead   [][]int32 // by class: targets from the set of the state aheadOf
	aheadOf int32
	target  int32 // of the class that next saw last; -1 for none
	raw     []byte
	scratch []int32
}

// closure adds the nodes after empty edges. Nodes whose edges only hold at an end of the text stay
// in the set.
func (b *subsets) closure(set []int32, begin, end bool) []int32 {
	b.round++
	for _, s := range set {
		b.mark[s] = b.round
	}
	for i := 0; i < len(set); i++ {
		node := &b.nodes[set[i]]
		b.work += 1 + len(node.empty)
		if node.begin && !begin || node.end && !end {
			continue
		}
		for _, to := range node.empty {
			if b.mark[to] != b.round {
				b.mark[to] = b.round
				set = append(set, to)
			}
		}
	}
	slices.Sort(set)
	return set
}

func (b *subsets) pack(set []int32) string {
	return setKey(slices.DeleteFunc(set, func(s int32) bool {
		node := &b.nodes[s]
		return len(node.bytes) == 0 && !node.end && s != b.match
	}))
}

func (b *subsets) look(s int32) {
	b.aheadOf = s
	set := b.sets[s]
	for k := range b.ahead {
		b.ahead[k] = b.ahead[k][:0]
	}
	for i := 0; i < len(set); i += 4 {
		node := &b.nodes[binary.LittleEndian.Uint32([]byte(set[i:i+4]))]
		// One per class and edge, although few of them match: MaxWork counts in these units.
		b.work += len(b.picks) + len(b.picks)*len(node.bytes)
		for _, e := range node.bytes {
			for k := b.class[e.lo]; k <= b.class[e.hi]; k++ {
				b.ahead[k] = append(b.ahead[k], e.to)
			}
		}
	}
}

// next returns the state after a byte. Bytes are asked for in ascending order.
func (b *subsets) next(s int32, char byte) (int32, bool) {
	k := b.class[char]
	if s != b.aheadOf {
		b.look(s)
	} else if slices.Equal(b.ahead[k], b.ahead[k-1]) {
		return b.target, b.target >= 0
	}
	b.round++
	b.raw = b.raw[:0]
	for _, to := range b.ahead[k] {
		if b.mark[to] != b.round {
			b.mark[to] = b.round
			b.raw = binary.LittleEndian.AppendUint32(b.raw, uint32(to))
		}
	}
	if b.target = -1; len(b.raw) == 0 {
		return 0, false
	}
	var ok bool
	if b.target, ok = b.closed[string(b.raw)]; !ok {
		key := string(b.raw)
		b.scratch = b.closure(appendSet(b.scratch[:0], key), false, false)
		set := b.pack(b.scratch)
		if b.target, ok = b.ids[set]; !ok {
			b.target = int32(len(b.sets))
			b.ids[set] = b.target
			b.sets = append(b.sets, set)
		}
		b.closed[key] = b.target
	}
	return b.target, true
}

// accepts reports whether the text may end in a state.
func (b *subsets) accepts(s int32) bool {
	b.scratch = b.closure(appendSet(b.scratch[:0], b.sets[s]), s == 0, true)
	return slices.Contains(b.scratch, b.match)
}
