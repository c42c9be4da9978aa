// Token ids in a request, and texts that become ids as they are.

package openai

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

// mostPrompt is the most tokens of a text that is encoded: eight of the largest contexts.
const mostPrompt = 1 << 20

// encode makes the ids of a text in v, in which the names of special tokens mean them.
func (v value) encode(text string) []int32 {
	ids, whole := token.Get().EncodeSpecialWhile([]int32{}, text, func(ids int) bool {
		return ids <= mostPrompt && !v.c.gone()
	})
	if !whole {
		v.c.add(refusal(http.StatusBadRequest, v.Path, codeContextLength, fmt.Sprintf(
			"%s has more than %d tokens", v.Path, mostPrompt)))
		return nil
	}
	return ids
}

// tokenIDs reads an array of ids at once; nil if something in it is none.
func (v value) tokenIDs() (ids []int32) {
	if v.Kind() != jsondoc.Array || bytes.IndexByte(v.Raw, 'n') >= 0 || // null would be read as 0
		json.Unmarshal(v.Raw, &ids) != nil || slices.ContainsFunc(ids, func(id int32) bool {
		return id < 0 || id >= token.VocabSize
	}) {
		return nil
	}
	return ids
}

// encodePrompt makes the ids of a text; the empty one begins as OpenAI's does, behind
// <|endoftext|>.
func (v value) encodePrompt(text string) []int32 {
	ids := v.encode(text)
	if len(ids) == 0 {
		ids = []int32{token.EndOfText}
	}
	return ids
}

func idsOf(list []value) []int32 {
	ids := make([]int32, len(list))
	for i, v := range list {
		ids[i] = v.tokenID()
	}
	return ids
}

func (v value) tokenID() int32 {
	id, err := strconv.ParseInt(string(bytes.TrimSpace(v.Raw)), 10, 64)
	if err != nil || id < 0 || id >= token.VocabSize {
		v.invalid(" is %s, which is not a token id of 0 to %d", brief(string(v.Raw)),
			token.VocabSize-1)
		return 0
	}
	return int32(id)
}
