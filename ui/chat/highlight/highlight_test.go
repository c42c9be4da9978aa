package highlight

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write the golden files anew")

// marks are how the tokens of a golden file are marked: by the first letter of their kind.
var marks = [...]string{"", "c", "k", "t", "s", "n", "f", "g", "y", "v", "i", "d", "h"}

// read marks the tokens of a text and checks what holds for every text.
func read(t testing.TB, l *Language, text string) string {
	t.Helper()
	var b strings.Builder
	var state State
	var tokens []Token
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		before := state
		tokens, state = l.Line(tokens[:0], state, line)
		again, same := l.Line(nil, before, line)
		if same != state || fmt.Sprint(again) != fmt.Sprint(tokens) {
			t.Fatalf("%s: line %q has other tokens when it is read again", l.names[0], line)
		}
		sum, last := "", Kind(255)
		for _, tok := range tokens {
			if tok.Text == "" || tok.Kind >= Kind(len(marks)) {
				t.Fatalf("%s: token %v of %q", l.names[0], tok, line)
			}
			if tok.Kind == last {
				t.Fatalf("%s: two neighbours of kind %d in %q", l.names[0], last, line)
			}
			if utf8.ValidString(line) && !utf8.ValidString(tok.Text) {
				t.Fatalf("%s: a character of %q is cut", l.names[0], line)
			}
			last = tok.Kind
			sum += tok.Text
			if tok.Kind == Text {
				b.WriteString(tok.Text)
			} else {
				b.WriteString("⟨" + marks[tok.Kind] + " " + tok.Text + "⟩")
			}
		}
		if sum != line {
			t.Fatalf("%s: the tokens of %q are %q", l.names[0], line, sum)
		}
	}
	return b.String()
}

func samples(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.code")
	if err != nil || len(files) == 0 {
		t.Fatal("no samples", err)
	}
	all := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".code")] = strings.TrimSuffix(string(b), "\n")
	}
	return all
}

func TestGolden(t *testing.T) {
	seen := map[*Language]bool{}
	for name, text := range samples(t) {
		l := Find(name)
		if l == nil {
			t.Errorf("%s is not known", name)
			continue
		}
		seen[l] = true
		got := read(t, l, text) + "\n"
		path := filepath.Join("testdata", name+".tokens")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs\ngot:\n%s\nwant:\n%s", path, got, want)
		}
	}
	for _, l := range languages() {
		if !seen[l] && l.names[0][0] != '.' {
			t.Errorf("%s has no sample", l.names[0])
		}
	}
}

func TestFind(t *testing.T) {
	for name, want := range map[string]string{
		"Go": "go", "C++": "c++", "c#": "c#", "JSX": "javascript", "{.python}": "python",
		"js {1,3-5}":     "javascript",
		"python:main.py": "python", "sh": "bash", "Dockerfile": "dockerfile", "yml": "yaml",
		" rust ": "rust",
	} {
		if l := Find(name); l == nil || l.names[0] != want {
			t.Errorf("%q is %v, not %s", name, l, want)
		}
	}
	for _, name := range []string{"", "text", "plaintext", "nothing", "g", " ", "go2"} {
		if l := Find(name); l != nil {
			t.Errorf("%q is %s", name, l.names[0])
		}
	}
	seen := map[string]string{}
	for _, l := range languages() {
		for _, name := range l.names {
			if seen[name] != "" {
				t.Errorf("%q is %s and %s", name, seen[name], l.names[0])
			}
			seen[name] = l.names[0]
		}
	}
}

// What the scanner takes for granted of the table.
func TestTable(t *testing.T) {
	for _, l := range languages() {
		if len(l.regions) > 64 || len(l.regions) == 0 {
			t.Errorf("%s has %d regions", l.names[0], len(l.regions))
		}
		for i, r := range l.regions {
			switch {
			case r.open == "",
				r.close == "" && (r.has('L') || r.has('N') || r.has('C') || r.code != nil ||
					r.hole != ""),
				r.hole != "" && !strings.ContainsAny(r.hole, "{("):
				t.Errorf("%s: region %d is %+v", l.names[0], i, r)
			}
			for j, earlier := range l.regions[:i] {
				if earlier.forms == r.forms && strings.HasPrefix(r.open, earlier.open) {
					t.Errorf("%s: region %d is never reached, %d takes it", l.names[0], i, j)
				}
			}
		}
	}
}

// A region open at the end of a text affects the next line, as its language says.
func TestUnfinished(t *testing.T) {
	for _, c := range []struct{ lang, text, want string }{
		{"go", "s := \"not closed\nx := 1", "s := ⟨s \"not closed⟩\nx := ⟨n 1⟩"},
		{"go", "/* a\nb", "⟨c /* a⟩\n⟨c b⟩"},
		{"rust", "/* a /* b */\nc */ 1", "⟨c /* a /* b */⟩\n⟨c c */⟩ ⟨n 1⟩"},
		{"python", "'''a\nb\n''' + 1", "⟨s '''a⟩\n⟨s b⟩\n⟨s '''⟩ + ⟨n 1⟩"},
		{"python", "s = f\"{a\nb = 1", "s = ⟨s f\"{⟩a\nb = ⟨n 1⟩"},
		{"js", "`a ${b +\nc} d` + 1", "⟨s `a ${⟩b +\nc⟨s } d`⟩ + ⟨n 1⟩"},
		{"js", "a = b / c; d = e / f // g", "a = b / c; d = e / f ⟨c // g⟩"},
		{"js", "`${`${`${`x`}`}`}` + 1", "⟨s `${`${`${`x`}`}`}`⟩ + ⟨n 1⟩"},
		{"c++", "R\"(x\" )\" 1", "⟨s R\"(x\" )\"⟩ ⟨n 1⟩"},
		{"bash", "cat <<EOF\nx\n  EOF\nls", "⟨f cat⟩ ⟨s <<EOF⟩\n⟨s x⟩\n⟨s   EOF⟩\n⟨f ls⟩"},
		{"bash", "a && \\\n b c", "⟨f a⟩ && \\\n ⟨f b⟩ c"},
		{"yaml", "a: |\n  x: 1\n\n  y\nb: 1", "⟨y a⟩: |\n  ⟨y x⟩: ⟨n 1⟩\n\n  y\n⟨y b⟩: ⟨n 1⟩"},
		{"html", "<a\n b='1'>x", "⟨g <a⟩\n ⟨y b⟩=⟨s '1'⟩⟨g >⟩x"},
		{"markdown", "~~~\n# x\n~~~\n# y", "⟨s ~~~⟩\n⟨s # x⟩\n⟨s ~~~⟩\n⟨h # y⟩"},
		{"lua", "--[[ a\n]] x = 1", "⟨c --[[ a⟩\n⟨c ]]⟩ x = ⟨n 1⟩"},
	} {
		if got := read(t, Find(c.lang), c.text); got != c.want {
			t.Errorf("%s %q\ngot  %q\nwant %q", c.lang, c.text, got, c.want)
		}
	}
}

// Any text in any language: its tokens are the text, and nothing fails.
func FuzzLine(f *testing.F) {
	i := 0
	for _, text := range samples(f) {
		for range languages() {
			f.Add(uint8(i%len(languages())), text[:min(len(text), 300)])
			i += 7
			if i%5 == 0 {
				break
			}
		}
	}
	for i := range languages() {
		f.Add(uint8(i), "\\\x00\"'`#/*<!--<<<A ${ #{ \\( R\"( [==[ é\\é '''\n\"\"\" é'é'é @é $é "+
			"-é :é\n- |\n x\n<script a='\n<?php ?>")
	}
	f.Fuzz(func(t *testing.T, n uint8, text string) {
		read(t, languages()[int(n)%len(languages())], text)
	})
}

// Every language on every other one's sample and its pieces, as with a wrong name after a fence.
func TestEveryLanguageReadsEveryText(t *testing.T) {
	for _, text := range samples(t) {
		for _, l := range languages() {
			read(t, l, text)
			read(t, l, text[len(text)/3:])
		}
	}
}

func BenchmarkLine(b *testing.B) {
	for name, text := range samples(b) {
		l, rows := Find(name), strings.Split(text, "\n")
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			var tokens []Token
			for b.Loop() {
				var state State
				for _, row := range rows {
					tokens, state = l.Line(tokens[:0], state, row)
				}
			}
		})
	}
}
