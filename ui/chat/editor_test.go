package chat

import (
	"strings"
	"testing"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"
)

// shown is the text with the cursor as "|".
func (e *editor) shown() string { return e.text[:e.cursor] + "|" + e.text[e.cursor:] }

func TestEditor(t *testing.T) {
	for _, c := range []struct {
		name, start string
		do          func(e *editor)
		want        string
	}{
		{"insert in the middle", "ab", func(e *editor) { e.moveLeft(); e.insert("x") }, "ax|b"},
		{"backspace takes a whole cluster", "a👩‍👩‍👧", func(e *editor) { e.backspace() }, "a|"},
		{"accents are one step", "e\u0301x", func(e *editor) { e.moveLeft(); e.moveLeft() }, "|e\u0301x"},
		{"delete at the end", "a", func(e *editor) { e.delete() }, "a|"},
		{"words", "one two-three", func(e *editor) { e.wordLeft(); e.wordLeft() },
			"one |two-three"},
		{"word right", "one two", func(e *editor) { e.home(); e.wordRight() }, "one| two"},
		{"delete word", "one two  ", func(e *editor) { e.deleteWordLeft() }, "one |"},
		{"delete word right", "one two", func(e *editor) { e.home(); e.deleteWordRight() },
			"| two"},
		{"home is the line's", "one\ntwo", func(e *editor) { e.home() }, "one\n|two"},
		{"end is the line's", "one\ntwo", func(e *editor) { e.move(0); e.end() }, "one|\ntwo"},
		{"delete to the line's end", "one\ntwo", func(e *editor) { e.move(1); e.deleteToLineEnd() },
			"o|\ntwo"},
		{"and then the line end", "one\ntwo", func(e *editor) { e.move(3); e.deleteToLineEnd() },
			"one|two"},
		{"delete to the line's beginning", "one\ntwo",
			func(e *editor) { e.moveLeft(); e.deleteToLineHome() }, "one\n|o"},
		{"up keeps the column", "long line\nab\nlong line", func(e *editor) { e.up(40); e.up(40) },
			"long line|\nab\nlong line"},
		{"up and down", "abc\nx\nabc", func(e *editor) { e.moveLeft(); e.up(40); e.down(40) },
			"abc\nx\nab|c"},
		{"escape sequences are left out", "",
			func(e *editor) { e.insert("\x1b[31mred\x1b[m\r\n\x1b]0;t\aend\ttab") },
			"red\nend\ttab|"},
	} {
		var e editor
		e.set(c.start)
		c.do(&e)
		if got := e.shown(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestEditorRows(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"the quick brown fox", 10, "the quick |brown fox"},
		{"abcdefghijkl", 5, "abcde|fghij|kl"},
		{"日本語日本", 5, "日本|語日|本"},
		{"a\n\nb", 5, "a||b"},
		{"", 5, ""},
		{"12345 789", 5, "12345 |789"},
	} {
		var e editor
		e.set(c.text)
		var rows []string
		for _, r := range e.rows(c.width) {
			rows = append(rows, e.text[r.start:r.end])
		}
		if got := strings.Join(rows, "|"); got != c.want {
			t.Errorf("rows of %q at %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

// For any keys, the cursor is at a cluster's border, and the rows cover the text within the width.
func FuzzEditor(f *testing.F) {
	f.Add("one 日本 👩‍👩‍👧\ntwo", []byte("udlrbkwxneh"), 6)
	f.Fuzz(func(t *testing.T, text string, keys []byte, width int) {
		width = 2 + int(uint(width)%40)
		var e editor
		e.insert(text)
		for _, k := range keys {
			switch k % 16 {
			case 0:
				e.moveLeft()
			case 1:
				e.moveRight()
			case 2:
				e.up(width)
			case 3:
				e.down(width)
			case 4:
				e.backspace()
			case 5:
				e.delete()
			case 6:
				e.wordLeft()
			case 7:
				e.wordRight()
			case 8:
				e.home()
			case 9:
				e.end()
			case 10:
				e.insert("é日")
			case 11:
				e.insert("\n")
			case 12:
				e.deleteWordLeft()
			case 13:
				e.deleteToLineEnd()
			case 14:
				e.deleteToLineHome()
			case 15:
				e.deleteWordRight()
			}
			if e.cursor < 0 || e.cursor > len(e.text) || !utf8.ValidString(e.text[:e.cursor]) ||
				!utf8.ValidString(e.text) {
				t.Fatalf("cursor at %d in %q", e.cursor, e.text)
			}
			at := 0
			for _, r := range e.rows(width) {
				if skipped := e.text[at:r.start]; skipped != "" && skipped != "\n" {
					t.Fatalf("%q is on no row", skipped)
				}
				if got := cells(strings.TrimRight(e.text[r.start:r.end], " ")); got > max(width,
					12) {
					t.Fatalf("row of %d cells at %d", got, width)
				}
				at = r.end
			}
			if rest := e.text[at:]; rest != "" {
				t.Fatalf("%q is on no row", rest)
			}
			e.view(width+1, 5)
		}
	})
}

func TestEnterAndPaste(t *testing.T) {
	s := newStage(t, 60, 20, Options{})
	s.typing("one")
	s.keys("alt+enter")
	s.typing("two")
	s.keys("ctrl+j")
	s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("three\r\nfour\n"), Paste: true})
	if got, want := s.m.input.editor.text, "one\ntwo\nthree\nfour\n"; got != want {
		t.Errorf("editor holds %q, want %q", got, want)
	}
	if s.m.talk.live != nil {
		t.Error("a paste was sent")
	}
	s.golden("multi-line")
	large := strings.Repeat("a pasted line of some length\n", 20_000)
	s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(large), Paste: true})
	if len(s.m.input.pastes) != 1 || s.m.input.pastes[0] != large {
		t.Error("a large paste was cut")
	}
	s.keys("up", "up", "backspace", "home", "end")
}

func TestLongQuestionIsFolded(t *testing.T) {
	s := newStage(t, 60, 30, Options{})
	s.m.input.editor.set(strings.Repeat("line\n", 100) + "end")
	s.keys("enter")
	if text := s.text(); !strings.Contains(text, "… 87 more rows, Ctrl+T shows them") ||
		strings.Count(text, "line\n") != 14 {
		t.Errorf("a long question:\n%s", text)
	}
	s.keys("ctrl+t")
	if text := s.text(); strings.Contains(text, "more rows, Ctrl+T") {
		t.Errorf("Ctrl+T does not unfold it:\n%s", text)
	}
}

// Terminals send the line ends of a paste as CR.
func TestPastedLineEnds(t *testing.T) {
	s := newStage(t, 80, 20, Options{})
	s.send(tea.KeyMsg{Type: tea.KeyRunes, Paste: true, Runes: []rune("one\rtwo\r\nthree\nfour")})
	if s.m.input.editor.text != "one\ntwo\nthree\nfour" {
		t.Errorf("pasted as %q", s.m.input.editor.text)
	}
}

// Letters that come at once, as a fast typist's, an input method's or tmux's, are text even where
// they are the name of a key.
func TestNamesOfKeysAreText(t *testing.T) {
	for _, word := range []string{"delete", "home", "end", "up", "down", "left", "right", "tab", "esc",
		"enter", "backspace", "pgup", "pgdown", "space", "insert", "f1", "alt+b", "ctrl+c", "ctrl+d"} {
		s := newStage(t, 80, 24, Options{})
		s.typing("say ")
		s.typing(word)
		if want := "say " + word; s.m.input.editor.text != want || s.m.quitting ||
			s.m.talk.live != nil {
			t.Errorf("the editor has %q, not %q", s.m.input.editor.text, want)
		}
		s.keys("ctrl+u", "ctrl+r")
		s.m.input.history.add("go " + word)
		s.typing(word)
		if s.m.input.editor.text != "go "+word {
			t.Errorf("%q is not searched but %q found", word, s.m.input.editor.text)
		}
	}
}
