// Regular expressions to automata: the pattern of a JSON Schema, guided regex, and the formats.
//
// The syntax is Go's (RE2), read as ECMA 262 reads it where the two differ: \s is Unicode's white
// space, the dot stops at every line end, \uXXXX is a character. What is no regular language,
// look-around and back references, is refused.

package grammar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// spaces is what \s stands for, written for a class.
const spaces = `\t\n\x0b\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}` +
	`\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`

// notSpaces is all the rest.
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
			case 's':
				if class {
					b.WriteString(spaces)
				} else {
					b.WriteString("[" + spaces + "]")
				}
			case 'S':
				if class {
					b.WriteString(notSpaces)
				} else {
					b.WriteString("[" + notSpaces + "]")
				}
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

// nfa is what a syntax tree becomes: nodes with edges over byte ranges and edges over nothing.
type nfa struct{ nodes []nfaNode }

type nfaNode struct {
	empty      []int32
	bytes      []nfaEdge
	begin, end bool // the empty edges hold only where the text begins or ends
}

type nfaEdge struct {
	lo, hi byte
	to     int32
}

const (
	mostNodes = 1 << 16
	mostWork  = 1 << 26
)

func (n *nfa) add() int32 {
	n.nodes = append(n.nodes, nfaNode{})
	return int32(len(n.nodes) - 1)
}

func (n *nfa) join(from, to int32) { n.nodes[from].empty = append(n.nodes[from].empty, to) }

// build adds what re matches from a node on, and returns where it ends.
func (n *nfa) build(re *syntax.Regexp, from int32) (int32, error) {
	if len(n.nodes) > mostNodes {
		return 0, errTooLarge
	}
	switch re.Op {
	case syntax.OpNoMatch:
		return n.add(), nil
	case syntax.OpEmptyMatch:
		return from, nil
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			set := []rune{r, r}
			if re.Flags&syntax.FoldCase != 0 {
				for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
					set = append(set, f, f)
				}
			}
			from = n.runes(from, set)
		}
		return from, nil
	case syntax.OpCharClass:
		return n.runes(from, re.Rune), nil
	case syntax.OpAnyCharNotNL:
		return n.runes(from, []rune{0, 9, 11, unicode.MaxRune}), nil
	case syntax.OpAnyChar:
		return n.runes(from, []rune{0, unicode.MaxRune}), nil
	case syntax.OpBeginText, syntax.OpEndText:
		at, to := n.add(), n.add()
		n.join(from, at)
		n.nodes[at].begin = re.Op == syntax.OpBeginText
		n.nodes[at].end = re.Op == syntax.OpEndText
		n.join(at, to)
		return to, nil
	case syntax.OpCapture:
		return n.build(re.Sub[0], from)
	case syntax.OpConcat:
		var err error
		for _, sub := range re.Sub {
			if from, err = n.build(sub, from); err != nil {
				return 0, err
			}
		}
		return from, nil
	case syntax.OpAlternate:
		to := n.add()
		for _, sub := range re.Sub {
			at := n.add()
			n.join(from, at)
			end, err := n.build(sub, at)
			if err != nil {
				return 0, err
			}
			n.join(end, to)
		}
		return to, nil
	case syntax.OpRepeat:
		return n.repeat(re, from)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		at, to := n.add(), n.add()
		n.join(from, at)
		end, err := n.build(re.Sub[0], at)
		if err != nil {
			return 0, err
		}
		n.join(end, to)
		if re.Op != syntax.OpPlus {
			n.join(at, to)
		}
		if re.Op != syntax.OpQuest {
			n.join(end, at)
		}
		return to, nil
	}
	return 0, fmt.Errorf("%s is not supported", re)
}

// repeat adds re.Min to re.Max copies.
func (n *nfa) repeat(re *syntax.Regexp, from int32) (int32, error) {
	var err error
	for range re.Min {
		if from, err = n.build(re.Sub[0], from); err != nil {
			return 0, err
		}
	}
	if re.Max < 0 {
		return n.build(&syntax.Regexp{Op: syntax.OpStar, Sub: re.Sub}, from)
	}
	to := n.add()
	n.join(from, to)
	for range re.Max - re.Min {
		at := n.add()
		n.join(from, at)
		if from, err = n.build(re.Sub[0], at); err != nil {
			return 0, err
		}
		n.join(from, to)
	}
	return to, nil
}

// runes adds edges for the pairs of a character class.
func (n *nfa) runes(from int32, pairs []rune) int32 {
	to := n.add()
	tails := map[tail]int32{}
	for i := 0; i+1 < len(pairs); i += 2 {
		n.runeRange(from, to, pairs[i], pairs[i+1], tails)
	}
	return to
}

// tail is a range of bytes before a node: characters that end alike share what reads their end.
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
	// k bytes at the end should be whole ranges wherever the bytes before differ
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
		at, known := tails[key]
		if !known {
			at = n.add()
			n.nodes[at].bytes = []nfaEdge{{a[i], b[i], to}}
			tails[key] = at
		}
		to = at
	}
	n.nodes[from].bytes = append(n.nodes[from].bytes, nfaEdge{a[0], b[0], to})
}

// patternDFA is the automaton of the texts that an expression matches: anywhere if it is searched
// for, else as a whole.
func patternDFA(expression string, search bool) (*dfa, error) {
	text, err := fromECMA(expression)
	if err != nil {
		return nil, err
	}
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("it is not a regular expression that is understood: %w", err)
	}
	n := &nfa{}
	start := n.add()
	at := start
	if search {
		at = n.add()
		n.join(start, at)
		n.join(n.runes(start, []rune{0, unicode.MaxRune}), start)
	}
	match, err := n.build(re, at)
	if err != nil {
		return nil, err
	}
	if search {
		rest := n.add()
		n.join(match, rest)
		n.join(n.runes(rest, []rune{0, unicode.MaxRune}), rest)
		match = rest
	}
	return n.determinize(start, match)
}

// pack4 is a set as bytes.
func pack4(set []int32) []byte {
	b := make([]byte, 0, 4*len(set))
	for _, s := range set {
		b = binary.LittleEndian.AppendUint32(b, uint32(s))
	}
	return b
}

// determinize makes the automaton of sets of nodes.
func (n *nfa) determinize(start, match int32) (*dfa, error) {
	if len(n.nodes) > mostNodes {
		return nil, errTooLarge
	}
	c := textCuts()
	for _, node := range n.nodes {
		for _, e := range node.bytes {
			c.at(e.lo, e.hi)
		}
	}
	mark := make([]int32, len(n.nodes))
	round := int32(0)
	// nodes and edges looked at; an expression that needs too many is refused as one that needs too
	// many states
	work := 0
	// closure adds what is reached over nothing. Edges that hold only at an end of the text are
	// kept waiting.
	closure := func(set []int32, begin, end bool) []int32 {
		round++
		for _, s := range set {
			mark[s] = round
		}
		for i := 0; i < len(set); i++ {
			node := &n.nodes[set[i]]
			work += 1 + len(node.empty)
			if node.begin && !begin || node.end && !end {
				continue
			}
			for _, to := range node.empty {
				if mark[to] != round {
					mark[to] = round
					set = append(set, to)
				}
			}
		}
		slices.Sort(set)
		return set
	}
	type at struct {
		set   string
		begin bool
	}
	pack := func(set []int32) string {
		b := make([]byte, 0, 4*len(set))
		for _, s := range set {
			if node := &n.nodes[s]; len(node.bytes) > 0 || node.end || s == match {
				b = binary.LittleEndian.AppendUint32(b, uint32(s))
			}
		}
		return string(b)
	}
	unpack := func(s string) []int32 {
		set := make([]int32, 0, len(s)/4)
		for i := 0; i < len(s); i += 4 {
			set = append(set, int32(binary.LittleEndian.Uint32([]byte(s[i:i+4]))))
		}
		return set
	}
	closed := map[string]string{} // what closure made of a set: several bytes lead to the same
	d, err := buildDFA(at{pack(closure([]int32{start}, true, false)), true}, c,
		func(s at, b byte) (at, bool) {
			if work > mostWork {
				return at{}, false
			}
			round++
			var set []int32
			for i := 0; i < len(s.set); i += 4 {
				node := &n.nodes[binary.LittleEndian.Uint32([]byte(s.set[i:i+4]))]
				work += 1 + len(node.bytes)
				for _, e := range node.bytes {
					if b >= e.lo && b <= e.hi && mark[e.to] != round {
						mark[e.to] = round
						set = append(set, e.to)
					}
				}
			}
			if len(set) == 0 {
				return at{}, false
			}
			raw := string(pack4(set))
			to, known := closed[raw]
			if !known {
				to = pack(closure(set, false, false))
				closed[raw] = to
			}
			return at{to, false}, true
		}, func(s at) bool {
			return slices.Contains(closure(unpack(s.set), s.begin, true), match)
		})
	if work > mostWork {
		return nil, errTooLarge
	}
	if err != nil {
		return nil, err
	}
	d.work += work
	return d.markTotal(), nil
}
