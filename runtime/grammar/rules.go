// Written grammars: rules in the style of Lark or of llama.cpp's GBNF.
//
//	start: greeting " " NAME ("," NAME)*      # Lark: NAME: body
//	NAME: /[A-Z][a-z]+/
//	root ::= "yes" | "no" [0-9]+              # GBNF: name ::= body
//
// A body is alternatives of sequences of "text", "text"i, /expression/, names and groups, each with
// ?, * or +. A rule goes on over lines that begin with | or with a space. The grammar begins at
// start, or at root. Syntax that only Lark has is in lark.go; only GBNF has [class]. What must stay
// true: every rule can be finished, and none calls itself before it has read a byte; what cannot be
// enforced is refused with its line.

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
)

// mostRuleText bounds a written grammar.
const mostRuleText = 1 << 18

// ruleReader parses a written grammar into a program.
type ruleReader struct {
	program *program
	text    string
	at      int
	names   map[string]int32
	defined map[int32]bool
	lines   map[int32]int // where a rule begins, or is used first
	line    int           // of the rule that is read
	depth   int

	lark     bool    // the current rule is Lark's
	terminal bool    // the current rule is a terminal: nothing is ignored inside
	ignored  []int32 // terminals that may stand between others
	between  int32   // the node of any number of ignored ones, -1 if there are none
}

// Rules compiles a written grammar.
func Rules(text string) (*Grammar, error) {
	if len(text) > mostRuleText {
		return nil, fmt.Errorf("grammar: it is longer than %d bytes", mostRuleText)
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("grammar: it is not UTF-8")
	}
	r := &ruleReader{program: newProgram(), names: map[string]int32{}, defined: map[int32]bool{},
		lines: map[int32]int{}, between: -1}
	rules := splitRules(text)
	if err := r.directives(rules); err != nil {
		return nil, fmt.Errorf("grammar: %w", err)
	}
	for _, rule := range rules {
		if strings.HasPrefix(rule.text, "%") {
			continue
		}
		if err := r.rule(rule); err != nil {
			return nil, fmt.Errorf("grammar: line %d: %w", rule.line, err)
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
	if r.between >= 0 {
		first = r.fresh()
		r.program.nodes[first] = []symbol{r.addSequence([]symbol{{planValue, r.between},
			{planValue, r.names[start]}})}
	}
	return newCompiled(r.program, planValue, first), nil
}

var ruleHead = regexp.MustCompile(`^[?!]?([A-Za-z_][A-Za-z0-9_-]*)(\.[0-9]+)?\s*(::=|:)`)

// writtenRule is a rule or a directive, and the line where it begins.
type writtenRule struct {
	line int
	text string
}

// splitRules cuts a text where lines begin a rule. Comments and empty lines are left out.
func splitRules(text string) []writtenRule {
	var rules []writtenRule
	number := 0
	for line := range strings.Lines(text) {
		number++
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "//") || strings.HasPrefix(trimmed, "#"):
		case len(rules) > 0 && !ruleHead.MatchString(line) && (strings.HasPrefix(trimmed, "|") ||
			line[0] == ' ' || line[0] == '\t'):
			rules[len(rules)-1].text += line
		default:
			rules = append(rules, writtenRule{number, line})
		}
	}
	return rules
}

// name is the number of a rule, which may be defined later.
func (r *ruleReader) name(s string) int32 {
	id, ok := r.names[s]
	if !ok {
		id = r.fresh()
		r.names[s], r.lines[id] = id, r.line
	}
	return id
}

func (r *ruleReader) fresh() int32 {
	r.program.nodes = append(r.program.nodes, nil)
	return int32(len(r.program.nodes) - 1)
}

func (r *ruleReader) rule(rule writtenRule) error {
	head := ruleHead.FindStringSubmatch(rule.text)
	if head == nil {
		return fmt.Errorf("%q begins no rule", strings.TrimSpace(rule.text))
	}
	id := r.name(head[1])
	if r.defined[id] {
		return fmt.Errorf("the rule %s is written twice", head[1])
	}
	r.defined[id], r.lines[id] = true, rule.line
	r.lark, r.terminal = head[3] == ":", isTerminal(head[1])
	r.text, r.at = rule.text, len(head[0])
	r.line = rule.line
	if err := r.alternatives(id); err != nil {
		return fmt.Errorf("rule %s: %w", head[1], err)
	}
	if r.at < len(r.text) {
		return fmt.Errorf("rule %s: %q is not understood", head[1],
			strings.TrimSpace(r.text[r.at:]))
	}
	return nil
}

// space skips white space and a comment up to the end of its line.
func (r *ruleReader) space() {
	for r.at < len(r.text) {
		switch c := r.text[r.at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			r.at++
		case c == '#' || strings.HasPrefix(r.text[r.at:], "//"):
			end := strings.IndexByte(r.text[r.at:], '\n')
			if end < 0 {
				end = len(r.text) - r.at
			}
			r.at += end
		default:
			return
		}
	}
}

// next is the next character, 0 at the end.
func (r *ruleReader) next() byte {
	r.space()
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

// alternatives reads sequences divided by | into a rule.
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
		r.program.nodes[id] = append(r.program.nodes[id], r.addSequence(sequence))
		if r.next() != '|' {
			return nil
		}
		r.at++
	}
}

func (r *ruleReader) addSequence(s []symbol) symbol {
	r.program.sequences = append(r.program.sequences, s)
	return symbol{planSequence, int32(len(r.program.sequences) - 1)}
}

func (r *ruleReader) sequence() ([]symbol, error) {
	var out []symbol
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
		terminal := c == '"' || c == '/' || isTerminal(r.text[r.at:])
		s, empty, err := r.item(c)
		if err != nil {
			return nil, err
		}
		if r.between >= 0 && terminal && !r.terminal {
			s = r.group([]symbol{s, {planValue, r.between}})
		}
		if r.at < len(r.text) && strings.IndexByte("?*+", r.text[r.at]) >= 0 {
			s = r.repeated(s, r.text[r.at])
			r.at++
		} else if r.lark && r.next() == '~' {
			if s, err = r.counted(s); err != nil {
				return nil, err
			}
		}
		if !empty {
			out = append(out, s)
		}
	}
}

// group is a rule for one sequence.
func (r *ruleReader) group(sequence []symbol) symbol {
	id := r.fresh()
	r.program.nodes[id] = []symbol{r.addSequence(sequence)}
	return symbol{planValue, id}
}

// repeated is a rule for s once or not at all (?), any number of times (*), or at least once (+).
func (r *ruleReader) repeated(s symbol, mark byte) symbol {
	id := r.fresh()
	self := symbol{planValue, id}
	again, enough := []symbol{s, self}, []symbol(nil)
	if mark == '?' {
		again = again[:1]
	}
	if mark == '+' {
		enough = []symbol{s}
	}
	r.program.nodes[id] = []symbol{r.addSequence(enough), r.addSequence(again)}
	return self
}

// item reads one element; empty tells that it is the empty text.
func (r *ruleReader) item(c byte) (_ symbol, empty bool, err error) {
	rest := r.text[r.at:]
	switch {
	case c == '(' || c == '[' && r.lark:
		r.at++
		id := r.fresh()
		if err := r.alternatives(id); err != nil {
			return symbol{}, false, err
		}
		if end := r.next(); c == '(' && end != ')' || c == '[' && end != ']' {
			return symbol{}, false, errors.New("a group has no end")
		}
		r.at++
		s := symbol{planValue, id}
		if c == '[' {
			s = r.repeated(s, '?')
		}
		return s, false, nil
	case c == '"':
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return symbol{}, false, fmt.Errorf("%q is no text", strings.TrimSpace(rest))
		}
		text, err := strconv.Unquote(quoted)
		if err != nil || !utf8.ValidString(text) {
			return symbol{}, false, fmt.Errorf("%s is no text", quoted)
		}
		r.at += len(quoted)
		if r.lark && strings.HasPrefix(r.text[r.at:], "..") {
			s, err := r.characters(text)
			return s, false, err
		}
		if strings.HasPrefix(r.text[r.at:], "i") {
			r.at++
			s, err := r.expression("(?i:" + regexp.QuoteMeta(text) + ")")
			return s, text == "", err
		}
		if text == "" {
			return symbol{}, true, nil
		}
		return symbol{readLiteral, r.program.literal(text)}, false, nil
	case c == '/' || c == '[':
		end := endOfExpression(rest)
		if end < 0 {
			return symbol{}, false, fmt.Errorf("%q has no end", strings.TrimSpace(rest))
		}
		r.at += end + 1
		expression := rest[1:end]
		if c == '[' {
			expression = rest[:end+1]
		} else if expression, err = r.flags(expression); err != nil {
			return symbol{}, false, err
		}
		s, err := r.expression(expression)
		return s, false, err
	case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		end := 1
		for end < len(rest) && (rest[end] == '_' || rest[end] == '-' || rest[end] >= '0' &&
			rest[end] <= '9' || rest[end]|0x20 >= 'a' && rest[end]|0x20 <= 'z') {
			end++
		}
		r.at += end
		return symbol{planValue, r.name(rest[:end])}, false, nil
	}
	return symbol{}, false, fmt.Errorf("%q is not supported", strings.TrimSpace(rest))
}

// endOfExpression finds the end of /.../ or [...].
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

func (r *ruleReader) expression(e string) (symbol, error) {
	d, err := pattern(context.Background(), e, false)
	if err != nil {
		return symbol{}, fmt.Errorf("/%s/: %w", e, err)
	}
	d.markTotal()
	i := slices.Index(r.program.numbers, d)
	if i < 0 {
		i = len(r.program.numbers)
		r.program.numbers = append(r.program.numbers, d)
	}
	return symbol{readDFA, int32(i)}, nil
}

// check refuses rules that cannot be finished and rules that call themselves before a byte is read.
func (r *ruleReader) check() error {
	p := r.program
	ends, empty := make([]bool, len(p.nodes)), make([]bool, len(p.nodes))
	// holds tells whether some alternative of a rule has only symbols with a property; of says
	// which rules are known to have it.
	holds := func(id int, of []bool, terminal func(symbol) bool) bool {
		return slices.ContainsFunc(p.nodes[id], func(s symbol) bool {
			return !slices.ContainsFunc(p.sequences[s.of], func(x symbol) bool {
				if x.kind == planValue {
					return !of[x.of]
				}
				return !terminal(x)
			})
		})
	}
	nullable := func(x symbol) bool { return x.kind == readDFA && p.numbers[x.of].accept[0] }
	for changed := true; changed; {
		changed = false
		for id := range p.nodes {
			if !ends[id] && holds(id, ends, func(symbol) bool { return true }) {
				ends[id], changed = true, true
			}
			if !empty[id] && holds(id, empty, nullable) {
				empty[id], changed = true, true
			}
		}
	}
	if i := slices.Index(ends, false); i >= 0 {
		return fmt.Errorf("%s can never be finished", r.nameOf(i))
	}
	color := make([]uint8, len(p.nodes)) // 1: being looked at, 2: done
	var visit func(id int) error
	visit = func(id int) error {
		color[id] = 1
		for _, s := range p.nodes[id] {
			for _, x := range p.sequences[s.of] {
				if x.kind == planValue {
					if color[x.of] == 1 {
						return fmt.Errorf("%s calls itself before it reads anything",
							r.nameOf(int(x.of)))
					}
					if color[x.of] == 0 {
						if err := visit(int(x.of)); err != nil {
							return err
						}
					}
					if empty[x.of] {
						continue
					}
				} else if nullable(x) {
					continue
				}
				break
			}
		}
		color[id] = 2
		return nil
	}
	for id := range p.nodes {
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
