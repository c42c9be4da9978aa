// The editor of the message.

package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// An editor holds the message in progress. Positions are byte offsets at borders of grapheme
// clusters, so an emoji or an accented letter is one step. Text is cleaned on insertion; rows are
// computed once per text and width.
type editor struct {
	text   string
	cursor int
	column int // the target column of Up and Down, -1: the cursor's

	cached editorRows
}

// editorRows are the wrapped rows of text at width.
type editorRows struct {
	text  string
	width int
	rows  []span
}

type span struct{ start, end int }

func (e *editor) set(text string) {
	e.text = text
	e.move(len(text))
}

// insert inserts typed or pasted text at the cursor, without escape sequences.
func (e *editor) insert(text string) {
	text = term.Clean(ansi.Strip(strings.ReplaceAll(text, "\r\n", "\n")))
	e.text = e.text[:e.cursor] + text + e.text[e.cursor:]
	e.move(e.cursor + len(text))
}

func (e *editor) move(to int) { e.cursor, e.column = to, -1 }

func (e *editor) remove(from, to int) {
	e.text = e.text[:from] + e.text[to:]
	e.move(from)
}

func (e *editor) moveLeft()  { e.move(e.prevCluster(e.cursor)) }
func (e *editor) moveRight() { e.move(e.nextCluster(e.cursor)) }
func (e *editor) wordLeft()  { e.move(e.prevWord()) }
func (e *editor) wordRight() { e.move(e.nextWord()) }
func (e *editor) backspace() { e.remove(e.prevCluster(e.cursor), e.cursor) }
func (e *editor) delete()    { e.remove(e.cursor, e.nextCluster(e.cursor)) }
func (e *editor) home()      { e.move(e.lineStart()) }
func (e *editor) end()       { e.move(e.lineEnd()) }

func (e *editor) deleteWordLeft()   { e.remove(e.prevWord(), e.cursor) }
func (e *editor) deleteWordRight()  { e.remove(e.cursor, e.nextWord()) }
func (e *editor) deleteToLineHome() { e.remove(e.lineStart(), e.cursor) }

// deleteToLineEnd deletes to the line's end, or the line break if already there.
func (e *editor) deleteToLineEnd() {
	end := e.lineEnd()
	if end == e.cursor {
		end = e.nextCluster(end)
	}
	e.remove(e.cursor, end)
}

func (e *editor) lineStart() int { return strings.LastIndexByte(e.text[:e.cursor], '\n') + 1 }

func (e *editor) lineEnd() int {
	if n := strings.IndexByte(e.text[e.cursor:], '\n'); n >= 0 {
		return e.cursor + n
	}
	return len(e.text)
}

// nextCluster is the end of the cluster that begins at pos.
func (e *editor) nextCluster(pos int) int {
	if pos == len(e.text) {
		return pos
	}
	n, _ := term.Cluster(e.text[pos:])
	return pos + n
}

// prevCluster is the beginning of the cluster that ends at pos.
func (e *editor) prevCluster(pos int) int {
	if pos == 0 {
		return 0
	}
	if c := e.text[pos-1]; c < utf8.RuneSelf {
		return pos - 1
	}
	from := strings.LastIndexByte(e.text[:pos-1], '\n') + 1
	for {
		next := e.nextCluster(from)
		if next >= pos {
			return from
		}
		from = next
	}
}

// prevWord and nextWord are the borders of the words around the cursor.
func (e *editor) prevWord() int {
	prefix := strings.TrimRightFunc(e.text[:e.cursor], notWord)
	return len(strings.TrimRightFunc(prefix, inWord))
}

func (e *editor) nextWord() int {
	suffix := strings.TrimLeftFunc(e.text[e.cursor:], notWord)
	return len(e.text) - len(strings.TrimLeftFunc(suffix, inWord))
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_'
}

func notWord(r rune) bool { return !inWord(r) }

// up and down move by a screen row; they return false on the first and last row, where the history
// takes over.
func (e *editor) up(width int) bool   { return e.vertical(width, -1) }
func (e *editor) down(width int) bool { return e.vertical(width, 1) }

func (e *editor) vertical(width, delta int) bool {
	rows := e.rows(width)
	current := e.row(rows)
	to := current + delta
	if to < 0 || to >= len(rows) {
		return false
	}
	column := e.column
	if column < 0 {
		column = cells(e.text[rows[current].start:e.cursor])
	}
	pos, used := rows[to].start, 0
	for pos < rows[to].end {
		n, w := cell(e.text[pos:])
		if used+w > column || e.text[pos] == '\n' {
			break
		}
		pos, used = pos+n, used+w
	}
	if pos == rows[to].end && pos > rows[to].start && to < len(rows)-1 &&
		rows[to+1].start == pos {
		pos = e.prevCluster(pos) // the end of a wrapped row is the beginning of the next
	}
	e.cursor, e.column = pos, column
	return true
}

// rows wraps the text into screen rows, at line ends and blanks, or inside words longer than a row.
func (e *editor) rows(width int) []span {
	width = max(width, 1)
	if e.cached.rows != nil && e.cached.text == e.text && e.cached.width == width {
		return e.cached.rows
	}
	var rows []span
	start, used, blank := 0, 0, -1
	end := func(stop, next int) {
		rows = append(rows, span{start, stop})
		start, used, blank = next, 0, -1
	}
	for i := 0; i < len(e.text); {
		if e.text[i] == '\n' {
			end(i, i+1)
			i++
			continue
		}
		n, w := cell(e.text[i:])
		if used+w > width && i > start {
			if e.text[i] == ' ' { // a blank at the border takes no column
				i++
				end(i, i)
				continue
			}
			to := i
			if blank > start {
				to = blank
			}
			end(to, to)
			used = cells(e.text[to:i])
		}
		i, used = i+n, used+w
		if e.text[i-1] == ' ' {
			blank = i
		}
	}
	rows = append(rows, span{start, len(e.text)})
	e.cached = editorRows{e.text, width, rows}
	return rows
}

func (e *editor) row(rows []span) int {
	i := 0
	for i+1 < len(rows) && rows[i+1].start <= e.cursor {
		i++
	}
	return i
}

// cell is Cluster with tabs and line ends.
func cell(s string) (size, width int) {
	switch s[0] {
	case '\t':
		return 1, 4
	case '\n':
		return 1, 0
	}
	return term.Cluster(s)
}

func cells(s string) int {
	total := 0
	for len(s) > 0 {
		n, w := cell(s)
		total += w
		s = s[n:]
	}
	return total
}

// view returns at most height rows around the cursor, with the cursor drawn, and its row and column
// in them.
func (e *editor) view(width, height int) (out []term.Row, row, column int) {
	rows := e.rows(width - 1) // the cursor needs a column after the last character
	current := e.row(rows)
	first := min(max(current-height/2, 0), max(len(rows)-height, 0))
	for i := first; i < min(first+height, len(rows)); i++ {
		r := rows[i]
		if i != current {
			out = append(out, term.Row{{Text: untab(e.text[r.start:r.end])}})
			continue
		}
		under, next := " ", e.cursor
		if e.cursor < r.end {
			next = e.nextCluster(e.cursor)
			under = untab(e.text[e.cursor:next])
		}
		out = append(out, term.Row{
			{Text: untab(e.text[r.start:e.cursor])},
			{Text: under, Style: term.Reverse},
			{Text: untab(e.text[next:max(r.end, next)])},
		})
	}
	return out, current - first, cells(e.text[rows[current].start:e.cursor])
}

func untab(s string) string { return strings.ReplaceAll(s, "\t", "    ") }
