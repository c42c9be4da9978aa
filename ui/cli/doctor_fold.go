// Lines for a terminal: those of ossrun doctor's report are broken between words, under their own
// column. Whoever reads the report through a pipe or in a file gets one line a fact, whatever its
// length.

package cli

import (
	"strings"
	"unicode/utf8"
)

// reportWidth is that of the narrowest usual terminal, in columns.
const reportWidth = 80

// folded is a text of lines with each broken before it is wider than width. What follows stands
// under the second column, or under the words of a line that has no first one.
func folded(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if i := strings.Index(line, "  "); i > 0 {
			indent = i + len(line[i:]) - len(strings.TrimLeft(line[i:], " "))
		}
		column := indent
		b.WriteString(line[:indent])
		for i, word := range strings.Fields(line[indent:]) {
			n := utf8.RuneCountInString(word)
			switch {
			case i == 0:
			case column+1+n > width:
				b.WriteString("\n" + strings.Repeat(" ", indent+2))
				column = indent + 2
			default:
				b.WriteByte(' ')
				column++
			}
			b.WriteString(word)
			column += n
		}
		b.WriteByte('\n')
	}
	return b.String()
}
