// Package token is the o200k_harmony tokenizer: byte pair encoding of text to gpt-oss's 201,088
// token ids, and back. The vocabulary is in the binary (package assets); nothing is downloaded.
//
// What must stay true:
//   - the ids are those of OpenAI's own tokenizer, for every input, special tokens included;
//   - text never becomes a special token unless the caller allows it by name (EncodeSpecial), so a
//     user cannot write a message boundary;
//   - the work is linear in the input: there is no text that stalls a server.
//
// Encoding a text: split.go splits it into pieces (words, numbers, runs of spaces), table.go looks
// up whether a piece is a token, and merge.go encodes the other pieces.
package token

import "sync"

// The special tokens of Harmony, and the sizes of the vocabulary.
const (
	StartOfText int32 = 199998 // <|startoftext|>
	EndOfText   int32 = 199999 // <|endoftext|>
	Return      int32 = 200002 // <|return|>     the turn is over
	Constrain   int32 = 200003 // <|constrain|>  before a content type
	Channel     int32 = 200005 // <|channel|>    before the channel's name
	Start       int32 = 200006 // <|start|>      a message begins
	End         int32 = 200007 // <|end|>        a message is over
	Message     int32 = 200008 // <|message|>    the header is over
	Call        int32 = 200012 // <|call|>       the message is a call of a tool

	// VocabSize is one more than the highest id.
	VocabSize = 201088

	ordinary = 199998 // ids below it are bytes, the others are special
)

// Tokenizer is the vocabulary. It is immutable, so it is safe for concurrent use.
type Tokenizer struct {
	offsets  []uint32 // of each ordinary token in text, [ordinary+1]
	text     []byte   // the bytes of all ordinary tokens, one after the other in id order
	byteID   [256]uint32
	bytePair []uint32 // token of two bytes by first<<8 | second, or absent
	tokens   tokenTable
	pairs    pairTable
	classes  classTable
	order    func() *order
}

// Get returns the process's tokenizer. The first call creates it, which takes some tens of
// milliseconds.
func Get() *Tokenizer { return shared() }

var shared = sync.OnceValue(func() *Tokenizer {
	t, err := load()
	if err != nil {
		// The vocabulary is part of the binary and has a checksum: this binary is damaged and
		// nothing in it can be trusted.
		panic("token: the embedded vocabulary is damaged: " + err.Error())
	}
	return t
})

// TokenBytes returns the bytes of a token, for a special token its name, and nil outside the
// vocabulary. The caller must not change them.
func (t *Tokenizer) TokenBytes(id int32) []byte {
	if id >= 0 && id < ordinary {
		return t.ordinaryBytes(uint32(id))
	}
	if name, ok := t.Special(id); ok {
		return []byte(name)
	}
	return nil
}

// ordinaryBytes is TokenBytes of an id below ordinary. The capacity is limited, so an append does
// not overwrite the next token.
func (t *Tokenizer) ordinaryBytes(id uint32) []byte {
	from, to := t.offsets[id], t.offsets[id+1]
	return t.text[from:to:to]
}
