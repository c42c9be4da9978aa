// Column widths of text, wrapping into rows, and the end of the first line of a growing text.

package term

import (
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	"github.com/rivo/uniseg"
)

// Wrap breaks spans into rows of at most width columns (and at least one). A "\n" inside a span
// ends a row. Rows break at blanks, which are dropped there, and between wide characters; longer
// words are cut. Other blanks are kept.
func Wrap(spans []Span, width int) []Row {
	w := wrapper{width: max(width, 1)}
	for _, s := range spans {
		w.span(s)
	}
	w.endWord()
	if len(w.row) > 0 || w.gapWidth > 0 || len(w.rows) == 0 {
		w.endRow()
	}
	return w.rows
}

type wrapper struct {
	width int
	rows  []Row

	row      Row // the row being filled
	rowWidth int

	gap      Row // blanks since the last word, written only if a word follows on the same row
	gapWidth int

	word      Row // may have several styles
	wordWidth int
	wide      bool // its last character is wide
}

func (w *wrapper) span(s Span) {
	text, start := s.Text, 0
	take := func(end int) {
		if end > start {
			w.word = append(w.word, Span{text[start:end], s.Style})
		}
		start = end
	}
	for i := 0; i < len(text); {
		switch text[i] {
		case ' ', '\t':
			take(i)
			w.endWord()
			n := 1
			if text[i] == '\t' {
				n = 4 - (w.rowWidth+w.gapWidth)%4
			}
			w.gap = append(w.gap, Span{"    "[:n], s.Style})
			w.gapWidth += n
			i++
			start = i
			continue
		case '\n':
			take(i)
			w.endWord()
			w.endRow()
			i++
			start = i
			continue
		}
		size, width := Cluster(text[i:])
		wide := width > 1
		if w.wordWidth > 0 && (wide && !trailing(text[i:]) || w.wide && !wide && text[i] >= '0') {
			take(i)
			w.endWord()
		}
		if w.wordWidth > 0 && w.wordWidth+width > w.width {
			take(i)
			w.endWord()
		}
		w.wordWidth += width
		w.wide = wide
		i += size
	}
	take(len(text))
}

// endWord adds the word, with the blanks before it if they fit, to this row or else a new one.
func (w *wrapper) endWord() {
	if w.wordWidth == 0 && len(w.word) == 0 {
		return
	}
	if w.rowWidth > 0 && w.rowWidth+w.gapWidth+w.wordWidth > w.width {
		w.endRow()
	}
	if w.rowWidth+w.gapWidth+w.wordWidth <= w.width {
		w.row = append(w.row, w.gap...)
		w.rowWidth += w.gapWidth
	}
	w.row = append(w.row, w.word...)
	w.rowWidth += w.wordWidth
	w.gap, w.gapWidth = w.gap[:0], 0
	w.word, w.wordWidth, w.wide = w.word[:0], 0, false
}

func (w *wrapper) endRow() {
	w.rows = append(w.rows, w.row)
	w.row, w.rowWidth = nil, 0
	w.gap, w.gapWidth = w.gap[:0], 0
}

// trailing reports whether s begins with a closing mark that must not begin a row.
func trailing(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return strings.ContainsRune("、。，．：；！？）」』】〉》〕’”", r)
}

// Chop cuts a row into pieces of at most width columns, for text whose blanks count. It cuts after
// a blank in a piece's second half if possible. Later pieces begin with lead, included in the
// width.
func Chop(row Row, width int, lead Span) []Row {
	width = max(width, 1)
	if row.Width() <= width {
		return []Row{row}
	}
	type piece struct { // a grapheme cluster
		Span
		width int
	}
	var pieces []piece
	for _, s := range row {
		for text := s.Text; text != ""; {
			n, w := Cluster(text)
			pieces = append(pieces, piece{Span{text[:n], s.Style}, w})
			text = text[n:]
		}
	}
	var rows []Row
	var current Row
	for len(pieces) > 0 {
		used, end, blank := current.Width(), 0, 0 // index after the last blank of the second half
		for end < len(pieces) && (end == 0 || used+pieces[end].width <= width) {
			used += pieces[end].width
			if end++; pieces[end-1].Text == " " && used > width/2 {
				blank = end
			}
		}
		if end < len(pieces) && blank > 0 {
			end = blank
		}
		for _, p := range pieces[:end] {
			if last := len(current) - 1; last >= 0 && current[last].Style == p.Style {
				current[last].Text += p.Text
			} else {
				current = append(current, p.Span)
			}
		}
		rows, pieces, current = append(rows, current), pieces[end:], nil
		if Width(lead.Text) < width {
			current = Row{lead}
		}
	}
	return rows
}

// Prefix puts first before the first row and later before the others.
func Prefix(rows []Row, first, later Span) []Row {
	for i, r := range rows {
		p := later
		if i == 0 {
			p = first
		}
		rows[i] = append(Row{p}, r...)
	}
	return rows
}

// FirstLine returns the first line of text without its end, and its size with it; size is 0 for an
// incomplete line. A line longer than limit ends at the next blank or is cut: endless text must not
// make each frame slower. The result never depends on how much text follows.
func FirstLine(text string, limit int) (line string, size int) {
	window := text[:min(len(text), 2*limit)]
	end := strings.IndexByte(window, '\n')
	if (end < 0 || end > limit) && len(window) > limit {
		blank := strings.IndexByte(window[limit:], ' ')
		if blank >= 0 && (end < 0 || limit+blank < end) {
			end = limit + blank
		}
	}
	if end >= 0 {
		return text[:end], end + 1
	}
	if len(text) <= 2*limit {
		return "", 0
	}
	cut := 2 * limit
	for cut > limit && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut], cut
}

// Terminals disagree about joined emoji: newer ones draw a grapheme cluster in two columns, older
// ones draw each of its characters. The larger width is used, so that a row fits on both: a
// narrower row does no harm, a wider one breaks the screen.

// columns is the width of single characters, the same in every locale.
var columns = &runewidth.Condition{StrictEmojiNeutral: true}

// Cluster returns the length in bytes and the width in columns of the first grapheme cluster of s,
// which is not empty.
func Cluster(s string) (size, width int) {
	if s[0] < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		return 1, 1
	}
	cluster, _, width, _ := uniseg.FirstGraphemeClusterInString(s, -1)
	sum := 0
	for _, r := range cluster {
		sum += columns.RuneWidth(r)
	}
	return len(cluster), max(width, sum)
}

// Width returns the maximum columns of s, which has no line ends or control characters.
func Width(s string) int {
	total := 0
	for len(s) > 0 {
		n, w := Cluster(s)
		total += w
		s = s[n:]
	}
	return total
}

// Cut returns the longest prefix of s in width columns, with "…" at its end if it is not all of s.
func Cut(s string, width int) string {
	if width <= 0 {
		return ""
	}
	end, used, fits := 0, 0, 0
	for end < len(s) {
		n, w := Cluster(s[end:])
		if used+w > width {
			return s[:fits] + "…"
		}
		end, used = end+n, used+w
		if used < width {
			fits = end
		}
	}
	return s
}
