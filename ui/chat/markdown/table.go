// Layout of tables.

package markdown

import (
	"strings"

	east "github.com/yuin/goldmark/extension/ast"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// minColumn is the least width of a narrowed column.
const minColumn = 5

// table lays out columns as wide as their cells. If they do not fit, the widest are narrowed and
// wrapped; if that does not fit either, each row becomes a list of "header: cell".
func (r *renderer) table(n *east.Table, width int) []term.Row {
	var cells [][][]term.Span // [row][column] spans
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var line [][]term.Span
		style := term.Plain
		if row.Kind() == east.KindTableHeader {
			style = term.Bold
		}
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			line = append(line, r.inline(nil, c, style))
		}
		cells = append(cells, line)
	}
	columns := len(n.Alignments)
	if columns == 0 || len(cells) == 0 {
		return nil
	}
	widths, words := make([]int, columns), make([]int, columns)
	for _, line := range cells {
		for i := 0; i < min(columns, len(line)); i++ {
			cell, word := textWidths(line[i])
			widths[i], words[i] = max(widths[i], cell), max(words[i], word)
		}
	}
	room := width - 3*(columns-1)
	if room < columns*minColumn && sum(widths) > room {
		return r.records(cells, width)
	}
	narrow(widths, words, room)
	var rows []term.Row
	for i, line := range cells {
		rows = append(rows, r.tableRow(line, widths, n.Alignments)...)
		if i == 0 {
			var bars []string
			for _, w := range widths {
				bars = append(bars, strings.Repeat("─", w))
			}
			rows = append(rows, term.Row{{Text: strings.Join(bars, "─┼─"), Style: term.Dim}})
		}
	}
	return rows
}

// tableRow lays out one row, as high as its highest cell.
func (r *renderer) tableRow(line [][]term.Span, widths []int, align []east.Alignment) []term.Row {
	wrapped := make([][]term.Row, len(widths))
	height := 1
	for i := range widths {
		if i < len(line) {
			wrapped[i] = term.Wrap(line[i], widths[i])
		}
		height = max(height, len(wrapped[i]))
	}
	rows := make([]term.Row, height)
	for y := range rows {
		for i, w := range widths {
			if i > 0 {
				rows[y] = append(rows[y], term.Span{Text: " │ ", Style: term.Dim})
			}
			var cell term.Row
			if y < len(wrapped[i]) {
				cell = wrapped[i][y]
			}
			padLeft, padRight := 0, max(w-cell.Width(), 0)
			switch align[i] {
			case east.AlignRight:
				padLeft, padRight = padRight, 0
			case east.AlignCenter:
				padLeft = padRight / 2
				padRight -= padLeft
			}
			if i == len(widths)-1 {
				padRight = 0
			}
			rows[y] = append(rows[y], term.Span{Text: strings.Repeat(" ", padLeft)})
			rows[y] = append(rows[y], cell...)
			rows[y] = append(rows[y], term.Span{Text: strings.Repeat(" ", padRight)})
		}
	}
	return rows
}

func (r *renderer) records(cells [][][]term.Span, width int) []term.Row {
	var rows []term.Row
	for i, line := range cells[1:] {
		if i > 0 {
			rows = append(rows, term.Row{})
		}
		for j, cell := range line {
			var spans []term.Span
			if j < len(cells[0]) && len(cells[0][j]) > 0 {
				spans = append(append(spans, cells[0][j]...),
					term.Span{Text: ": ", Style: term.Bold})
			}
			rows = append(rows, term.Wrap(append(spans, cell...), width)...)
		}
	}
	return rows
}

// narrow shrinks the widest columns until all fit: first those wider than their longest word, then
// all.
func narrow(widths, words []int, room int) {
	for excess := sum(widths) - room; excess > 0; excess-- {
		widest, loose := -1, false
		for i, w := range widths {
			if l := w > words[i]; widest < 0 || l && !loose || l == loose && w > widths[widest] {
				widest, loose = i, l
			}
		}
		if widths[widest] <= 1 {
			return
		}
		widths[widest]--
	}
}

// textWidths returns the width of the longest line and of the longest word of a cell.
func textWidths(spans []term.Span) (line, word int) {
	lineNow, wordNow := 0, 0
	for _, s := range spans {
		if s.Text == "\n" {
			lineNow, wordNow = 0, 0
			continue
		}
		lineNow += term.Width(s.Text)
		line = max(line, lineNow)
		for i, part := range strings.Split(s.Text, " ") {
			if i > 0 {
				wordNow = 0
			}
			wordNow += term.Width(part)
			word = max(word, wordNow)
		}
	}
	return line, word
}

func sum(widths []int) int {
	total := 0
	for _, w := range widths {
		total += w
	}
	return total
}
