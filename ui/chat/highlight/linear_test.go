package highlight

import (
	"strings"
	"testing"
)

// No byte of a line is looked ahead over again and again: a scanner looks at a few times the bytes
// that the line has, whatever repeats in it.
func TestNoLineIsQuadratic(t *testing.T) {
	pieces := []string{" ", "\"", "'", "`", "/", "/[", "</", "<a ", "<!--", "<?", "${", "`${",
		"\"#{", "{", "(", "$(", "\"$(", "#", "/*", "{-", "[==[", "[=", "r#", "r#\"",
		"R\"x", "'a", "'\\", "%w[", "q{", "s/", "<<A", "<<1", "- ", "a: ", "&a ", "]( ", "**",
		"** ", "__ ", "`` ", "a=", "a-", "a.", "1.", "1-", ":a", "@a", "$a", "\\", "a", "é",
		"\"\" ", "\"a\"  ", "{};", "a:", "</script", "<script>", "?>", "--[", "!", "&x"}
	for _, l := range languages() {
		for _, p := range pieces {
			line := strings.Repeat(p, 4<<10/len(p))
			var state State
			for range 2 {
				s := scanner{State: state, line: line, base: l}
				s.read()
				state = s.State
				if s.lookups > 4*len(line) {
					t.Errorf("%s, %q again and again: %d bytes are looked at in %d", l.names[0], p,
						s.lookups, len(line))
				}
			}
		}
	}
}
