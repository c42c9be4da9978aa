// Splitting a text into pieces as the o200k pattern does:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	|\p{N}{1,3}
//	| ?[^\s\p{L}\p{N}]+[\r\n/]*
//	|\s*[\r\n]+
//	|\s+(?!\S)
//	|\s+
//
// (one line, alternatives in order). It is a handwritten scanner because a general regular
// expression engine is slow here and backtracks. What must stay true: every character is read a
// bounded number of times, for any text.

package token

import "unicode/utf8"

// classAt returns the class and length of the character at s[i]. s is valid UTF-8.
func (t *Tokenizer) classAt(s []byte, i int) (class, int) {
	if c := s[i]; c < utf8.RuneSelf {
		return t.classes.ascii[c], 1
	}
	r, n := utf8.DecodeRune(s[i:])
	return t.classes.lookup(r), n
}

func (t *Tokenizer) pieceEnd(s []byte, i int) int {
	c, n := t.classAt(s, i)
	switch c {
	case upper, lower, letter:
		lowerEnd, upperEnd := t.word(s, i)
		return contraction(s, max(lowerEnd, upperEnd))
	case number:
		end := i + n
		for k := 1; k < 3 && end < len(s); k++ {
			if c, n = t.classAt(s, end); c != number {
				break
			}
			end += n
		}
		return end
	}
	if !lineBreak(s[i]) {
		if end := t.prefixedWord(s, i, c, n); end >= 0 {
			return end
		}
		if end := t.symbols(s, i); end >= 0 {
			return end
		}
	}
	return t.spaces(s, i)
}

// word tries the first two alternatives at s[i] without their prefix character. lowerEnd is the end
// of the first, which has a lower-case part; upperEnd is the end of the second if the first does
// not match. -1: no match.
func (t *Tokenizer) word(s []byte, i int) (lowerEnd, upperEnd int) {
	end := i
	// end of the last character that is in both sets: the first alternative matches if the rest is
	// given back
	lastBoth := -1
	for end < len(s) {
		c, n := t.classAt(s, end)
		if c == lower {
			for end += n; end < len(s); end += n {
				if c, n = t.classAt(s, end); c != lower && c != letter && c != mark {
					break
				}
			}
			return end, -1
		}
		if c != upper && c != letter && c != mark {
			break
		}
		end += n
		if c != upper {
			lastBoth = end
		}
	}
	if lastBoth >= 0 {
		return lastBoth, -1
	}
	if end > i {
		return -1, end
	}
	return -1, -1
}

// prefixedWord tries the first two alternatives at s[i], a character of class c and n bytes that
// may be their prefix.
func (t *Tokenizer) prefixedWord(s []byte, i int, c class, n int) int {
	lowerEnd, upperEnd := t.word(s, i+n)
	if lowerEnd >= 0 {
		return contraction(s, lowerEnd)
	}
	if c == mark { // a mark is also part of a word
		if end, _ := t.word(s, i); end >= 0 {
			return contraction(s, end)
		}
	}
	if upperEnd >= 0 {
		return contraction(s, upperEnd)
	}
	return -1
}

// contraction moves end past a following 's, 't, 're, 've, 'm, 'll or 'd, ignoring case.
func contraction(s []byte, end int) int {
	if end+1 >= len(s) || s[end] != '\'' {
		return end
	}
	first := s[end+1] | 0x20
	switch first {
	case 's', 't', 'm', 'd':
		return end + 2
	}
	if end+2 >= len(s) {
		return end
	}
	if s[end+1] == 0xC5 && s[end+2] == 0xBF { // U+017F, the long s, is an s when ignoring case
		return end + 3
	}
	second := s[end+2] | 0x20
	if (first == 'r' || first == 'v') && second == 'e' || first == 'l' && second == 'l' {
		return end + 3
	}
	return end
}

// symbols tries the punctuation alternative at s[i], -1 if it does not match.
func (t *Tokenizer) symbols(s []byte, i int) int {
	if s[i] == ' ' {
		i++
	}
	end := i
	for end < len(s) {
		c, n := t.classAt(s, end)
		if c != misc && c != mark {
			break
		}
		end += n
	}
	if end == i {
		return -1
	}
	for end < len(s) && (lineBreak(s[end]) || s[end] == '/') {
		end++
	}
	return end
}

// spaces is the last three alternatives: white space up to its last line break, else all of it
// except the last character, which belongs to the following word.
func (t *Tokenizer) spaces(s []byte, i int) int {
	end, last, afterBreak := i, i, -1
	for end < len(s) {
		c, n := t.classAt(s, end)
		if c != space {
			break
		}
		if lineBreak(s[end]) {
			afterBreak = end + 1
		}
		last = end
		end += n
	}
	switch {
	case afterBreak >= 0:
		return afterBreak
	case end == len(s) || last == i:
		return end
	}
	return last
}

func lineBreak(c byte) bool { return c == '\r' || c == '\n' }
