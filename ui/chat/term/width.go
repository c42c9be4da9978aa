// How many columns text takes.

package term

import (
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
	"github.com/rivo/uniseg"
)

// Terminals disagree about the width of joined emoji: newer ones draw a whole grapheme cluster in
// two columns, older ones draw every character of it. The larger of the two is taken here, so that
// a row fits on both; a row that turns out narrower does no harm, one that turns out wider would
// break the screen.

// columns gives the width of single characters, the same in every locale.
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

// Width returns the columns that s takes at most. It has no line ends and no control characters.
func Width(s string) int {
	total := 0
	for len(s) > 0 {
		n, w := Cluster(s)
		total += w
		s = s[n:]
	}
	return total
}

// Cut returns the longest beginning of s that fits width columns, with "…" at its end where
// something was left out.
func Cut(s string, width int) string {
	if width <= 0 {
		return ""
	}
	at, used, fits := 0, 0, 0
	for at < len(s) {
		n, w := Cluster(s[at:])
		if used+w > width {
			return s[:fits] + "…"
		}
		at, used = at+n, used+w
		if used < width {
			fits = at
		}
	}
	return s
}
