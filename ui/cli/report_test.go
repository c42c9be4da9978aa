package cli

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestFolded: no line is wider, no word is lost, and continuation lines start in their own column.
func TestFolded(t *testing.T) {
	text := "gpus    RTX 4090: sm_89, 24564 MiB, 45 °C\n" +
		"        H200: sm_90\n" +
		"models  20b: not here\n" +
		"          GPUs: layers 0-23 on GPU 0\n" +
		"\n" +
		"config  /a/very/long/path/that/is/one/word (read)\n"
	want := "gpus    RTX 4090: sm_89,\n" +
		"          24564 MiB, 45\n" +
		"          °C\n" +
		"        H200: sm_90\n" +
		"models  20b: not here\n" +
		"          GPUs: layers\n" +
		"            0-23 on GPU\n" +
		"            0\n" +
		"\n" +
		"config  /a/very/long/path/that/is/one/word\n" +
		"          (read)\n"
	if got := foldLines(text, 24); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for width := 1; width < 60; width++ {
		got := foldLines(text, width)
		if a, b := strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(text),
			" "); a != b {
			t.Errorf("%d columns: %q", width, a)
		}
		for line := range strings.Lines(got) {
			line = strings.TrimRight(line, "\n")
			if n := utf8.RuneCountInString(line); n > width &&
				strings.Contains(strings.TrimLeft(line, " "), " ") &&
				!strings.Contains(strings.TrimLeft(line, " "), "  ") {
				t.Errorf("%d columns: %q has %d", width, line, n)
			}
		}
	}
}
