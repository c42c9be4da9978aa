package chat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/ossrun/ossrun/ui/chat/markdown"
	"github.com/ossrun/ossrun/ui/chat/screentest"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// TestPage: however an answer arrives, at its end the terminal shows all of it once, in the chat's
// rows, with no broken word; on a terminal of few rows too.
func TestPage(t *testing.T) {
	var code strings.Builder
	for i := range 30 {
		fmt.Fprintf(&code, "line%d := \"%d\"\n", i, i*i)
	}
	text := "# Sorting\n\nA list is sorted with **slices.Sort**, which is stable for elements " +
		"that cannot be told apart, and takes `n log n` comparisons.\n\n```go\n" + code.String() +
		"```\n\n| a | b |\n|---|---|\n| 1 | two |\n\n1. first\n2. second item, which is longer than " +
		"one row of this narrow terminal\n\nThe end \x1b[31mof it."
	whole := markdown.New(term.Palette{}, 0)
	whole.Push(term.Clean(text))
	whole.End()
	stable, tail := whole.Rows(40, 40)
	want := ansi.Strip(strings.Join(append(stable[:len(stable):len(stable)], tail...), "\n"))
	for _, height := range []int{2, 9, 200} {
		for _, piece := range []int{1, 7, 100, len(text)} {
			tall, low := screentest.New(40, 200), screentest.New(40, height)
			for _, screen := range []*screentest.Screen{tall, low} {
				page := NewPage(crlf{screen}, term.Palette{}, 40, height)
				for rest := text; rest != ""; {
					n := min(piece, len(rest))
					if err := page.Push(rest[:n]); err != nil {
						t.Fatal(err)
					}
					rest = rest[n:]
				}
				if err := page.End(); err != nil {
					t.Fatal(err)
				}
				if len(screen.Unknown()) > 0 {
					t.Errorf("not understood: %q", screen.Unknown())
				}
			}
			if got := strings.TrimRight(tall.String(), "\n"); got != trimmed(want) {
				t.Errorf("height %d, pieces of %d:\n%s\nwant\n%s", height, piece, got, want)
			}
			rows := strings.Split(trimmed(want), "\n")
			last := strings.Join(rows[max(len(rows)-height+1, 0):], "\n")
			if got := strings.TrimRight(low.String(), "\n"); got != last {
				t.Errorf("height %d, pieces of %d: the screen has\n%s\nwant\n%s", height, piece,
					got, last)
			}
		}
	}
}

// trimmed is text without blanks at the ends of its lines.
func trimmed(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// crlf is what the terminal's driver makes of a line end.
type crlf struct{ to *screentest.Screen }

func (c crlf) Write(b []byte) (int, error) {
	return c.to.Write([]byte(strings.ReplaceAll(string(b), "\n", "\r\n")))
}
