// Masks: a bit for each token id. Only the creator of a mask changes it, before sharing it.

package automaton

import (
	"math/bits"

	"github.com/ossrun/ossrun/harmony/token"
)

const MaskWords = (token.VocabSize + 63) / 64

// OrdinaryTokens is one more than the highest id of an ordinary token.
const OrdinaryTokens = int(token.StartOfText)

// NewMask allows nothing.
func NewMask() []uint64 { return make([]uint64, MaskWords) }

func Allow(mask []uint64, id int32) { mask[id>>6] |= 1 << (id & 63) }

func Allows(mask []uint64, id int32) bool { return mask[id>>6]>>(id&63)&1 == 1 }

func allowAll(mask, set []uint64) {
	for i, w := range set {
		mask[i] |= w
	}
}

func without(mask, set []uint64) {
	for i, w := range set {
		mask[i] &^= w
	}
}

func ones(set []uint64) (n int) {
	for _, w := range set {
		n += bits.OnesCount64(w)
	}
	return n
}

func Only(ids ...int32) []uint64 {
	m := NewMask()
	for _, id := range ids {
		Allow(m, id)
	}
	return m
}
