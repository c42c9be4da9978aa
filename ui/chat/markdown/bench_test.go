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
			"Some **bold** words and `code` in a paragraph that does not end. ", maxBlock/66),
		"line": strings.Repeat("word ", maxBlock/5),
		"code": "```go\n" + strings.Repeat("\tx := f(1, \"two\") // a comment\n",
			maxBlock/32),
		"table": "| a | b |\n|---|---|\n" +
			strings.Repeat("| one cell | **two** `x` and more words |\n", maxBlock/50),
		"item": "- top\n" + strings.Repeat("  - an item with *words*\n", maxBlock/26),
		"wide": strings.Repeat("日本語のテキスト。", maxBlock/27),
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
