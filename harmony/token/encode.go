// Encoding: text or bytes to ids, with no special tokens, with all, or with allowed ones.

package token

import (
	"bytes"
	"unicode/utf8"
	"unsafe"
)

// Encode appends the ids of text to dst. Names of special tokens in it are plain text. Invalid
// UTF-8 is read as U+FFFD, one for each maximal part of a truncated character.
func (t *Tokenizer) Encode(dst []int32, text string) []int32 {
	dst, _ = t.EncodeWhile(dst, text, nil)
	return dst
}

// checkPieces is the number of pieces of text between two calls of proceed.
const checkPieces = 4096

// EncodeWhile is Encode that calls proceed every few thousand pieces of text with the number of ids
// so far, if it is not nil. If it returns false, encoding stops and the result must not be used.
func (t *Tokenizer) EncodeWhile(dst []int32, text string, proceed func(ids int) bool) ([]int32,
	bool) {
	if !utf8.ValidString(text) {
		text = Text([]byte(text))
	}
	// The bytes are only read, and not beyond this call.
	return t.encodeValid(dst, unsafe.Slice(unsafe.StringData(text), len(text)), proceed)
}

func (t *Tokenizer) encodeValid(dst []int32, b []byte, proceed func(ids int) bool) ([]int32, bool) {
	ok := true
	for i, n := 0, 0; i < len(b); n++ {
		if n%checkPieces == 0 && proceed != nil && !proceed(len(dst)) {
			return dst, false
		}
		end := t.pieceEnd(b, i)
		if end-i <= longestToken {
			dst = t.encodePiece(dst, b[i:end])
		} else if dst, ok = t.mergeLong(dst, b[i:end], proceed); !ok {
			return dst, false
		}
		i = end
	}
	return dst, proceed == nil || proceed(len(dst))
}

// EncodeSpecial is Encode, but names of special tokens for which allowed returns true become those
// tokens. A nil allowed allows all. Only for text that no user wrote.
func (t *Tokenizer) EncodeSpecial(dst []int32, text string,
	allowed func(name string) bool) []int32 {
	dst, _ = t.encodeSpecial(dst, text, allowed, nil)
	return dst
}

// EncodeSpecialWhile is EncodeSpecial with all names allowed. proceed is that of EncodeWhile.
func (t *Tokenizer) EncodeSpecialWhile(dst []int32, text string,
	proceed func(ids int) bool) ([]int32, bool) {
	return t.encodeSpecial(dst, text, nil, proceed)
}

func (t *Tokenizer) encodeSpecial(dst []int32, text string, allowed func(name string) bool,
	proceed func(ids int) bool) ([]int32, bool) {
	for n := 0; ; n++ {
		pos, length, id := t.nextSpecial(text, allowed)
		if pos > 0 || n%checkPieces == 0 {
			var ok bool
			if dst, ok = t.EncodeWhile(dst, text[:pos], proceed); !ok {
				return dst, false
			}
		}
		if length == 0 {
			return dst, true
		}
		dst = append(dst, id)
		text = text[pos+length:]
	}
}

// EncodeBytes appends ids that decode to exactly b. For UTF-8 they are those of Encode. Otherwise,
// as in tiktoken, all bytes from the first invalid one, together with the piece before it, are one
// piece.
func (t *Tokenizer) EncodeBytes(dst []int32, b []byte) []int32 {
	valid := validLen(b)
	if valid == len(b) {
		dst, _ = t.encodeValid(dst, b, nil)
		return dst
	}
	first, last := len(dst), len(dst) // last is where the tokens of the last valid piece begin
	for i := 0; i < valid; {
		end := t.pieceEnd(b[:valid], i)
		last = len(dst)
		dst = t.encodePiece(dst, b[i:end])
		i = end
	}
	if last < len(dst) && t.blank(dst[last]) {
		// runs of spaces are split differently if a character follows
		for last > first && t.blank(dst[last-1]) {
			last--
		}
	}
	from := valid
	for _, id := range dst[last:] {
		from -= len(t.ordinaryBytes(uint32(id)))
	}
	return t.encodePiece(dst[:last], b[from:])
}

// blank reports whether a token consists of spaces, tabs and line feeds.
func (t *Tokenizer) blank(id int32) bool {
	return len(bytes.Trim(t.ordinaryBytes(uint32(id)), " \n\t")) == 0
}

func (t *Tokenizer) encodePiece(dst []int32, piece []byte) []int32 {
	if len(piece) <= longestToken {
		if id := t.find(piece); id != absent {
			return append(dst, int32(id))
		}
	}
	return t.merge(dst, piece)
}
