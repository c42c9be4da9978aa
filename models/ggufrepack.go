package models

// The bytes of GGUF tensors as the Hugging Face layout has them. MXFP4 changes places and no bit; what was made from bfloat16 comes
// back as it was; only Q8_0 and float numbers that bfloat16 cannot hold are rounded, to nearest even.

import (
	"encoding/binary"
	"math"

	"github.com/ossrun/ossrun/models/gguf"
)

// ggufBlockBytes is an MXFP4 block of a GGUF file: a scale and 16 bytes.
const ggufBlockBytes = 1 + blockBytes

// unpackBlocks writes the blocks and scales of len(scales) GGUF blocks: 16 bytes and one byte each.
func unpackBlocks(blocks, scales, from []byte, kind gguf.Type) {
	for i := range scales {
		b := from[i*ggufBlockBytes:][:ggufBlockBytes]
		to := blocks[i*blockBytes:][:blockBytes]
		scales[i] = b[0]
		if kind == gguf.MXFP4Ollama {
			copy(to, b[1:])
			continue
		}
		first, second := binary.LittleEndian.Uint64(b[1:]), binary.LittleEndian.Uint64(b[9:])
		const low = 0x0f0f0f0f0f0f0f0f
		binary.LittleEndian.PutUint32(to[0:], together(first&low))
		binary.LittleEndian.PutUint32(to[4:], together(second&low))
		binary.LittleEndian.PutUint32(to[8:], together(first>>4&low))
		binary.LittleEndian.PutUint32(to[12:], together(second>>4&low))
	}
}

// together packs the low nibbles of eight bytes into four bytes, in their order.
func together(nibbles uint64) uint32 {
	x := nibbles | nibbles>>4 // bytes 0, 2, 4, 6 hold a pair each
	x &= 0x00ff00ff00ff00ff   //
	x |= x >> 8               // 16-bit halves of the 32-bit words
	x &= 0x0000ffff0000ffff   //
	return uint32(x | x>>16)
}

// toBF16 writes the values of a source as bfloat16. from holds whole blocks of the type.
func toBF16(to, from []byte, kind gguf.Type) {
	switch kind {
	case gguf.BF16:
		copy(to, from)
	case gguf.F32:
		for i := range len(from) / 4 {
			bits := binary.LittleEndian.Uint32(from[4*i:])
			putBF16(to[2*i:], math.Float32frombits(bits))
		}
	case gguf.F16:
		for i := range len(from) / 2 {
			putBF16(to[2*i:], half(binary.LittleEndian.Uint16(from[2*i:])))
		}
	case gguf.Q8:
		const block = 2 + blockSize
		for i := range len(from) / block {
			b := from[i*block:][:block]
			scale := half(binary.LittleEndian.Uint16(b))
			for j, q := range b[2:] {
				putBF16(to[2*(i*blockSize+j):], scale*float32(int8(q)))
			}
		}
	}
}

// putBF16 writes the nearest bfloat16, the even one of two.
func putBF16(to []byte, v float32) {
	bits := math.Float32bits(v)
	if v == v { // what is no number keeps its upper half
		bits += 0x7fff + bits>>16&1
	}
	binary.LittleEndian.PutUint16(to, uint16(bits>>16))
}

// half is an IEEE half-precision number.
func half(bits uint16) float32 {
	sign := uint32(bits&0x8000) << 16
	exponent, fraction := uint32(bits>>10&0x1f), uint32(bits&0x3ff)
	switch exponent {
	case 0:
		v := float32(fraction) / (1 << 24)
		if sign != 0 {
			v = -v
		}
		return v
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}
