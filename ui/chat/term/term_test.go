package term

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain\ttext\n", "plain\ttext\n"},
		{"\x1b[31mred\x1b[0m", "␛[31mred␛[0m"},
		{"a\r\nb\rc\r", "a\nb\nc\n"},
		{"bell\a nul\x00 del\x7f", "bell␇ nul␀ del␡"},
		{"c1 \u009b31m \u0085x", "c1 \ufffd31m \nx"},
		{"bad \xff\xfe utf8", "bad \ufffd\ufffd utf8"},
		{"left\u202eright\u2066x\u2069", "leftrightx"},
		{"a\u200eb\u200fc\u061cd", "abcd"},
		{"日本語 🎉 é", "日本語 🎉 é"},
	} {
		if got := Clean(c.in); got != c.want {
			t.Errorf("Clean(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestCleanerInPieces(t *testing.T) {
	var c Cleaner
	got := c.Push("a\r") + c.Push("\nb\r") + c.Push("c") + c.Push("\r") + c.Flush()
	if want := "a\nb\nc\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzPaintIsSafe(f *testing.F) {
	f.Add("\x1b]0;title\x07 \x9b31m \u009d x", uint16(Bold|Red), 7)
	f.Add("日本語\u202e👩‍👩‍👧\r\n\tx", uint16(0), 3)
	f.Fuzz(func(t *testing.T, s string, style uint16, width int) {
		width = 1 + abs(width)%90
		style = style&^15 | style%7
		for _, row := range Wrap([]Span{{Clean(s), Style(style)}}, width) {
			if w := row.Width(); w > max(width, 20) {
				t.Fatalf("row of %d columns, asked for %d: %v", w, width, row)
			}
			unsafe(t, Palette{}.Paint(row))
		}
		unsafe(t, Palette{}.Paint(Row{{s, Style(style)}}))
	})
}

// FuzzClean: text that comes in pieces is cleaned as it is at once, clean text stays as it is, and
// only line ends and tabs are left of what a terminal acts on.
func FuzzClean(f *testing.F) {
	f.Add("a\r\nb\r\r\n\x1b]0;title\x07 \x9b31m \u009d\u202e\xff", uint64(1))
	f.Add("\r", uint64(2))
	f.Fuzz(func(t *testing.T, s string, seed uint64) {
		want := Clean(s)
		unsafe(t, strings.NewReplacer("\n", "", "\t", "").Replace(want))
		if again := Clean(want); again != want {
			t.Fatalf("%q is cleaned to %q, and that to %q", s, want, again)
		}
		var c Cleaner
		var got strings.Builder
		for rest, chance := s, rand.New(rand.NewPCG(seed, 1)); rest != ""; {
			n := 1 + chance.IntN(len(rest))
			for n < len(rest) && !utf8.RuneStart(rest[n]) { // streams are cut between characters
				n++
			}
			got.WriteString(c.Push(rest[:n]))
			rest = rest[n:]
		}
		if got.WriteString(c.Flush()); got.String() != want {
			t.Fatalf("in pieces %q, at once %q", got.String(), want)
		}
	})
}

// unsafe fails on anything in painted text but printable characters and SGR sequences.
func unsafe(t *testing.T, s string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Fatalf("invalid UTF-8: %q", s)
	}
	for rest := s; rest != ""; {
		if strings.HasPrefix(rest, "\x1b[") {
			end := strings.IndexFunc(rest[2:], func(r rune) bool {
				return r != ';' &&
					!unicode.IsDigit(r)
			})
			if end < 0 || rest[2+end] != 'm' {
				t.Fatalf("not an SGR sequence in %q", s)
			}
			rest = rest[3+end:]
			continue
		}
		r, n := utf8.DecodeRuneInString(rest)
		if unicode.Is(unicode.Cc, r) || isHidden(r) {
			t.Fatalf("control character %U in %q", r, s)
		}
		rest = rest[n:]
	}
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

func text(rows []Row) []string {
	var out []string
	for _, r := range rows {
		var s strings.Builder
		for _, p := range r {
			s.WriteString(p.Text)
		}
		out = append(out, s.String())
	}
	return out
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  []string
	}{
		{"the quick brown fox", 10, []string{"the quick", "brown fox"}},
		{"a abcdefghijkl b", 5, []string{"a", "abcde", "fghij", "kl b"}},
		{"  indented  twice", 20, []string{"  indented  twice"}},
		{"one\n\ntwo\n", 20, []string{"one", "", "two"}},
		{"日本語のテキスト", 7, []string{"日本語", "のテキ", "スト"}},
		{"日本語。次の文", 6, []string{"日本", "語。次", "の文"}},
		{"", 5, []string{""}},
		{"a\tb", 20, []string{"a   b"}},
		{"👩‍👩‍👧 x", 8, []string{"👩‍👩‍👧 x"}},
	} {
		got := text(Wrap([]Span{{c.in, Plain}}, c.width))
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
			t.Errorf("Wrap(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

func TestWrapKeepsStylesInsideAWord(t *testing.T) {
	rows := Wrap([]Span{{"aa b", Plain}, {"bb", Bold}, {"b cc", Plain}}, 5)
	if got := fmt.Sprintf("%q", text(rows)); got != `["aa" "bbbb" "cc"]` {
		t.Errorf("rows %s", got)
	}
	if got := (Palette{}).Paint(rows[1]); got != "b\x1b[1mbb\x1b[0mb" {
		t.Errorf("painted %q", got)
	}
}

func TestPalette(t *testing.T) {
	row := Row{{"a", Bold | Red}, {"b", Bold | Red}, {"c", Dim | Cyan}, {"d", Plain}}
	if got, want := (Palette{}).Paint(row), "\x1b[1;31mab\x1b[0m\x1b[2;36mc\x1b[0md"; got != want {
		t.Errorf("colour: %q, want %q", got, want)
	}
	if got, want := (Palette{NoColor: true}).Paint(row),
		"\x1b[1mab\x1b[0m\x1b[2mc\x1b[0md"; got != want {
		t.Errorf("no colour: %q, want %q", got, want)
	}
}

func TestChopAndCut(t *testing.T) {
	got := text(Chop(Row{{"abc  defgh", Plain}}, 5, Span{"> ", Dim}))
	if fmt.Sprintf("%q", got) != `["abc  " "> def" "> gh"]` {
		t.Errorf("Chop: %q", got)
	}
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{{"hello", 5, "hello"}, {"hello", 4, "hel…"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"},
		{"x", 0, ""}} {
		if got := Cut(c.in, c.width); got != c.want || Width(got) > c.width {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

func TestFirstLine(t *testing.T) {
	for _, c := range []struct {
		text string
		line string
		size int
	}{
		{"abc", "", 0},
		{"abc\nd", "abc", 4},
		{"0123456789 0123\n", "0123456789", 11},
		{"01234567890123456\n", "0123456789012345", 16},
		{"0123456789012345", "", 0},
		{"日日日日日日", "日日日日日", 15},
		{"0123456789\n x", "0123456789", 11},
	} {
		line, size := FirstLine(c.text, 8)
		if line != c.line || size != c.size {
			t.Errorf("FirstLine(%q) = %q, %d, want %q, %d", c.text, line, size, c.line, c.size)
		}
		// the text so far may leave it open, but not end it elsewhere
		for n := range len(c.text) {
			if l, s := FirstLine(c.text[:n], 8); s != 0 && (l != line || s != size) {
				t.Errorf("FirstLine(%q) = %q, %d, of the whole %q, %d", c.text[:n], l, s, line,
					size)
			}
		}
	}
}

func TestParseTheme(t *testing.T) {
	for in, want := range map[string]Theme{"dark": Dark, "light": Light, "": Dark,
		"light, Red=magenta":          {Cyan: Blue, Yellow: Magenta, Green: Blue, Red: Magenta},
		"green=none,cyan=bright-cyan": {Red: 9, Green: noColour, Blue: 12, Magenta: 13, Cyan: 14}} {
		if got, err := ParseTheme(in); err != nil || got != want {
			t.Errorf("%q: %v, want %v: %v", in, got, want, err)
		}
	}
	for _, in := range []string{"sepia", "red", "red=pink", "white=red", "light,light", "none=red"} {
		if got, err := ParseTheme(in); err == nil {
			t.Errorf("%q is %v", in, got)
		}
	}
	p := Palette{Theme: Theme{Green: noColour, Cyan: 14}}
	if got := p.Paint(Row{{"a", Green | Bold}, {"b", Cyan}}); got != "\x1b[1ma\x1b[0m\x1b[96mb\x1b[0m" {
		t.Errorf("painted %q", got)
	}
}
