package screentest

import "testing"

func TestScreen(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"text", "one\r\ntwo", "one\ntwo\n\n"},
		{"wraps", "abcdefgh", "abcdef\ngh\n\n"},
		{"wraps only when more comes", "abcdef\r\ng", "abcdef\ng\n\n"},
		{"scrolls", "1\r\n2\r\n3\r\n4", "2\n3\n4\n"},
		{"moves and erases", "abcdef\x1b[2DX\x1b[K\x1b[2;2Hy\x1b[Dz\x1b[A!", "ab!X\n z\n\n"},
		{"wide", "日本x", "日本x\n\n\n"},
		{"wide at the edge", "abcde日", "abcde\n日\n\n"},
		{"combining", "e\u0301x", "e\u0301x\n\n\n"},
		{"titles are skipped", "\x1b]0;title\x07a\x1b]8;;u\x1b\\b", "ab\n\n\n"},
		{"erase all", "abc\x1b[2J\x1b[Hd", "d\n\n\n"},
	} {
		s := New(6, 3)
		for i := range len(c.in) { // byte by byte: sequences come in pieces
			if _, err := s.Write([]byte{c.in[i]}); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.String(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestStyles(t *testing.T) {
	s := New(4, 1)
	if _, err := s.Write([]byte("\x1b[?1049h\x1b[1;36ma\x1b[mb\x1b[92mc\x1b[7;3md")); err != nil {
		t.Fatal(err)
	}
	row := s.Rows()[0]
	for i, want := range []Style{{Bold: true, Foreground: 7}, {}, {Foreground: 11},
		{Foreground: 11, Reverse: true, Italic: true}} {
		if row[i].Style != want {
			t.Errorf("cell %d: %+v, want %+v", i, row[i].Style, want)
		}
	}
	if !s.Mode("1049") || len(s.Unknown()) != 0 {
		t.Errorf("modes %v, unknown %q", s.modes, s.Unknown())
	}
}
