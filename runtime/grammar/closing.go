// The shortest way out of a JSON text, for an answer that would go on without end.
//
// What must stay true: a narrowed mask allows nothing that the mask does not, and never nothing.

package grammar

import (
	"strings"
	"sync"

	"github.com/ossrun/ossrun/harmony/token"
)

// closers are the tokens that lead out of a JSON text, the most welcome first. A quote ends a
// string, or begins one that the next quote ends; then come brackets, and what stands in front of
// a member that has to be there.
var closers = sync.OnceValue(func() [][]uint64 {
	levels := [][]uint64{newMask(), newMask(), newMask()}
	for id := range int32(ordinaryTokens) {
		text := strings.Trim(string(token.Get().TokenBytes(id)), " \n")
		switch {
		case text == "":
		case text[0] == '"' && strings.Trim(text, `"}]`) == "" && strings.Count(text, `"`) == 1:
			allow(levels[0], id)
		case strings.Trim(text, "}]") == "":
			allow(levels[1], id)
		case text == "," || text == ":":
			allow(levels[2], id)
		}
	}
	return levels
})

// closing narrows a mask to ender or, before it, to the closers among its tokens. A place that
// allows none of them keeps its mask: a number's first digit, a name out of a list.
func closing(mask []uint64, ender int32) []uint64 {
	if mask[ender>>6]>>(ender&63)&1 == 1 {
		return only(ender)
	}
	for _, level := range closers() {
		narrow, left := newMask(), uint64(0)
		for i := range mask {
			narrow[i] = mask[i] & level[i]
			left |= narrow[i]
		}
		if left != 0 {
			return narrow
		}
	}
	return mask
}
