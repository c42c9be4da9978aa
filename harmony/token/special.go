// Special tokens: the ids from 199998 up, which are message boundaries and not text.
//
// Ten of them have names of their own, the others are reserved and named after their id. The two
// published tokenizers differ in two ids, and this one follows tiktoken: 200018 is <|endofprompt|>,
// and 201087 is the last. The name <|reserved_200018|> is accepted as well (tiktoken encodes both
// names to that id, and decodes it to the first).

package token

import (
	"strconv"
	"strings"
)

// endOfPrompt is never used by Harmony.
const endOfPrompt int32 = 200018

var specialNames = map[int32]string{
	StartOfText: "<|startoftext|>",
	EndOfText:   "<|endoftext|>",
	Return:      "<|return|>",
	Constrain:   "<|constrain|>",
	Channel:     "<|channel|>",
	Start:       "<|start|>",
	End:         "<|end|>",
	Message:     "<|message|>",
	Call:        "<|call|>",
	endOfPrompt: "<|endofprompt|>",
}

var specialIDs = func() map[string]int32 {
	ids := make(map[string]int32, len(specialNames))
	for id, name := range specialNames {
		ids[name] = id
	}
	return ids
}()

const (
	specialOpen    = "<|"
	specialClose   = "|>"
	reservedPrefix = "<|reserved_"
	specialLongest = len("<|reserved_200018|>")
)

// Special returns the name of a special token, such as <|start|> or <|reserved_200013|>.
func (t *Tokenizer) Special(id int32) (name string, ok bool) {
	if id < ordinary || id >= VocabSize {
		return "", false
	}
	if name, ok = specialNames[id]; ok {
		return name, true
	}
	return reservedPrefix + strconv.Itoa(int(id)) + specialClose, true
}

// SpecialID is the inverse: the id of a special token's name.
func (t *Tokenizer) SpecialID(name string) (int32, bool) {
	if id, ok := specialIDs[name]; ok {
		return id, true
	}
	digits, ok := strings.CutPrefix(name, reservedPrefix)
	if !ok {
		return 0, false
	}
	digits, ok = strings.CutSuffix(digits, specialClose)
	if !ok || len(digits) != 6 || digits[0] != '2' { // "+200013" is no name
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 200000 || n >= VocabSize {
		return 0, false
	}
	id := int32(n)
	if _, named := specialNames[id]; named && id != endOfPrompt {
		return 0, false
	}
	return id, true
}

// nextSpecial finds the first special token in text with an allowed name; its position is len(text)
// without one.
func (t *Tokenizer) nextSpecial(text string, allowed func(name string) bool) (pos, length int,
	id int32) {
	for from := 0; ; {
		i := strings.Index(text[from:], specialOpen)
		if i < 0 {
			return len(text), 0, 0
		}
		pos = from + i
		window := text[pos:min(len(text), pos+specialLongest)]
		if end := strings.Index(window[len(specialOpen):], specialClose); end >= 0 {
			name := window[:len(specialOpen)+end+len(specialClose)]
			if id, ok := t.SpecialID(name); ok && (allowed == nil || allowed(name)) {
				return pos, len(name), id
			}
		}
		from = pos + 1
	}
}
