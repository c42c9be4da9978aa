// Decoding: ids to bytes, at once or as they come from the model.

package token

import "unicode/utf8"

// Decode appends the bytes of ids to dst, exactly: they need not be UTF-8 (see Text). Special
// tokens are their names. Ids outside the vocabulary add nothing.
func (t *Tokenizer) Decode(dst []byte, ids []int32) []byte {
	for _, id := range ids {
		dst = append(dst, t.TokenBytes(id)...)
	}
	return dst
}

// StreamDecoder decodes ids one at a time and never gives half a character: bytes that may still
// become one are held back. All that Push and Flush return, put together, is Text of what Decode
// returns. The zero value is ready to use.
type StreamDecoder struct {
	held [utf8.UTFMax]byte // the beginning of a character, at most three bytes
	n    int
}

// Push returns the text that id completes, often "" for a part of a character.
func (d *StreamDecoder) Push(id int32) string { return d.PushBytes(Get().TokenBytes(id)) }

// PushBytes is Push for the bytes of a token.
func (d *StreamDecoder) PushBytes(b []byte) string {
	if d.n > 0 {
		b = append(d.held[:d.n:d.n], b...)
	}
	whole := len(b)
	for i := max(0, len(b)-utf8.UTFMax+1); i < len(b); i++ {
		if utf8.RuneStart(b[i]) && !utf8.FullRune(b[i:]) {
			whole = i
			break
		}
	}
	text := Text(b[:whole])
	d.n = copy(d.held[:], b[whole:])
	return text
}

// Flush returns U+FFFD if something is held back, else "", and begins anew.
func (d *StreamDecoder) Flush() string {
	text := Text(d.held[:d.n])
	d.n = 0
	return text
}
