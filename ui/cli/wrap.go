// Lines broken between words: the usages of flags in --help, and the report of ossrun doctor where
// a terminal shows it. In a pipe or a file a fact of the report is one line, however long.

package cli

import (
	"strings"
	"unicode/utf8"
)

// reportWidth is that of the narrowest usual terminal, in columns.
const reportWidth = 80

// folded breaks each line of a text before it is wider than width. The rest of a line stands under
// its second column, or under its words where it has no first column.
func folded(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if i := strings.Index(line, "  "); i > 0 {
			indent = i + len(line[i:]) - len(strings.TrimLeft(line[i:], " "))
		}
		b.WriteString(line[:indent])
		writeWords(&b, line[indent:], indent, indent+2, width)
	}
	return b.String()
}

// writeWords ends a line with the words of text: from column on, and from indent on in each further
// line, of which none is wider than width.
func writeWords(b *strings.Builder, text string, column, indent, width int) {
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteByte('\n')
}
