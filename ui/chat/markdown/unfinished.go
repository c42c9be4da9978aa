// How the last block is shown while it is being written.

package markdown

import (
	"slices"
	"strings"
)

// An unfinished answer ends anywhere: inside "**bold", before the second line of a table. Shown
// unchanged, its marks would appear and vanish again. So undecided marks are withheld, and open
// ones are closed provisionally.

// undecided reports whether the last line has only characters that may become a mark.
func undecided(line string) bool {
	line = strings.TrimSpace(line)
	if line == "" {
		return false
	}
	if strings.Trim(line, "-=*+#>~`|_:\\[$ ") == "" {
		return true
	}
	digits := strings.TrimRight(line, ".)")
	return len(digits) <= 3 && len(line)-len(digits) <= 1 &&
		strings.Trim(digits, "0123456789") == ""
}

func unfinished(k kind, source string) string {
	body, last := "", source
	if i := strings.LastIndexByte(source, '\n'); i >= 0 {
		body, last = source[:i+1], source[i+1:]
	}
	if undecided(last) || k != fenced && k != formula && strings.HasSuffix(last, "[") {
		last = strings.TrimSuffix(last, "[")
		if undecided(last) {
			last = ""
		}
	}
	switch k {
	case fenced:
		if body == "" {
			return "" // the label waits for the language's full name
		}
		return body + last
	case formula:
		return "" // it cannot be converted before its end
	case table:
		if strings.Count(body, "\n") < 2 {
			return "" // not a table until the line under its header is complete
		}
		return body + last
	}
	if last == "" {
		return body
	}
	if strings.Count(body, "```")%2 == 1 || strings.Count(body, "~~~")%2 == 1 {
		return body + last // inside the code block of a list item
	}
	from := 0 // marks do not reach across paragraphs
	if i := strings.LastIndex(body, "\n\n"); i >= 0 {
		from = i + 2
	}
	text := body[from:] + last
	if start := openFormula(text); start >= 0 { // it begins in the last line
		text, last = text[:start], text[len(body)-from:start]
	}
	if trimmed := strings.TrimRight(text, "*_`~\\"); trimmed != text &&
		!strings.HasSuffix(trimmed, "\\") {
		// trailing marks may be part of the closing one
		open := openMarks(trimmed)
		if open != "" && open[0] == text[len(trimmed)] {
			return body[:from] + trimmed + open
		}
		text, last = trimmed, strings.TrimRight(last, "*_`~\\")
	}
	if open := openMarks(text); open != "" {
		return body[:from] + strings.TrimRight(text, " ") + open
	}
	return source[:len(body)] + last
}

// openFormula is the start of an unclosed formula at the end of text, or -1. It is withheld: an
// incomplete formula cannot be converted.
func openFormula(text string) int {
	start := max(strings.LastIndex(text, `\(`), strings.LastIndex(text, `\[`))
	if start < 0 || start > 0 && text[start-1] == '\\' {
		return -1
	}
	rest := text[start:]
	if strings.Contains(rest, formulaEnd(rest)) || strings.Contains(rest, "\n") {
		return -1
	}
	return start
}

// openMarks returns the marks that close the open code span, emphasis and link at the end of text.
func openMarks(text string) string {
	var stack []string
	for i := 0; i < len(text); {
		c := text[i]
		switch c {
		case '\\':
			mark := formulaEnd(text[i:])
			if i += 2; mark != "" {
				i += max(strings.Index(text[i:], mark), 0)
			}
		case '$':
			line, _, _ := strings.Cut(text[i:], "\n")
			prev := rune(' ')
			if i > 0 {
				prev = rune(text[i-1])
			}
			_, size := dollars(line, prev)
			i += max(size, 1)
		case '`':
			n := runLength(text[i:])
			ticks := text[i : i+n]
			end := closingTicks(text[i+n:], n)
			if end < 0 {
				return ticks + closeAll(stack)
			}
			i += n + end + n
		case '*', '_', '~':
			n := runLength(text[i:])
			stack = emphasis(stack, text, i, n)
			i += n
		case '[':
			if rest := openLink(text[i:]); rest != "" {
				return rest + closeAll(stack)
			}
			i++
		default:
			i++
		}
	}
	return closeAll(stack)
}

// openLink returns what closes the link at the start of s, if it may be unclosed: "[words",
// "[words]" or "[words](addr" at the end of the text.
func openLink(s string) string {
	if len(s) < 2 {
		return ""
	}
	end := strings.IndexByte(s, ']')
	switch {
	case end < 0 && strings.IndexByte(s, '\n') < 0 && isWord(s[1]) && (s[1] > '9' || s[1] < '0'):
		return "]()"
	case end < 2:
		return ""
	case end == len(s)-1:
		return "()"
	case end > 0 && s[end+1] == '(' && !strings.ContainsAny(s[end:], ")\n"):
		return ")"
	}
	return ""
}

// emphasis opens or closes marks for the run of n characters at text[i:], by CommonMark's rules as
// far as unfinished text needs them.
func emphasis(stack []string, text string, i, n int) []string {
	mark := text[i : i+n]
	blankBefore := i == 0 || strings.IndexByte(" \n\t", text[i-1]) >= 0
	blankAfter := i+n >= len(text) || strings.IndexByte(" \n\t", text[i+n]) >= 0
	wordBefore := i > 0 && isWord(text[i-1])
	wordAfter := i+n < len(text) && isWord(text[i+n])
	if mark[0] == '_' && wordBefore && wordAfter || mark[0] == '~' && n != 2 || n > 3 {
		return stack
	}
	if !blankBefore {
		for len(stack) > 0 && len(mark) > 0 && strings.HasPrefix(mark, stack[len(stack)-1]) {
			mark = mark[len(stack[len(stack)-1]):]
			stack = stack[:len(stack)-1]
		}
		if mark == "" {
			return stack
		}
	}
	if blankAfter || mark[0] == '_' && wordBefore {
		return stack
	}
	if len(mark) == 3 {
		return append(stack, mark[:2], mark[:1])
	}
	return append(stack, mark)
}

func closeAll(stack []string) string {
	slices.Reverse(stack)
	return strings.Join(stack, "")
}

// runLength is how often s repeats its first character at its start.
func runLength(s string) int { return len(s) - len(strings.TrimLeft(s, s[:1])) }

// closingTicks finds the run of exactly n backticks that closes a code span.
func closingTicks(s string, n int) int {
	for i := 0; i < len(s); {
		if s[i] != '`' {
			i++
			continue
		}
		m := runLength(s[i:])
		if m == n {
			return i
		}
		i += m
	}
	return -1
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}
