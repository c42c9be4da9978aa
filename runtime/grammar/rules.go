// Written grammars: rules in the style of Lark or of llama.cpp's GBNF.
//
//	start: greeting " " NAME ("," NAME)*      # Lark: NAME: body
//	NAME: /[A-Z][a-z]+/
//	root ::= "yes" | "no" [0-9]+              # GBNF: name ::= body
//
// A body is alternatives of sequences of "text", "text"i, /expression/, names and groups, each with
// ?, *, + or a count. Lines that begin with a space, | or ) continue a rule. The grammar begins at
// start, or at root. Lark's own syntax is in lark.go; only GBNF has [class] and the dot. What must
// stay true: every rule can be finished, and none calls itself before it has read a byte;
// unenforceable syntax is refused with its line.

package grammar

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

// maxRuleText bounds a written grammar.
const maxRuleText = 1 << 18

// rule is the alternatives of a rule or group, each a sequence of elements.
type rule [][]element

// element is a rule by its number or, if negative, a symbol that reads bytes; empty: the symbol may
// also read none.
type element struct {
	rule   int32
	symbol automaton.Symbol
	empty  bool
}

// ruleReader parses a written grammar into rules.
type ruleReader struct {
	program *automaton.Program
	rules   []rule
	text    string
	pos     int
	names   map[string]int32
	defined map[int32]bool
	lines   map[int32]int // of a rule's beginning, or first use
	line    int           // of the current rule
	depth   int

	lark     bool    // the current rule is Lark's
	terminal bool    // the current rule is a terminal: ignored ones are not allowed inside
	ignored  []int32 // terminals that may occur between others
	filler   int32   // the rule of any number of ignored ones, -1 without them
}

// Rules compiles a written grammar.
func Rules(text string) (*Grammar, error) {
	if len(text) > maxRuleText {
		return nil, fmt.Errorf("grammar: it is longer than %d bytes", maxRuleText)
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("grammar: it is not UTF-8")
	}
	r := &ruleReader{program: automaton.NewProgram(), names: map[string]int32{},
		defined: map[int32]bool{}, lines: map[int32]int{}, filler: -1}
	written := splitRules(text)
	if err := r.directives(written); err != nil {
		return nil, fmt.Errorf("grammar: %w", err)
	}
	for _, w := range written {
		if strings.HasPrefix(w.text, "%") {
			continue
		}
		if err := r.rule(w); err != nil {
			return nil, fmt.Errorf("grammar: line %d: %w", w.line, err)
		}
	}
	start := ""
	for _, name := range []string{"root", "start"} {
		if id, ok := r.names[name]; ok && r.defined[id] {
			start = name
		}
	}
	if start == "" {
		return nil, errors.New("grammar: there is no rule named start or root")
	}
	for name, id := range r.names {
		if !r.defined[id] {
			return nil, fmt.Errorf("grammar: line %d: the rule %s is used but not written",
				r.lines[id], name)
		}
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("grammar: %w", err)
	}
	first := r.names[start]
	if r.filler >= 0 {
		first = r.fresh()
		r.rules[first] = rule{{{rule: r.filler}, {rule: r.names[start]}}}
	}
	for _, alternatives := range r.rules {
		var ways []automaton.Symbol
		for _, sequence := range alternatives {
			symbols := make([]automaton.Symbol, len(sequence))
			for i, e := range sequence {
				if symbols[i] = e.symbol; e.rule >= 0 {
					symbols[i] = r.program.Node(e.rule)
				}
			}
			ways = append(ways, r.program.Sequence(symbols))
		}
		r.program.Add(ways)
	}
	return automaton.New(r.program, r.program.Node(first)), nil
}

var ruleHead = regexp.MustCompile(`^[?!]?([A-Za-z_][A-Za-z0-9_-]*)(\.[0-9]+)?\s*(::=|:)`)

// writtenRule is a rule or a directive, and its first line.
type writtenRule struct {
	line int
	text string
}

// splitRules splits a text into rules, without comments and empty lines.
func splitRules(text string) []writtenRule {
	var rules []writtenRule
	number := 0
	for line := range strings.Lines(text) {
		number++
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "//") || strings.HasPrefix(trimmed, "#"):
		case len(rules) > 0 && strings.ContainsAny(line[:1], "| \t)") &&
			!ruleHead.MatchString(line):
			rules[len(rules)-1].text += line
		default:
			rules = append(rules, writtenRule{number, line})
		}
	}
	return rules
}

// name returns the number of a rule, which may be defined later.
func (r *ruleReader) name(s string) int32 {
	id, ok := r.names[s]
	if !ok {
		id = r.fresh()
		r.names[s], r.lines[id] = id, r.line
	}
	return id
}

func (r *ruleReader) fresh() int32 {
	r.rules = append(r.rules, nil)
	return int32(len(r.rules) - 1)
}

func (r *ruleReader) rule(w writtenRule) error {
	head := ruleHead.FindStringSubmatch(w.text)
	if head == nil {
		return fmt.Errorf("%q begins no rule", strings.TrimSpace(w.text))
	}
	id := r.name(head[1])
	if r.defined[id] {
		return fmt.Errorf("the rule %s is written twice", head[1])
	}
	r.defined[id], r.lines[id] = true, w.line
	r.lark, r.terminal = head[3] == ":", isTerminal(head[1])
	r.text, r.pos = w.text, len(head[0])
	r.line = w.line
	if err := r.alternatives(id); err != nil {
		return fmt.Errorf("rule %s: %w", head[1], err)
	}
	if r.pos < len(r.text) {
		return fmt.Errorf("rule %s: %q is not understood", head[1],
			strings.TrimSpace(r.text[r.pos:]))
	}
	return nil
}

func (r *ruleReader) space() {
	for r.pos < len(r.text) {
		switch c := r.text[r.pos]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			r.pos++
		case c == '#' || strings.HasPrefix(r.text[r.pos:], "//"):
			end := strings.IndexByte(r.text[r.pos:], '\n')
			if end < 0 {
				end = len(r.text) - r.pos
			}
			r.pos += end
		default:
			return
		}
	}
}

// next returns the next character, 0 at the end.
func (r *ruleReader) next() byte {
	r.space()
	if r.pos < len(r.text) {
		return r.text[r.pos]
	}
	return 0
}

// alternatives reads sequences separated by | into a rule.
func (r *ruleReader) alternatives(id int32) error {
	if r.depth++; r.depth > 100 {
		return errors.New("groups are nested too deep")
	}
	defer func() { r.depth-- }()
	for {
		sequence, err := r.sequence()
		if err != nil {
			return err
		}
		r.rules[id] = append(r.rules[id], sequence)
		if r.next() != '|' {
			return nil
		}
		r.pos++
	}
}

func (r *ruleReader) sequence() ([]element, error) {
	var out []element
	for {
		c := r.next()
		switch {
		case c == 0 || c == '|' || c == ')' || c == ']':
			return out, nil
		case c == '-' && r.lark:
			if err := r.alias(); err != nil {
				return nil, err
			}
			continue
		}
		terminal := c == '"' || c == '/' || isTerminal(r.text[r.pos:])
		s, empty, err := r.item(c)
		if err != nil {
			return nil, err
		}
		if r.filler >= 0 && terminal && !r.terminal {
			s = r.group([]element{s, {rule: r.filler}})
		}
		if r.pos < len(r.text) && strings.IndexByte("?*+", r.text[r.pos]) >= 0 {
			s = r.repeated(s, r.text[r.pos])
			r.pos++
		} else if mark := r.next(); r.lark && mark == '~' || !r.lark && mark == '{' {
			if s, err = r.counted(s); err != nil {
				return nil, err
			}
		}
		if !empty {
			out = append(out, s)
		}
	}
}

func (r *ruleReader) group(sequence []element) element {
	id := r.fresh()
	r.rules[id] = rule{sequence}
	return element{rule: id}
}

// repeated is a rule for s optionally (?), any number of times (*), or at least once (+).
func (r *ruleReader) repeated(s element, mark byte) element {
	id := r.fresh()
	self := element{rule: id}
	repeat, enough := []element{s, self}, []element(nil)
	if mark == '?' {
		repeat = repeat[:1]
	}
	if mark == '+' {
		enough = []element{s}
	}
	r.rules[id] = rule{enough, repeat}
	return self
}

// item reads one element; empty: it is the empty text.
func (r *ruleReader) item(c byte) (_ element, empty bool, err error) {
	rest := r.text[r.pos:]
	switch {
	case c == '(' || c == '[' && r.lark:
		r.pos++
		id := r.fresh()
		if err := r.alternatives(id); err != nil {
			return element{}, false, err
		}
		if end := r.next(); c == '(' && end != ')' || c == '[' && end != ']' {
			return element{}, false, errors.New("a group has no end")
		}
		r.pos++
		s := element{rule: id}
		if c == '[' {
			s = r.repeated(s, '?')
		}
		return s, false, nil
	case c == '"':
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return element{}, false, fmt.Errorf("%q is no text", strings.TrimSpace(rest))
		}
		text, err := strconv.Unquote(quoted)
		if err != nil || !utf8.ValidString(text) {
			return element{}, false, fmt.Errorf("%s is no text", quoted)
		}
		r.pos += len(quoted)
		if r.lark && strings.HasPrefix(r.text[r.pos:], "..") {
			s, err := r.characters(text)
			return s, false, err
		}
		if strings.HasPrefix(r.text[r.pos:], "i") {
			r.pos++
			s, err := r.expression("(?i:" + regexp.QuoteMeta(text) + ")")
			return s, text == "", err
		}
		if text == "" {
			return element{}, true, nil
		}
		return element{rule: -1, symbol: r.program.Literal(text)}, false, nil
	case c == '/' || c == '[':
		end := endOfExpression(rest)
		if end < 0 {
			return element{}, false, fmt.Errorf("%q has no end", strings.TrimSpace(rest))
		}
		r.pos += end + 1
		expression := rest[1:end]
		if c == '[' {
			expression = rest[:end+1]
		} else if expression, err = r.flags(expression); err != nil {
			return element{}, false, err
		}
		s, err := r.expression(expression)
		return s, false, err
	case c == '.' && !r.lark:
		r.pos++
		s, err := r.expression("(?s:.)")
		return s, false, err
	case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		end := 1
		for end < len(rest) && (rest[end] == '_' || rest[end] == '-' || rest[end] >= '0' &&
			rest[end] <= '9' || rest[end]|0x20 >= 'a' && rest[end]|0x20 <= 'z') {
			end++
		}
		r.pos += end
		return element{rule: r.name(rest[:end])}, false, nil
	}
	return element{}, false, fmt.Errorf("%q is not supported", strings.TrimSpace(rest))
}

func endOfExpression(s string) int {
	class := s[0] == '['
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '\n':
			return -1
		case s[i] == ']' && s[0] == '[', s[i] == '/' && s[0] == '/' && !class:
			return i
		case s[i] == '[':
			class = true
		case s[i] == ']':
			class = false
		}
	}
	return -1
}

func (r *ruleReader) expression(e string) (element, error) {
	d, err := automaton.Pattern(context.Background(), e, false)
	if err != nil {
		return element{}, fmt.Errorf("/%s/: %w", e, err)
	}
	return element{rule: -1, symbol: r.program.Text(d), empty: d.Accepts("")}, nil
}

// check refuses rules that cannot be finished and rules that call themselves before reading a byte.
func (r *ruleReader) check() error {
	ends, empty := make([]bool, len(r.rules)), make([]bool, len(r.rules))
	// holds reports whether an alternative of a rule has only elements with a property; marked are
	// the rules that are known to have it.
	holds := func(id int, marked []bool, terminal func(element) bool) bool {
		return slices.ContainsFunc(r.rules[id], func(sequence []element) bool {
			return !slices.ContainsFunc(sequence, func(e element) bool {
				if e.rule >= 0 {
					return !marked[e.rule]
				}
				return !terminal(e)
			})
		})
	}
	for changed := true; changed; {
		changed = false
		for id := range r.rules {
			if !ends[id] && holds(id, ends, func(element) bool { return true }) {
				ends[id], changed = true, true
			}
			if !empty[id] && holds(id, empty, func(e element) bool { return e.empty }) {
				empty[id], changed = true, true
			}
		}
	}
	if i := slices.Index(ends, false); i >= 0 {
		return fmt.Errorf("%s can never be finished", r.nameOf(i))
	}
	color := make([]uint8, len(r.rules)) // 1: being visited, 2: done
	var visit func(id int) error
	visit = func(id int) error {
		color[id] = 1
		for _, sequence := range r.rules[id] {
			for _, e := range sequence {
				if e.rule >= 0 {
					if color[e.rule] == 1 {
						return fmt.Errorf("%s calls itself before it reads anything",
							r.nameOf(int(e.rule)))
					}
					if color[e.rule] == 0 {
						if err := visit(int(e.rule)); err != nil {
							return err
						}
					}
					if empty[e.rule] {
						continue
					}
				} else if e.empty {
					continue
				}
				break
			}
		}
		color[id] = 2
		return nil
	}
	for id := range r.rules {
		if color[id] == 0 {
			if err := visit(id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *ruleReader) nameOf(id int) string {
	for name, n := range r.names {
		if int(n) == id {
			return fmt.Sprintf("line %d: the rule %s", r.lines[n], name)
		}
	}
	return "a group"
}
