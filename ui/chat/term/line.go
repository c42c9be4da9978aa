// Where the first line of a growing text ends.

package term

import (
	"strings"
	"unicode/utf8"
)

// FirstLine returns the first line of text, without its end, and the bytes that it takes with it;
// size is 0 while the line has not ended. A line that is longer than longest ends at the next
// blank, and where none comes it is cut: text that never ends a line must not make each frame
// dearer than the last. Where a line ends does not depend on how much of what follows has come.
func FirstLine(text string, longest int) (line string, size int) {
	window := text[:min(len(text), 2*longest)]
	end := strings.IndexByte(window, '\n')
	if end < 0 || end > longest {
		if len(window) > longest {
			if blank := strings.IndexByte(window[longest:], ' '); blank >= 0 &&
				(end < 0 || longest+blank < end) {
				end = longest + blank
			}
		}
	}
	if end >= 0 {
		return text[:end], end + 1
	}
	if len(text) <= 2*longest {
		return "", 0
	}
	cut := 2 * longest
	for cut > longest && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut], cut
}
