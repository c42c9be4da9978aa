// Decoding: ids to bytes, at once or as the model samples them.

package token

import (
	"strings"
	"unicode/utf8"
)

// Decode appends the exact bytes of ids to dst: they need not be UTF-8 (see Text). Special tokens
// become their names. Ids outside the vocabulary add nothing.
func (t *Tokenizer) Decode(dst []byte, ids []int32) []byte {
	for _, id := range ids {
		dst = append(dst, t.TokenBytes(id)...)
	}
	return dst
}

// StreamDecoder decodes ids one at a time and never returns part of a character: incomplete bytes
// are buffered. The concatenation of all results of Push and Flush is Text of Decode's result. The
// zero value is ready to use.
type StreamDecoder struct {
	partial [utf8.UTFMax]byte // the beginning of a character, at most three bytes
	n       int
}

// Push returns the text that id completes, often "" for a part of a character.
func (d *StreamDecoder) Push(id int32) string { return d.PushBytes(Get().TokenBytes(id)) }

// PushBytes is Push for the bytes of a token.
func (d *StreamDecoder) PushBytes(b []byte) string {
	if d.n > 0 {
		b = append(d.partial[:d.n:d.n], b...)
	}
	complete := len(b)
	for i := max(0, len(b)-utf8.UTFMax+1); i < len(b); i++ {
		if utf8.RuneStart(b[i]) && !utf8.FullRune(b[i:]) {
			complete = i
			break
		}
	}
	text := Text(b[:complete])
	d.n = copy(d.partial[:], b[complete:])
	return text
}

// Flush returns U+FFFD if bytes are buffered, else "", and resets the decoder.
func (d *StreamDecoder) Flush() string {
	text := Text(d.partial[:d.n])
	d.n = 0
	return text
}

// Truncated or invalid UTF-8. A token is any bytes, so a character can end in another token than it
// began in.

// Text returns b as text: each maximal part of a truncated character, and each byte that cannot
// begin one, becomes one U+FFFD.
func Text(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	s.Grow(len(b) + 8)
	for len(b) > 0 {
		valid, wrong := ScanUTF8(b)
		s.Write(b[:valid])
		if b = b[valid:]; len(b) > 0 {
			s.WriteRune(utf8.RuneError)
			if wrong == 0 {
				break
			}
			b = b[wrong:]
		}
	}
	return s.String()
}

// ScanUTF8 returns the number of bytes of complete characters at the start of b, and of bytes after
// them that cannot begin a character: 0 if all of b is valid, or ends in a truncated one.
func ScanUTF8(b []byte) (valid, wrong int) {
	valid = validLen(b)
	rest := b[valid:]
	if len(rest) == 0 || !utf8.FullRune(rest) {
		return valid, 0
	}
	for wrong = 1; wrong < len(rest) && !utf8.FullRune(rest[:wrong+1]); {
		wrong++
	}
	return valid, wrong
}

// validLen is the number of bytes of complete characters at the start of b.
func validLen(b []byte) int {
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(b)
}
