package highlight

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// A line of eight times the length may cost eight times as much, not sixty-four times.
func TestNoLineIsQuadratic(t *testing.T) {
	pieces := []string{" ", "\"", "'", "`", "/", "/[", "</", "<a ", "<!--", "<?", "${", "`${",
		"\"#{", "{", "(", "$(", "\"$(", "#", "/*", "{-", "[==[", "[=", "r#", "r#\"",
		"R\"x", "'a", "'\\", "%w[", "q{", "s/", "<<A", "<<1", "- ", "a: ", "&a ", "]( ", "**",
		"** ", "__ ", "`` ", "a=", "a-", "a.", "1.", "1-", ":a", "@a", "$a", "\\", "a", "é",
		"\"\" ", "\"a\"  ", "{};", "a:", "</script", "<script>", "?>", "--[", "!", "&x"}
	const short, long = 1 << 10, 8 << 10
	for _, l := range languages() {
		for _, p := range pieces {
			cost := func(n int) float64 {
				line := strings.Repeat(p, n/len(p))
				var state State
				begun := hosttest.ProcessTime()
				_, state = l.Line(nil, state, line)
				_, _ = l.Line(nil, state, line)
				return (hosttest.ProcessTime() - begun).Seconds()
			}
			if cost(long) < 0.005 {
				continue // 0.3 us a byte: no square of this length is as fast
			}
			// something else may have taken the processor's time of this process: the best of a few
			a, b := cost(short), cost(long)
			for range 4 {
				a, b = min(a, cost(short)), min(b, cost(long))
			}
			if b > 0.005 && b > 24*max(a, 1e-4) {
				t.Errorf("%s, %q again and again: %.1f ms for %d bytes, %.1f ms for %d", l.names[0],
					p, a*1e3, short, b*1e3, long)
			}
		}
	}
}
