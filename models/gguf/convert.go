package gguf

// GGUF tensors' bytes in the Hugging Face layout. MXFP4 values change places but no bits, and
// bfloat16 values in a wider type come back unchanged. Quantised values, and floats that bfloat16
// cannot represent, are rounded to nearest even.

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/ossrun/ossrun/models"
)

// mxfp4Bytes is an MXFP4 block of a GGUF file: a scale and 16 bytes.
const mxfp4Bytes = 1 + models.BlockBytes

// unpackBlocks writes the blocks and scales of len(scales) GGUF blocks: 16 bytes and one byte each.
func unpackBlocks(blocks, scales, from []byte, kind Type) {
	for i := range scales {
		b := from[i*mxfp4Bytes:][:mxfp4Bytes]
		to := blocks[i*models.BlockBytes:][:models.BlockBytes]
		scales[i] = b[0]
		if kind == MXFP4Ollama {
			copy(to, b[1:])
			continue
		}
		a := reorderNibbles(binary.LittleEndian.Uint64(b[1:]))
		c := reorderNibbles(binary.LittleEndian.Uint64(b[9:]))
		binary.LittleEndian.PutUint64(to, a&0xffffffff|c<<32)
		binary.LittleEndian.PutUint64(to[8:], a>>32|c&^0xffffffff)
	}
}

// reorderNibbles takes eight bytes, each with a value of the block's first half in the low nibble
// and one of its second half in the high one. It returns four bytes with pairs of neighbours of the
// first half, then four of the second.
func reorderNibbles(x uint64) uint64 {
	const even, nibble = 0x00ff00ff00ff00ff, 0x000f000f000f000f
	left, right := x&even, x>>8&even
	// 16 bits each: a pair of the first half, and above it a pair of the second.
	x = left&nibble | right&nibble<<4 | (left>>4&nibble|right&(nibble<<4))<<8
	x = x&0xff0000ffff0000ff | x>>8&0x0000ff000000ff00 | x<<8&0x00ff000000ff0000
	return x&0xffff00000000ffff | x>>16&0x00000000ffff0000 | x<<16&0x0000ffff00000000
}

// ToBF16 writes the values of a source as bfloat16. from has complete blocks of the type.
func ToBF16(to, from []byte, kind Type) {
	b := blocks[kind]
	switch kind {
	case BF16:
		copy(to, from)
	case Q8: // most files' dense weights, in one pass
		const block = 2 + models.BlockSize
		for i := range len(from) / block {
			b := from[i*block:][:block]
			scale, out := f16(b), to[2*i*models.BlockSize:][:2*models.BlockSize]
			for j := range models.BlockSize / 2 {
				first, second := scale*float32(int8(b[2+2*j])), scale*float32(int8(b[3+2*j]))
				binary.LittleEndian.PutUint32(out[4*j:], roundBF16(first)|roundBF16(second)<<16)
			}
		}
	default:
		var values [256]float32 // a largest block
		for piece := range slices.Chunk(from, len(values)/b.values*b.bytes) {
			n := len(piece) / b.bytes * b.values
			Floats(values[:n], piece, kind)
			for i, v := range values[:n] {
				binary.LittleEndian.PutUint16(to[2*i:], uint16(roundBF16(v)))
			}
			to = to[2*n:]
		}
	}
}

// roundBF16 is the nearest bfloat16, ties to even.
func roundBF16(v float32) uint32 {
	bits := math.Float32bits(v)
	if v == v { // a NaN keeps its upper half
		bits += 0x7fff + bits>>16&1
	}
	return bits >> 16
}

// half is an IEEE half-precision number. Its exponent is shifted to float32's and corrected by a
// multiplication, which is exact and also right for subnormal numbers.
func half(bits uint16) float32 {
	const correction = 1 << 112
	v := math.Float32frombits(uint32(bits&0x7fff)<<13) * correction
	if bits&0x7c00 == 0x7c00 { // infinity or NaN
		v = math.Float32frombits(0x7f800000 | uint32(bits&0x3ff)<<13)
	}
	return math.Float32frombits(math.Float32bits(v) | uint32(bits&0x8000)<<16)
}
