// UTF-8 that may be cut or wrong. A token is any bytes, so a character can end in another token
// than it began in.

package token

import (
	"strings"
	"unicode/utf8"
)

// Text returns b as text: each maximal part of a character that was cut, and each byte that cannot
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

// ScanUTF8 returns how many bytes at the front of b are whole characters, and how many after them
// can never become one whatever follows: 0 if all of b is valid, or if it ends in the beginning of
// a character.
func ScanUTF8(b []byte) (valid, wrong int) {
	valid = validLen(b)
	rest := b[valid:]
	if len(rest) == 0 || !utf8.FullRune(rest) {
		return valid, 0
	}
	return valid, cutLen(rest)
}

// validLen is the number of bytes at the front of b that are whole characters.
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

// cutLen is the length of the maximal part of a character at the front of b, which does not begin
// with a whole one. A byte that cannot begin a character counts as one.
func cutLen(b []byte) int {
	n := 1
	for n < len(b) && !utf8.FullRune(b[:n+1]) {
		n++
	}
	return n
}
