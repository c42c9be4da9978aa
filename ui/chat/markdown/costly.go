// Text shown unparsed: so many marks that parsing would take longer than a frame. The parser's time
// is quadratic in their number.

package markdown

import (
	"strings"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// maxMarks are limits for a block, far above real texts of 16 KiB.
var maxMarks = map[string]int{"[": 300, "*": 800, "_": 800, "`": 800, "$": 800, `\`: 800}

// maxNesting is how many lists and quotes may begin in one line.
const maxNesting = 24

func costly(source string) bool {
	for mark, most := range maxMarks {
		if strings.Count(source, mark) > most {
			return true
		}
	}
	for line := range strings.Lines(source) {
		for depth := 0; ; depth++ {
			line = strings.TrimLeft(line, " \t\n")
			n := 1
			if !strings.HasPrefix(line, ">") {
				if line == "" {
					break
				}
				if n = marker(line); n == 0 {
					break
				}
			}
			if depth == maxNesting {
				return true
			}
			line = line[n:]
		}
	}
	return false
}

func plain(source string, width int) (rows []term.Row) {
	for line := range strings.Lines(source) {
		rows = append(rows, term.Wrap([]term.Span{{Text: strings.TrimRight(line, "\n")}}, width)...)
	}
	return rows
}
