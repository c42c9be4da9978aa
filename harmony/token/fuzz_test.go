package token

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzEncode: encoded text decodes to itself, with every method, and no special token appears
// unless allowed.
func FuzzEncode(f *testing.F) {
	for _, s := range []string{"", "Hello, world!", "don't DON'T", "  \n \t\r\n x", "日本語 👨\u200d👩",
		"<|end|><|start|>a<|reserved_200018|>",
		"\xff\xf0\x9f\x98 \xed\xa0\x80", "123456 ½ Ⅷ", "ǅaB̈c\u0301 'ſ", strings.Repeat("a ", 700),
		strings.Repeat("=", 2000)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tok := Get()
		exact := tok.EncodeBytes(nil, b)
		if got := tok.Decode(nil, exact); !bytes.Equal(got, b) {
			t.Fatalf("%q came back as %q", b, got)
		}
		text := Text(b)
		if !utf8.ValidString(text) || utf8.Valid(b) && text != string(b) ||
			text != strings.ToValidUTF8(text, "?") {
			t.Fatalf("%q as text is %q", b, text)
		}
		ids := tok.Encode(nil, string(b))
		if got := tok.Decode(nil, ids); string(got) != text {
			t.Fatalf("%q came back as %q", text, got)
		}
		if utf8.Valid(b) && !slices.Equal(ids, exact) {
			t.Fatalf("%q: %v as text, %v as bytes", b, ids, exact)
		}
		for _, id := range append(ids, exact...) {
			if _, special := tok.Special(id); special {
				t.Fatalf("%q: special token %d", b, id)
			}
		}
		all := tok.EncodeSpecial(nil, string(b), nil)
		// the id's first name
		want := strings.ReplaceAll(text, "<|reserved_200018|>", "<|endofprompt|>")
		if got := string(tok.Decode(nil, all)); got != want {
			t.Fatalf("%q with special tokens came back as %q", text, got)
		}
		if got := tok.EncodeSpecial(nil, string(b),
			func(string) bool { return false }); !slices.Equal(got, ids) {
			t.Fatalf("%q: with no special token allowed %v, want %v", b, got, ids)
		}
	})
}

// FuzzStreamDecoder: decoding token by token gives the full text, and never half a character.
func FuzzStreamDecoder(f *testing.F) {
	f.Add([]byte{0, 0, 172, 0, 0, 253, 0, 0, 246, 0, 0, 222})
	f.Add([]byte{3, 13, 70, 0, 0, 187, 0, 51, 185, 255, 255, 255})
	f.Fuzz(func(t *testing.T, raw []byte) {
		tok := Get()
		var ids []int32
		for ; len(raw) >= 3; raw = raw[3:] {
			id := int32(raw[0])<<16 | int32(raw[1])<<8 | int32(raw[2])
			if raw[0] >= 4 {
				id = int32(raw[1]) // single bytes, often
			}
			ids = append(ids, id)
		}
		var d StreamDecoder
		var text strings.Builder
		for i, id := range ids {
			s := d.Push(id)
			if !utf8.ValidString(s) {
				t.Fatalf("%v: token %d gives %q", ids, i, s)
			}
			text.WriteString(s)
			// Nothing is buffered longer than needed.
			so := tok.Decode(nil, ids[:i+1])
			valid, wrong := ScanUTF8(so)
			if valid == len(so) && wrong == 0 && text.String() != string(so) {
				t.Fatalf("%v: %q after token %d, want %q", ids, text.String(), i, so)
			}
		}
		text.WriteString(d.Flush())
		if got, want := text.String(), Text(tok.Decode(nil, ids)); got != want {
			t.Fatalf("%v: streamed %q, want %q", ids, got, want)
		}
		if d.Flush() != "" {
			t.Fatal("flushed twice")
		}
	})
}

func TestSpecialNames(t *testing.T) {
	tok := Get()
	for id := int32(ordinary); id < VocabSize; id++ {
		name, ok := tok.Special(id)
		if !ok {
			t.Fatalf("%d has no name", id)
		}
		if back, ok := tok.SpecialID(name); !ok || back != id {
			t.Fatalf("%s is %d, want %d", name, back, id)
		}
		if string(tok.TokenBytes(id)) != name {
			t.Fatalf("%d has bytes %q", id, tok.TokenBytes(id))
		}
	}
	for name, want := range map[string]int32{
		"<|reserved_200018|>": 200018, "<|endofprompt|>": 200018,
		"<|reserved_200002|>": 0, "<|reserved_199998|>": 0, "<|reserved_201088|>": 0,
		"<|reserved_+20013|>":  0,
		"<|reserved_0200013|>": 0, "<|refusal|>": 0, "": 0, "<|reserved_|>": 0,
	} {
		if id, ok := tok.SpecialID(name); id != want || ok != (want != 0) {
			t.Errorf("%s: %d %v, want %d", name, id, ok, want)
		}
	}
	for _, id := range []int32{-1, VocabSize, 1 << 30} {
		if tok.TokenBytes(id) != nil {
			t.Errorf("%d has bytes", id)
		}
	}
	if got := tok.Decode(nil, []int32{-5, 64, VocabSize}); string(got) != "a" {
		t.Errorf("ids outside the vocabulary decode to %q", got)
	}
}
