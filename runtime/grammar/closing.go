// The shortest way out of a JSON text, for an answer that would go on without end.
//
// What must stay true: a narrowed mask is a part of the mask and allows at least one token.

package grammar

import (
	"strings"
	"sync"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

// closers are the tokens that lead out of a JSON text, in order of preference: a quote, which ends
// a string or begins one that the next quote ends; closing brackets; then the comma or colon before
// a member that is required.
var closers = sync.OnceValue(func() [][]uint64 {
	levels := [][]uint64{automaton.NewMask(), automaton.NewMask(), automaton.NewMask()}
	for id := range int32(automaton.OrdinaryTokens) {
		text := strings.Trim(string(token.Get().TokenBytes(id)), " \n")
		switch {
		case text == "":
		case text[0] == '"' && strings.Trim(text, `"}]`) == "" && strings.Count(text, `"`) == 1:
			automaton.Allow(levels[0], id)
		case strings.Trim(text, "}]") == "":
			automaton.Allow(levels[1], id)
		case text == "," || text == ":":
			automaton.Allow(levels[2], id)
		}
	}
	return levels
})

// closing narrows a mask to ender if the mask allows it, else to the first level of closers that it
// allows. Without any it stays as it is: at a number's first digit, in a name out of a list.
func closing(mask []uint64, ender int32) []uint64 {
	if automaton.Allows(mask, ender) {
		return automaton.Only(ender)
	}
	for _, level := range closers() {
		narrow, left := automaton.NewMask(), uint64(0)
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
