// The two hash tables of the tokenizer: from bytes to their token, and from two tokens to their
// merge.
//
// Both use open addressing with linear probing in one flat array, written once at load. The entries
// are small enough that one cache line answers most look-ups, which dominate the cost of encoding.

package token

import (
	"encoding/binary"
	"math/bits"
)

// absent is no token. It is above all ids, so that the minimum of several ranks is a token if any
// of them is.
const absent = ^uint32(0)

const (
	idBits    = 18 // 1<<18 > ordinary
	idMask    = 1<<idBits - 1
	tableBits = 19 // slots of each table: 2.6 for every entry
	tableMask = 1<<tableBits - 1
)

// tokenTable maps bytes to ids. A slot is id+1 in the low 18 bits and 14 bits of the hash above; 0
// is an empty slot.
type tokenTable []uint32

func (t tokenTable) put(b []byte, id uint32) {
	h := hashBytes(b)
	slot := h & tableMask
	for t[slot] != 0 {
		slot = (slot + 1) & tableMask
	}
	t[slot] = uint32(h>>(64-32+idBits))<<idBits | (id + 1)
}

// find returns the token with the bytes b, or absent.
func (t *Tokenizer) find(b []byte) uint32 {
	h := hashBytes(b)
	tag := uint32(h>>(64-32+idBits)) << idBits
	for slot := h & tableMask; ; slot = (slot + 1) & tableMask {
		v := t.tokens[slot]
		if v == 0 {
			return absent
		}
		if v&^uint32(idMask) == tag {
			if id := v&idMask - 1; string(t.ordinaryBytes(id)) == string(b) {
				return id
			}
		}
	}
}

// hashBytes mixes b, which is not empty, into 64 bits. The table is fixed, so no input can lengthen
// its chains.
func hashBytes(b []byte) uint64 {
	const k0, k1 = 0xA0761D6478BD642F, 0xE7037ED1A0B428DB
	n := uint64(len(b))
	x, y := uint64(0), n*k1
	switch {
	case n >= 8:
		for rest := b; len(rest) > 16; rest = rest[8:] {
			hi, lo := bits.Mul64(binary.LittleEndian.Uint64(rest)^y, k0)
			y = hi ^ lo
		}
		if n > 16 {
			x = binary.LittleEndian.Uint64(b[n-16:])
		} else {
			x = binary.LittleEndian.Uint64(b)
		}
		y ^= bits.RotateLeft64(binary.LittleEndian.Uint64(b[n-8:]), 32)
	case n >= 4:
		x = uint64(binary.LittleEndian.Uint32(b))
		y ^= uint64(binary.LittleEndian.Uint32(b[n-4:])) << 16
	default:
		x = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	hi, lo := bits.Mul64(x^k1, y^k0)
	return hi ^ lo
}

// pairTable maps two neighbouring tokens to their merge. A slot is 1<<63 | left<<36 | right<<18 |
// merged.
type pairTable []uint64

const pairSet = 1 << 63 >> idBits // marks a slot as taken, in place after the shift by idBits

func pairSlot(key uint64) uint64 { return key * 0x9E3779B97F4A7C15 >> (64 - tableBits) }

func (p pairTable) put(left, right, merged uint32) {
	key := uint64(left)<<idBits | uint64(right)
	slot := pairSlot(key)
	for p[slot] != 0 {
		slot = (slot + 1) & tableMask
	}
	p[slot] = (key|pairSet)<<idBits | uint64(merged)
}

// merged returns the merge of the neighbours left and right, or absent. Ids are ranks: lower ones
// merge first.
func (p pairTable) merged(left, right uint32) uint32 {
	key := uint64(left)<<idBits | uint64(right)
	for slot := pairSlot(key); ; slot = (slot + 1) & tableMask {
		v := p[slot]
		if v>>idBits == key|pairSet {
			return uint32(v & idMask)
		}
		if v == 0 {
			return absent
		}
	}
}
