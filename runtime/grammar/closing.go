// The shortest way out of a text under a grammar, for an answer that would go on without end.
//
// What must stay true: a narrowed mask is a part of the mask, allows one token, and each such token
// is nearer to the end.

package grammar

import (
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/grammar/automaton"
)

// closing is the one token that is next on the shortest way to the end: ender where that is here.
// The mask stays as it is if a token came that was not allowed.
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
