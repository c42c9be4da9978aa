// Formulas as text, by a table of LaTeX's commands and Unicode's characters.
//
// A terminal has one line a row, so two-dimensional layout is flattened: a/b, √x, xⁿ. What must
// stay true: a formula with anything outside the table, or an incomplete one, is shown unchanged; a
// converted one loses nothing except replaced commands and grouping braces.

package markdown

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/ossrun/ossrun/assets"
)

// Math converts a formula to text, or returns it unchanged if it cannot.
func Math(latex string) string {
	m := mathReader{input: latex}
	text := m.list(0)
	if m.failed || m.input != "" || !utf8.ValidString(latex) || strings.TrimSpace(text) == "" {
		return latex
	}
	return strings.Join(strings.Fields(text), " ")
}

// maxDepth bounds the nesting of groups.
const maxDepth = 30

type mathReader struct {
	input  string
	depth  int
	failed bool // cannot be converted; input is empty then
}

func (m *mathReader) fail() string {
	m.failed, m.input = true, ""
	return ""
}

// list reads atoms up to a closing mark, which is not consumed; 0 is the formula's end.
func (m *mathReader) list(end byte) string {
	if m.depth++; m.depth > maxDepth {
		return m.fail()
	}
	defer func() { m.depth-- }()
	var b strings.Builder
	for m.input != "" && (end == 0 || m.input[0] != end) {
		if c := m.input[0]; c == '^' || c == '_' {
			m.input = m.input[1:]
			b.WriteString(script(c, m.nonEmpty(m.atom())))
		} else {
			b.WriteString(m.atom())
		}
	}
	if end != 0 && m.input == "" {
		return m.fail()
	}
	return b.String()
}

// group reads the text between a mark and its end.
func (m *mathReader) group(open, end byte) string {
	m.blanks()
	if m.input == "" || m.input[0] != open {
		return m.fail()
	}
	m.input = m.input[1:]
	inner := m.list(end)
	if !m.failed {
		m.input = m.input[1:]
	}
	return inner
}

func (m *mathReader) blanks() { m.input = strings.TrimLeft(m.input, " \t\n") }

// nonEmpty trims text and fails if it is empty.
func (m *mathReader) nonEmpty(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return m.fail()
	}
	return text
}

// atom reads a character, a command with its arguments, or a group.
func (m *mathReader) atom() string {
	if m.input == "" {
		return m.fail()
	}
	switch m.input[0] {
	case '{':
		return m.group('{', '}')
	case '\\':
		return m.command()
	case '^', '_', '}', '&', '~', '#', '%', '$':
		return m.fail()
	case '\'':
		m.input = m.input[1:]
		return "′"
	}
	_, n := utf8.DecodeRuneInString(m.input)
	text := m.input[:n]
	m.input = m.input[n:]
	return text
}

func (m *mathReader) command() string {
	n := 1
	for n < len(m.input) && isLetter(m.input[n]) {
		n++
	}
	if n == 1 {
		if len(m.input) < 2 {
			return m.fail()
		}
		c := m.input[1]
		m.input = m.input[2:]
		switch c {
		case ',', ';', ':', ' ':
			return " "
		case '!':
			return ""
		case '{', '}', '%', '$', '&', '#', '_':
			return string(c)
		case '|':
			return "‖"
		}
		return m.fail()
	}
	name := m.input[1:n]
	m.input = m.input[n:]
	if text := cmp.Or(formulas["symbols"][name], formulas["functions"][name]); text != "" {
		return text
	}
	if text, ok := formulas["relations"][name]; ok {
		m.blanks()
		return " " + text + " "
	}
	switch name {
	case "quad", "qquad":
		return "  "
	case "left", "right", "big", "Big", "bigl", "bigr", "Bigl", "Bigr":
		m.blanks()
		if strings.HasPrefix(m.input, ".") {
			m.input = m.input[1:]
			return ""
		}
		return m.atom()
	case "frac", "dfrac", "tfrac":
		numerator := parenthesize(m.argument())
		return numerator + "/" + parenthesize(m.argument())
	case "sqrt":
		sign := m.root()
		return sign + parenthesize(m.argument())
	case "boxed":
		return m.group('{', '}')
	case "text", "mathrm", "operatorname", "mathbf", "mathit", "textbf", "textit", "mathsf":
		return m.words()
	case "mathbb":
		if text, ok := formulas["boards"][m.group('{', '}')]; ok {
			return text
		}
	}
	return m.fail()
}

func (m *mathReader) argument() string {
	m.blanks()
	return m.nonEmpty(m.atom())
}

func (m *mathReader) root() string {
	if m.blanks(); !strings.HasPrefix(m.input, "[") {
		return "√"
	}
	switch index := strings.TrimSpace(m.group('[', ']')); index {
	case "3":
		return "∛"
	case "4":
		return "∜"
	default:
		up, ok := translate(index, mathUp)
		if !ok {
			return m.fail()
		}
		return up + "√"
	}
}

func (m *mathReader) words() string {
	m.blanks()
	inner, rest, ok := strings.Cut(strings.TrimPrefix(m.input, "{"), "}")
	if !strings.HasPrefix(m.input, "{") || !ok || strings.ContainsAny(inner, `\{$^_&`) {
		return m.fail()
	}
	m.input = rest
	return inner
}

// parenthesize adds parentheses to text of more than one term.
func parenthesize(text string) string {
	depth := 0
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
	if strings.ContainsAny(text, " +-*/=<>,·×÷±∓") {
		return "(" + text + ")"
	}
	return text
}

// script is a sub- or superscript, in small characters if all exist.
func script(mark byte, text string) string {
	table := mathUp
	if mark == '_' {
		table = mathDown
	}
	if small, ok := translate(strings.ReplaceAll(text, " ", ""), table); ok {
		return small
	}
	if text == "′" || text == "°" || text == "∘" {
		return strings.ReplaceAll(text, "∘", "°")
	}
	if utf8.RuneCountInString(text) == 1 {
		return string(mark) + text
	}
	if inner := parenthesize(text); strings.HasPrefix(inner, "(") {
		return string(mark) + inner
	}
	return string(mark) + "(" + text + ")"
}

func translate(text string, table map[rune]rune) (string, bool) {
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

// formulas are the tables of formulas.txt by name, from a command's name to its characters. A
// function is written as its name.
var formulas = func() map[string]map[string]string {
	all := map[string]map[string]string{}
	for line := range strings.Lines(strings.ReplaceAll(assets.Formulas, "\n  ", " ")) {
		f, table := strings.Fields(line), map[string]string{}
		for i := 1; i < len(f); i++ {
			if f[0] == "functions" {
				table[f[i]] = f[i]
			} else if i%2 == 0 {
				table[f[i-1]] = f[i]
			}
		}
		all[f[0]] = table
	}
	return all
}()

// charMap maps the characters of one text to those of another.
func charMap(from, to string) map[rune]rune {
	table, small := map[rune]rune{}, []rune(to)
	for i, r := range []rune(from) {
		table[r] = small[i]
	}
	return table
}

// Superscript and subscript characters.
var (
	mathUp = charMap("0123456789+-=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVWαβγδθφχ",
		"⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵅᵝᵞᵟᶿᵠᵡ")
	mathDown = charMap("0123456789+-=()aehijklmnoprstuvxβγρφχ",
		"₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ")
)
