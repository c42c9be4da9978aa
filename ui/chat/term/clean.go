// Package term holds what every piece of the chat screen is made of: safe text, its width in
// columns, styled spans and rows, and the wrapping of spans into rows.
//
// Two things must stay true. No control character of a model's or a person's text reaches the
// terminal: text is cleaned when it comes in and again when it is painted. And no row is wider than
// it was asked to be.
package term

import (
	"strings"
	"unicode/utf8"
)

// Clean makes text safe to print. Line ends become "\n", tabs stay, other control characters become
// visible pictures (ESC is "␛"), C1 controls and invalid UTF-8 become U+FFFD, and characters that
// reorder or hide text are left out.
func Clean(s string) string {
	var c Cleaner
	return c.Push(s) + c.Flush()
}

// A Cleaner is Clean for text that arrives in pieces: a "\r\n" may be cut between two of them.
type Cleaner struct {
	cr bool // the last piece ended in "\r", whose line end is not yet written
}

// Push returns what can be printed of the next piece.
func (c *Cleaner) Push(s string) string {
	if !c.cr && plain(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		s = s[n:]
		if c.cr {
			c.cr = false
			b.WriteByte('\n')
			if r == '\n' {
				continue
			}
		}
		switch {
		case r == '\r':
			c.cr = true
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == '\v' || r == '\f' || r == 0x85 || r == 0x2028 || r == 0x2029:
			b.WriteByte('\n')
		case r < 0x20:
			b.WriteRune(0x2400 + r)
		case r == 0x7f:
			b.WriteRune(0x2421)
		case r < 0xa0 && r >= 0x80:
			b.WriteRune(utf8.RuneError)
		case hidden(r):
		default:
			b.WriteRune(r) // invalid UTF-8 was decoded as U+FFFD
		}
	}
	return b.String()
}

// Flush returns what Push still held back.
func (c *Cleaner) Flush() string {
	if !c.cr {
		return ""
	}
	c.cr = false
	return "\n"
}

// hidden are the marks, embeddings, overrides and isolates with which text can be shown in another
// order than it is read, and the byte order mark.
func hidden(r rune) bool {
	return r == 0x061c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e ||
		r >= 0x2066 && r <= 0x2069 || r == 0xfeff
}

// plain reports that s is printable ASCII with line ends and tabs: the common case, which costs no
// copy.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x7f || c < 0x20 && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}
