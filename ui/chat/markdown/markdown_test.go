package markdown

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/ossrun/ossrun/ui/chat/term"
)

var update = flag.Bool("update", false, "write the golden files anew")

func rows(p term.Palette, text string, width int) []string {
	s := New(p, 0)
	s.Push(term.Clean(text))
	s.End()
	stable, tail := s.Rows(width, width)
	return append(append([]string{}, stable...), tail...)
}

func strip(rows []string) string { return ansi.Strip(strings.Join(rows, "\n")) + "\n" }

func samples(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("no samples", err)
	}
	all := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".md")] = string(b)
	}
	return all
}

func TestGolden(t *testing.T) {
	for name, text := range samples(t) {
		for _, c := range []struct {
			suffix string
			got    string
		}{
			{".72", strip(rows(term.Palette{}, text, 72))},
			{".30", strip(rows(term.Palette{}, text, 30))},
			{".ansi", strings.ReplaceAll(strings.Join(rows(term.Palette{}, text, 72), "\n"), "\x1b",
				"␛") + "\n"},
			{".nocolor", strings.ReplaceAll(strings.Join(rows(term.Palette{NoColor: true}, text,
				72), "\n"), "\x1b", "␛") + "\n"},
		} {
			path := filepath.Join("testdata", name+c.suffix)
			if *update {
				if err := os.WriteFile(path, []byte(c.got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if c.got != string(want) {
				t.Errorf("%s differs\ngot:\n%s\nwant:\n%s", path, c.got, want)
			}
		}
	}
}

// Whatever pieces a text comes in, it looks the same; finished rows never change; no row is too
// wide.
func TestPiecesDoNotMatter(t *testing.T) {
	for name, text := range samples(t) {
		for seed := range uint64(4) {
			checkPieces(t, name, text, 20+int(seed)*25, seed)
		}
	}
}

func FuzzPieces(f *testing.F) {
	f.Add("# a\n- b\n  ```go\n  x\n```\n| a | b |\n|---|---|\n| c\n\n\\[ x \\]\n", 20, uint64(1))
	f.Add("1. **a `b\n\n> c\n---\n$$\nx\n", 10, uint64(2))
	f.Add("&#27;[31m <br> \\( a_b \\) ~~x~~ [l](http://x) ![i](y)", 40, uint64(3))
	f.Fuzz(func(t *testing.T, text string, width int, seed uint64) {
		text = text[:min(len(text), 600)] // every piece is rendered
		checkPieces(t, "fuzz", text, 8+int(uint(width)%100), seed)
	})
}

func checkPieces(t *testing.T, name, text string, width int, seed uint64) {
	t.Helper()
	text = term.Clean(text)
	want := rows(term.Palette{}, text, width)
	rng := rand.New(rand.NewPCG(seed, 7))
	s := New(term.Palette{}, 0)
	var before []string
	for rest := text; rest != ""; {
		n := min(1+rng.IntN(6), len(rest))
		s.Push(rest[:n])
		rest = rest[n:]
		stable, tail := s.Rows(width, width)
		for i, row := range before {
			if stable[i] != row {
				t.Fatalf("%s: finished row %d changed from %q to %q", name, i, row, stable[i])
			}
		}
		before = append(before[:0], stable...)
		for _, row := range tail {
			if w := ansi.StringWidth(row); w > width {
				t.Fatalf("%s: row of %d columns at width %d: %q", name, w, width, row)
			}
		}
	}
	s.End()
	stable, tail := s.Rows(width, width)
	got := strings.Join(append(append([]string{}, stable...), tail...), "\n")
	if got != strings.Join(want, "\n") {
		t.Fatalf("%s: in pieces at width %d\n%s\nat once\n%s", name, width, got,
			strings.Join(want, "\n"))
	}
	for row := range strings.SplitSeq(got, "\n") {
		if strings.ContainsFunc(ansi.Strip(row), func(r rune) bool {
			return r < ' ' || r >= 0x7f &&
				r < 0xa0
		}) {
			t.Fatalf("%s: control character in %q", name, row)
		}
		for _, seq := range strings.Split(row, "\x1b")[1:] {
			if end := strings.IndexByte(seq, 'm'); seq[0] != '[' || end < 0 ||
				strings.Trim(seq[1:end], "0123456789;") != "" {
				t.Fatalf("%s: escape sequence that is no SGR in %q", name, row)
			}
		}
	}
}

// A mark is never seen while it is being written: the letters on the screen are always a beginning
// of what they will be.
func TestTailDoesNotFlash(t *testing.T) {
	for _, text := range []string{
		"Some **bold words** and `a code span` here.",
		"An *italic* one, ***both***, ~~gone~~ and __strong__.",
		"See [the page](https://example.com/page) for more.",
		"# Heading\n\nText.",
		"- one\n- two **b**\n  - three\n1. four\n",
		"Text\n\n---\n\nMore",
		"So:\n\n```go\nfunc f() {}\n```\n\nDone.",
		"The sum \\( a_1 + b^2 \\) is it.",
		"> quoted **text**\n> more\n",
		"snake_case_name and 2 * 3 * 4",
	} {
		final := letters(strip(rows(term.Palette{}, text, 60)))
		s := New(term.Palette{}, 0)
		for i := range text {
			s.Push(text[i : i+1])
			stable, tail := s.Rows(60, 60)
			now := letters(strip(append(append([]string{}, stable...), tail...)))
			if !strings.HasPrefix(final, strings.TrimSuffix(strings.TrimSuffix(now, ")"), "(")) {
				t.Errorf("after %q the screen reads %q, which is no beginning of %q", text[:i+1],
					now, final)
			}
		}
	}
}

// letters is a screen without layout.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \n─", r) {
			return -1
		}
		return r
	}, s)
}

func TestTableWaitsForItsSecondLine(t *testing.T) {
	s := New(term.Palette{}, 0)
	s.Push("| a | b |\n|--")
	if _, tail := s.Rows(40, 40); len(tail) != 0 {
		t.Errorf("a header alone is shown: %q", tail)
	}
	s.Push("-|---|\n| x")
	_, tail := s.Rows(40, 40)
	if got := strip(tail); got != "a │ b\n──┼──\nx │ \n" {
		t.Errorf("table %q", got)
	}
}

func TestLongTextIsCut(t *testing.T) {
	for name, text := range map[string]string{
		"line":  strings.Repeat("word ", 20_000),
		"code":  "```go\n" + strings.Repeat("x := 1 // a comment\n", 5000) + "```\nafter",
		"table": "| a | b |\n|---|---|\n" + strings.Repeat("| one | two |\n", 5000),
		"word":  strings.Repeat("abcdefghij", 20_000),
		"quote": strings.Repeat("> said\n", 9000),
	} {
		s := New(term.Palette{}, 0)
		s.Push(text)
		stable, tail := s.Rows(60, 60)
		if len(s.blocks) < 2 || len(stable) < 300 || len(tail) > 2500 {
			t.Errorf("%s: %d blocks, %d and %d rows", name, len(s.blocks), len(stable), len(tail))
		}
		all := ansi.Strip(strings.Join(append(append([]string{}, stable...), tail...), "\n"))
		if name == "code" && (strings.Count(all, "  x := 1 // a comment") != 5000 ||
			!strings.Contains(all, "\nafter") || strings.Contains(all, "```")) {
			t.Errorf("code was damaged by the cut")
		}
		if name == "table" && strings.Count(all, "one │ two") != 5000 {
			t.Errorf("table was damaged by the cut: %d rows", strings.Count(all, "one │ two"))
		}
		if name == "word" && len(letters(all)) != 200_000 {
			t.Errorf("letters lost: %d", len(letters(all)))
		}
		if name == "line" && strings.Count(all, "word") != 20_000 {
			t.Errorf("words lost: %d", strings.Count(all, "word"))
		}
	}
}

// Formulas are no markdown: they are shown as text or as they were written, and prices are none.
func TestFormulas(t *testing.T) {
	for source, want := range map[string]string{
		`The set $\{1,2\}$ and \(\{a_1, b_2\}\) end.`: `The set {1,2} and {a₁, b₂} end.`,
		`So $x_1*y_1*z$ holds, $$a\_b$$ too.`:         `So x₁*y₁*z holds, a_b too.`,
		`It costs $5 and *not* $10.`:                  `It costs $5 and not $10.`,
		`Set $HOME and $PATH, or $HOME/$PATH.`:        `Set $HOME and $PATH, or $HOME/$PATH.`,
		`As $\overline{x_1}$ and $\{\vec{a}\}$.`:      `As \overline{x_1} and \{\vec{a}\}.`,
		`5$ or (6$)`:                                  `5$ or (6$)`,
	} {
		if got := strings.TrimSpace(strip(rows(term.Palette{}, source, 90))); got != want {
			t.Errorf("%s is shown as %q, want %q", source, got, want)
		}
	}
}

// Code has a label with its number, uses the width of the screen, and breaks at blanks.
func TestCodeBlocks(t *testing.T) {
	long := "call(" + strings.Repeat("argument, ", 14) + "last)"
	s := New(term.Palette{}, 3)
	s.Push("Text:\n\n```go\n" + long + "\n```\n\n- item\n\n  ```\n  two\n  ```\n")
	s.End()
	shown := func(width, wide int) string {
		stable, tail := s.Rows(width, wide)
		return ansi.Strip(strings.Join(append(slices.Clone(stable), tail...), "\n"))
	}
	if text := shown(100, 160); !strings.Contains(text, "  ┄ go · 4\n  "+long) ||
		!strings.Contains(text, "    ┄ 5\n    two") {
		t.Errorf("wide:\n%s", text)
	}
	for row := range strings.SplitSeq(shown(60, 60), "\n") {
		if w := ansi.StringWidth(row); w > 60 || w > 55 && !strings.HasSuffix(row, " ") {
			t.Errorf("row %q", row)
		}
	}
	if got := s.Code(); len(got) != 2 || got[0] != long+"\n" || got[1] != "two\n" {
		t.Errorf("code %q", got)
	}
}
