// Syntax that only Lark's grammars have: directives, optional [groups], ranges, counted repeats,
// aliases, flags of expressions.
//
// Lark splits a text into terminals first and then reads rules; here both are one grammar, so a
// text matches if any split fits. What must stay true: syntax of Lark that changes which texts
// match is never ignored.

package grammar

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// commonTerminals are those of Lark's library "common", as expressions.
var commonTerminals = map[string]string{
	"DIGIT": `[0-9]`, "HEXDIGIT": `[a-fA-F0-9]`, "INT": `[0-9]+`, "SIGNED_INT": `[+-]?[0-9]+`,
	"DECIMAL": decimal, "FLOAT": float, "SIGNED_FLOAT": `[+-]?(?:` + float + `)`,
	"NUMBER": number, "SIGNED_NUMBER": `[+-]?(?:` + number + `)`,
	"ESCAPED_STRING": `"(?:[^"\\\n]|\\[^\n])*"`,
	"LCASE_LETTER":   `[a-z]`, "UCASE_LETTER": `[A-Z]`, "LETTER": `[A-Za-z]`, "WORD": `[A-Za-z]+`,
	"CNAME":     `[_A-Za-z][_A-Za-z0-9]*`,
	"WS_INLINE": `[ \t]+`, "WS": `[ \t\f\r\n]+`, "CR": `\r`, "LF": `\n`, "NEWLINE": `(?:\r?\n)+`,
	"SH_COMMENT": `#[^\n]*`, "CPP_COMMENT": `\/\/[^\n]*`, "SQL_COMMENT": `--[^\n]*`,
	"C_COMMENT": `\/\*(?:[^*]|\*+[^*\/])*\*+\/`,
}

const (
	exponent = `[eE][+-]?[0-9]+`
	decimal  = `(?:[0-9]+\.[0-9]*|\.[0-9]+)`
	float    = `[0-9]+` + exponent + `|` + decimal + `(?:` + exponent + `)?`
	number   = float + `|[0-9]+`
)

// maxCount bounds a counted repeat.
const maxCount = 1000

func isTerminal(s string) bool {
	s = strings.TrimLeft(s, "_")
	return s != "" && s[0] >= 'A' && s[0] <= 'Z'
}

var importLine = regexp.MustCompile(
	`^%import\s+common\s*(?:\.\s*(\w+)(?:\s*->\s*(\w+))?|\(([\w\s,]+)\))\s*(?://.*)?$`)

// directives reads the lines that begin with %, anywhere in the grammar.
func (r *ruleReader) directives(written []writtenRule) error {
	for _, w := range written {
		r.line = w.line
		text := strings.TrimSpace(w.text)
		var err error
		switch word, rest, _ := strings.Cut(text, " "); {
		case !strings.HasPrefix(text, "%"):
			continue
		case word == "%import":
			err = r.imported(text)
		case word == "%ignore":
			err = r.ignore(rest)
		default:
			err = fmt.Errorf("%s is not supported", word)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", w.line, err)
		}
	}
	if len(r.ignored) == 0 {
		return nil
	}
	r.filler = r.fresh()
	r.rules[r.filler] = rule{nil}
	for _, id := range r.ignored {
		r.rules[r.filler] = append(r.rules[r.filler], []element{{rule: id}, {rule: r.filler}})
	}
	return nil
}

func (r *ruleReader) imported(text string) error {
	match := importLine.FindStringSubmatch(text)
	if match == nil {
		return fmt.Errorf("%q is not supported: terminals of common can be imported", text)
	}
	names := strings.FieldsFunc(match[1]+" "+match[3], func(c rune) bool {
		return c == ',' || c == ' ' || c == '\t'
	})
	for _, name := range names {
		expression, ok := commonTerminals[name]
		if !ok {
			return fmt.Errorf("common has no terminal %s", name)
		}
		if match[2] != "" {
			name = match[2]
		}
		s, err := r.expression(expression)
		if err != nil {
			return err
		}
		id := r.name(name)
		r.rules[id] = rule{{s}}
		r.defined[id], r.lines[id] = true, r.line
	}
	return nil
}

// ignore records a terminal that may occur between terminals.
func (r *ruleReader) ignore(body string) error {
	r.text, r.pos, r.lark, r.terminal = body, 0, true, true
	id := r.fresh()
	if err := r.alternatives(id); err != nil {
		return err
	}
	if r.next() != 0 {
		return fmt.Errorf("%q is not understood", strings.TrimSpace(r.text[r.pos:]))
	}
	r.ignored = append(r.ignored, id)
	return nil
}

var aliasForm = regexp.MustCompile(`^->\s*\w+`)

// alias skips the name of an alternative, which has no meaning here.
func (r *ruleReader) alias() error {
	name := aliasForm.FindString(r.text[r.pos:])
	if name == "" {
		return fmt.Errorf("%q is not supported", strings.TrimSpace(r.text[r.pos:]))
	}
	r.pos += len(name)
	return nil
}

// characters reads the end of a range: "a".."z".
func (r *ruleReader) characters(from string) (element, error) {
	r.pos += len("..")
	quoted, err := strconv.QuotedPrefix(r.text[r.pos:])
	if err != nil {
		return element{}, errors.New("a range ends in a text")
	}
	to, err := strconv.Unquote(quoted)
	r.pos += len(quoted)
	if err != nil || utf8.RuneCountInString(from) != 1 || utf8.RuneCountInString(to) != 1 {
		return element{}, errors.New("a range has one character on each side")
	}
	a, _ := utf8.DecodeRuneInString(from)
	b, _ := utf8.DecodeRuneInString(to)
	if a > b {
		return element{}, fmt.Errorf("the range %q..%q is empty", from, to)
	}
	return r.expression(fmt.Sprintf(`[\x{%x}-\x{%x}]`, a, b))
}

var countForm = regexp.MustCompile(`^(?:~\s*(\d{1,6})(?:\s*\.\.\s*(\d{1,6}))?|` +
	`\{\s*(\d{0,6})\s*(,)?\s*(\d{0,6})\s*\})`)

// counted reads ~ N or ~ N..M after s, or GBNF's {N}, {N,}, {,M} or {N,M}.
func (r *ruleReader) counted(s element) (element, error) {
	match := countForm.FindStringSubmatch(r.text[r.pos:])
	if match == nil || match[1]+match[3]+match[5] == "" {
		return s, errors.New("~ needs a number, or two as 1..3, and braces as {1,3}")
	}
	r.pos += len(match[0])
	least, _ := strconv.Atoi(match[1] + match[3])
	most := least
	if text := match[2] + match[5]; text != "" {
		most, _ = strconv.Atoi(text)
	}
	switch {
	case most < least:
		return s, fmt.Errorf("%s is empty", match[0])
	case most > maxCount:
		return s, fmt.Errorf("%s repeats more than %d times", match[0], maxCount)
	}
	rest := r.group(nil)
	if match[4] != "" && match[5] == "" {
		rest = r.repeated(s, '*')
	}
	for range most - least { // from the inside out: each is followed by the rest, or ends
		rest = r.repeated(r.group([]element{s, rest}), '?')
	}
	return r.group(append(slices.Repeat([]element{s}, least), rest)), nil
}

// flags reads the flags after an expression, and rewrites it for this syntax: Lark's dot only
// excludes line feeds.
func (r *ruleReader) flags(expression string) (string, error) {
	prefix, all := "", false
	for ; r.pos < len(r.text) && strings.IndexByte("imslux", r.text[r.pos]) >= 0; r.pos++ {
		switch c := r.text[r.pos]; c {
		case 'i':
			prefix = "(?i)"
		case 's':
			all = true
		default:
			return "", fmt.Errorf("the flag %c behind an expression is not supported", c)
		}
	}
	if r.lark {
		expression = plainDots(expression, all)
	}
	return prefix + expression, nil
}

// plainDots replaces an expression's dots by classes: every character except the line feed, or
// every one.
func plainDots(expression string, all bool) string {
	dot := `[^\n]`
	if all {
		dot = `[^]`
	}
	var b strings.Builder
	class := false
	for i := 0; i < len(expression); i++ {
		switch c := expression[i]; {
		case c == '\\' && i+1 < len(expression):
			b.WriteByte(c)
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '.' && !class:
			b.WriteString(dot)
			continue
		}
		b.WriteByte(expression[i])
	}
	return b.String()
}
