package markdown

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// The dearest frames: a tail that is as long as a tail can be.
func BenchmarkTail(b *testing.B) {
	for name, text := range map[string]string{
		"paragraph": strings.Repeat(
			"Some **bold** words and `code` in a paragraph that does not end. ", longestBlock/66),
		"line": strings.Repeat("word ", longestBlock/5),
		"code": "```go\n" + strings.Repeat("\tx := f(1, \"two\") // a comment\n",
			longestBlock/32),
		"table": "| a | b |\n|---|---|\n" +
			strings.Repeat("| one cell | **two** `x` and more words |\n", longestBlock/50),
		"item": "- top\n" + strings.Repeat("  - an item with *words*\n", longestBlock/26),
		"wide": strings.Repeat("日本語のテキスト。", longestBlock/27),
	} {
		b.Run(name, func(b *testing.B) {
			s := New(term.Palette{}, 0)
			s.Push(text)
			for b.Loop() {
				s.tailAt = -1
				s.Rows(100, 100)
			}
		})
	}
}
