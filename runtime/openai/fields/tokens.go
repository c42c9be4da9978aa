// Token ids in a request, and texts that are encoded without rendering.

package fields

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/harmony/token"
)

// MaxPrompt is the most tokens of a text that is encoded: eight of the largest contexts.
const MaxPrompt = 1 << 20

// Encode returns the ids of a text in v; names of special tokens become their ids.
func (v Value) Encode(text string) []int32 {
	ids, ok := token.Get().EncodeSpecialWhile([]int32{}, text, func(ids int) bool {
		return ids <= MaxPrompt && !v.c.isCancelled()
	})
	if !ok {
		v.c.add(Refusal(http.StatusBadRequest, v.Path, CodeContextLength, fmt.Sprintf(
			"%s has more than %d tokens", v.Path, MaxPrompt)))
		return nil
	}
	return ids
}

// TokenIDs reads an array of ids at once; nil if an item is invalid.
func (v Value) TokenIDs() (ids []int32) {
	if v.Kind() != jsondoc.Array || bytes.IndexByte(v.Raw, 'n') >= 0 || // null would be read as 0
		json.Unmarshal(v.Raw, &ids) != nil || slices.ContainsFunc(ids, func(id int32) bool {
		return id < 0 || id >= token.VocabSize
	}) {
		return nil
	}
	return ids
}

// EncodePrompt returns the ids of a text; an empty text becomes <|endoftext|>, as at OpenAI.
func (v Value) EncodePrompt(text string) []int32 {
	ids := v.Encode(text)
	if len(ids) == 0 {
		ids = []int32{token.EndOfText}
	}
	return ids
}

// IDsOf reads each value as a token id.
func IDsOf(list []Value) []int32 {
	ids := make([]int32, len(list))
	for i, v := range list {
		ids[i] = v.tokenID()
	}
	return ids
}

func (v Value) tokenID() int32 {
	id, err := strconv.ParseInt(string(bytes.TrimSpace(v.Raw)), 10, 64)
	if err != nil || id < 0 || id >= token.VocabSize {
		v.Invalid(" is %s, which is not a token id of 0 to %d", Brief(string(v.Raw)),
			token.VocabSize-1)
		return 0
	}
	return int32(id)
}
