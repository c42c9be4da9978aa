// The shortest end of a text under a grammar, for an answer that would not end.
//
// What must stay true: a narrowed mask is a subset of the mask, allows one token, and each such
// token is closer to the end.

package grammar

import (
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

// closing returns the mask of the next token on the shortest path to the end, which is ender at the
// end. The mask is unchanged after a token that was not allowed.
func closing(m *automaton.Matcher, ender int32) []uint64 {
	mask := m.Mask(ender)
	if automaton.Allows(mask, ender) {
		return automaton.Only(ender)
	}
	if ids := token.Get().EncodeBytes(nil, m.Shortest()); len(ids) > 0 {
		return automaton.Only(ids[0])
	}
	return mask
}
