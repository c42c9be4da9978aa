// The random stream: Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011).
//
// It is counter-based: the number for a position is a function of (seed, position) alone. There is
// no state to carry, so a text is the same whatever batch its tokens were computed in, and after a
// preemption.

package sample

import "math/bits"

const (
	philoxM0, philoxM1 = 0xD2511F53, 0xCD9E8D57
	philoxW0, philoxW1 = 0x9E3779B9, 0xBB67AE85
)

// philox is ten rounds of the block function over counter c with key k.
func philox(c [4]uint32, k [2]uint32) [4]uint32 {
	for range 10 {
		h0, l0 := bits.Mul32(philoxM0, c[0])
		h1, l1 := bits.Mul32(philoxM1, c[2])
		c = [4]uint32{h1 ^ c[1] ^ k[0], l1, h0 ^ c[3] ^ k[1], l0}
		k[0] += philoxW0
		k[1] += philoxW1
	}
	return c
}

// Uniform is the number in [0, 1), a multiple of 2^-53, that chooses the token at this position of
// a sequence. Streams other than 0 are independent of it, for further numbers of a position.
func Uniform(seed uint64, position int, stream uint32) float64 {
	p := uint64(position)
	r := philox([4]uint32{uint32(p), uint32(p >> 32), stream, 0}, [2]uint32{uint32(seed),
		uint32(seed >> 32)})
	return float64((uint64(r[1])<<32|uint64(r[0]))>>11) * 0x1p-53
}
