// Package term has the basics of the chat screen: safe text, its width in columns, styled spans and
// rows, and wrapping.
//
// Two things must stay true. No control character of a model's or a person's text reaches the
// terminal: text is cleaned on input and again when painted. No row is wider than asked.
package term

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Clean makes text safe to print. Line ends become "\n", tabs stay, other control characters become
// visible pictures (ESC is "␛"), C1 controls and invalid UTF-8 become U+FFFD. Characters that
// reorder or hide text are removed.
func Clean(s string) string {
	var c Cleaner
	return c.Push(s) + c.Flush()
}

// A Cleaner is Clean for text in pieces: a "\r\n" may be split between two of them.
type Cleaner struct {
	cr bool // the last piece ended in "\r", whose line end is not written yet
}

// Push returns the printable text of the next piece.
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
		case isHidden(r):
		default:
			b.WriteRune(r) // invalid UTF-8 was decoded as U+FFFD
		}
	}
	return b.String()
}

// Flush returns the text withheld by Push.
func (c *Cleaner) Flush() string {
	if !c.cr {
		return ""
	}
	c.cr = false
	return "\n"
}

// isHidden reports marks, embeddings, overrides and isolates, which can reorder the shown text, and
// the byte order mark.
func isHidden(r rune) bool {
	return r == 0x061c || r == 0x200e || r == 0x200f || r >= 0x202a && r <= 0x202e ||
		r >= 0x2066 && r <= 0x2069 || r == 0xfeff
}

// plain reports whether s is printable ASCII with line ends and tabs, the common case, which needs
// no copy.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x7f || c < 0x20 && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// Number is n with commas.
func Number(n int) string {
	if n/1000 == 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", Number(n/1000), max(n%1000, -(n%1000)))
}

// Count formats a count: "1 question", "1,024 branches".
func Count(n int, thing string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(thing, "ch"):
		thing += "es"
	default:
		thing += "s"
	}
	return Number(n) + " " + thing
}

// Libraries' words for causes: files, broken texts, connections.
var (
	fileError = regexp.MustCompile(`\b(?:open|stat|lstat|mkdir|read|fork/exec|exec:) "?([^ :"]+)"?: (no such ` +
		`file or directory|permission denied|is a directory|not a directory|read-only file system|executable file not found)`)
	invalidCharacter = regexp.MustCompile(
		`invalid character ('\\''|'[^']*') (?:looking for|after|in)[^.;\n]*`)
	connection = regexp.MustCompile(`\b(?:(?:Get|Post|Head|Delete) "[^"]*"|lookup \S+(?: on \S+)?|connect|` +
		`(?:dial|read|write) (?:tcp|udp|unix)\S*?(?: \S+?)?(?:: read|: write)?): `)
	libraryWords = strings.NewReplacer("unexpected end of JSON input", "it ends too early",
		"unexpected EOF", "it ended too early", ": EOF", ": it ended too early",
		"context deadline exceeded", "no answer came in time", "i/o timeout",
		"no answer came in time", "no such host", "the name is not known")
)

// PlainWords has causes in plain words instead of a library's.
func PlainWords(text string) string {
	text = fileError.ReplaceAllString(connection.ReplaceAllString(text, ""), "$1: $2")
	return invalidCharacter.ReplaceAllString(libraryWords.Replace(text), "unexpected $1")
}
