// Masks: a bit for each token id. A mask is changed only by the one who makes it, before anyone
// else sees it.

package grammar

import (
	"math/bits"
	"sync"

	"github.com/ossrun/ossrun/harmony/token"
)

// maskWords is the length of every mask.
const maskWords = (token.VocabSize + 63) / 64

// ordinaryTokens is one more than the highest id that stands for bytes.
const ordinaryTokens = int(token.StartOfText)

func newMask() []uint64 { return make([]uint64, maskWords) }

func allow(mask []uint64, id int32) { mask[id>>6] |= 1 << (id & 63) }

// allowAll adds the ids of set to mask.
func allowAll(mask, set []uint64) {
	for i, w := range set {
		mask[i] |= w
	}
}

// without takes the ids of set out of mask.
func without(mask, set []uint64) {
	for i, w := range set {
		mask[i] &^= w
	}
}

// ones counts the ids of set.
func ones(set []uint64) (n int) {
	for _, w := range set {
		n += bits.OnesCount64(w)
	}
	return n
}

// single returns the one id that a mask allows, if it allows just one.
func single(mask []uint64) (int32, bool) {
	found := int32(-1)
	for i, w := range mask {
		if w == 0 {
			continue
		}
		if found >= 0 || w&(w-1) != 0 {
			return 0, false
		}
		found = int32(i*64 + bits.TrailingZeros64(w))
	}
	return found, found >= 0
}

// only returns a mask of the ids given.
func only(ids ...int32) []uint64 {
	m := newMask()
	for _, id := range ids {
		allow(m, id)
	}
	return m
}

// with returns mask and one more id.
func with(mask []uint64, id int32) []uint64 {
	m := append([]uint64(nil), mask...)
	allow(m, id)
	return m
}

// The masks that every free body shares: all text, and all text or the one token that ends the
// body.
var (
	textMask = sync.OnceValue(func() []uint64 {
		m := newMask()
		for id := range ordinaryTokens {
			allow(m, int32(id))
		}
		return m
	})
	enderMasks = sync.OnceValue(func() map[int32]enderMask {
		all := make(map[int32]enderMask)
		for _, id := range []int32{token.End, token.Return, token.Call} {
			all[id] = enderMask{text: with(textMask(), id), end: only(id)}
		}
		return all
	})
)

// enderMask is what a body that ends in a certain token may hold: text or the ender, and the ender
// alone.
type enderMask struct{ text, end []uint64 }
