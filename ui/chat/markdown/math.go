// Formulas as text: a table of LaTeX's commands and Unicode's characters.
//
// A terminal has one line a row, so what is set in two dimensions is written in one: a/b, √x, xⁿ.
// What must stay true: a formula that has anything outside the table, or that is no whole formula,
// is shown as it was written, every character of it; nothing that was written is left out of one
// that is converted, but the commands that the table replaces and the braces that only group.

package markdown

import (
	"strings"
	"unicode/utf8"
)

// Math is a formula as text, or as it is where it cannot be written so.
func Math(latex string) string {
	m := mathReader{rest: latex}
	text, ok := m.list(0)
	if !ok || m.rest != "" || !utf8.ValidString(latex) || strings.TrimSpace(text) == "" {
		return latex
	}
	return strings.Join(strings.Fields(text), " ")
}

// deepest bounds nesting.
const deepest = 30

type mathReader struct {
	rest string
	deep int
}

// list reads atoms up to a closing mark, which stays; 0 is the formula's end.
func (m *mathReader) list(end byte) (string, bool) {
	if m.deep++; m.deep > deepest {
		return "", false
	}
	defer func() { m.deep-- }()
	var b strings.Builder
	for m.rest != "" && (end == 0 || m.rest[0] != end) {
		switch c := m.rest[0]; c {
		case '^', '_':
			m.rest = m.rest[1:]
			inner, ok := m.atom()
			if !ok || strings.TrimSpace(inner) == "" {
				return "", false
			}
			b.WriteString(script(c, strings.TrimSpace(inner)))
		case '}', '&', '~', '#', '%', '$':
			return "", false
		default:
			text, ok := m.atom()
			if !ok {
				return "", false
			}
			b.WriteString(text)
		}
	}
	return b.String(), end == 0 || m.rest != ""
}

// group reads what stands between a mark and its end.
func (m *mathReader) group(open, end byte) (string, bool) {
	m.blanks()
	if m.rest == "" || m.rest[0] != open {
		return "", false
	}
	m.rest = m.rest[1:]
	inner, ok := m.list(end)
	if !ok {
		return "", false
	}
	m.rest = m.rest[1:]
	return inner, true
}

func (m *mathReader) blanks() { m.rest = strings.TrimLeft(m.rest, " \t\n") }

// atom reads a character, a command with what it takes, or a group.
func (m *mathReader) atom() (string, bool) {
	if m.rest == "" {
		return "", false
	}
	switch m.rest[0] {
	case '{':
		return m.group('{', '}')
	case '\\':
		return m.command()
	case '^', '_', '}', '&', '~', '#', '%', '$':
		return "", false
	case '\'':
		m.rest = m.rest[1:]
		return "′", true
	}
	_, n := utf8.DecodeRuneInString(m.rest)
	text := m.rest[:n]
	m.rest = m.rest[n:]
	return text, true
}

// command reads one with a backslash.
func (m *mathReader) command() (string, bool) {
	n := 1
	for n < len(m.rest) && isLetter(m.rest[n]) {
		n++
	}
	if n == 1 {
		if len(m.rest) < 2 {
			return "", false
		}
		c := m.rest[1]
		m.rest = m.rest[2:]
		switch c {
		case ',', ';', ':', ' ':
			return " ", true
		case '!':
			return "", true
		case '{', '}', '%', '$', '&', '#', '_':
			return string(c), true
		case '|':
			return "‖", true
		}
		return "", false
	}
	name := m.rest[1:n]
	m.rest = m.rest[n:]
	if text, ok := mathSymbols[name]; ok {
		return text, true
	}
	if text, ok := mathRelations[name]; ok {
		m.blanks()
		return " " + text + " ", true
	}
	if strings.Contains(mathWords, " "+name+" ") {
		if m.rest != "" && isLetter(m.rest[0]) {
			return "", false // never: letters belong to the name
		}
		return name, true
	}
	switch name {
	case "quad", "qquad":
		return "  ", true
	case "left", "right", "big", "Big", "bigl", "bigr", "Bigl", "Bigr":
		m.blanks()
		if strings.HasPrefix(m.rest, ".") {
			m.rest = m.rest[1:]
			return "", true
		}
		return m.atom()
	case "frac", "dfrac", "tfrac":
		over, ok := m.argument()
		under, fine := m.argument()
		return compound(over) + "/" + compound(under), ok && fine
	case "sqrt":
		return m.root()
	case "boxed":
		return m.group('{', '}')
	case "text", "mathrm", "operatorname", "mathbf", "mathit", "textbf", "textit", "mathsf":
		return m.words()
	case "mathbb":
		inner, ok := m.group('{', '}')
		text, known := mathBoards[inner]
		return text, ok && known
	}
	return "", false
}

// argument is what a command takes: a group or one atom.
func (m *mathReader) argument() (string, bool) {
	m.blanks()
	inner, ok := m.atom()
	return strings.TrimSpace(inner), ok && strings.TrimSpace(inner) != ""
}

func (m *mathReader) root() (string, bool) {
	sign := "√"
	if m.blanks(); strings.HasPrefix(m.rest, "[") {
		index, ok := m.group('[', ']')
		switch index = strings.TrimSpace(index); {
		case !ok:
			return "", false
		case index == "3":
			sign = "∛"
		case index == "4":
			sign = "∜"
		default:
			up, whole := mapped(index, mathUp)
			if !whole {
				return "", false
			}
			sign = up + "√"
		}
	}
	inner, ok := m.argument()
	return sign + compound(inner), ok
}

// words are a group that is no formula.
func (m *mathReader) words() (string, bool) {
	m.blanks()
	inner, rest, ok := strings.Cut(strings.TrimPrefix(m.rest, "{"), "}")
	if !strings.HasPrefix(m.rest, "{") || !ok || strings.ContainsAny(inner, `\{$^_&`) {
		return "", false
	}
	m.rest = rest
	return inner, true
}

// compound puts parentheses around what is more than one thing.
func compound(text string) string {
	inside, depth := text, 0
	if strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")") {
		for i, r := range text {
			switch r {
			case '(':
				depth++
			case ')':
				depth--
			}
			if depth == 0 && i < len(text)-1 {
				return "(" + text + ")"
			}
		}
		return text
	}
	for _, r := range inside {
		if strings.ContainsRune(" +-*/=<>,·×÷±∓", r) {
			return "(" + text + ")"
		}
	}
	return text
}

// script is a sub- or superscript: in small characters where each has one.
func script(mark byte, text string) string {
	table := mathUp
	if mark == '_' {
		table = mathDown
	}
	if small, ok := mapped(strings.ReplaceAll(text, " ", ""), table); ok {
		return small
	}
	if text == "′" || text == "°" || text == "∘" {
		return strings.ReplaceAll(text, "∘", "°")
	}
	if utf8.RuneCountInString(text) == 1 {
		return string(mark) + text
	}
	if inner := compound(text); strings.HasPrefix(inner, "(") {
		return string(mark) + inner
	}
	return string(mark) + "(" + text + ")"
}

// mapped is text in the characters of a table, if it has them all.
func mapped(text string, table map[rune]rune) (string, bool) {
	var b strings.Builder
	for _, r := range text {
		small, ok := table[r]
		if !ok {
			return "", false
		}
		b.WriteRune(small)
	}
	return b.String(), true
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
