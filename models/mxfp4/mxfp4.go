// Package mxfp4 decodes MXFP4, the format of gpt-oss's expert weights, exactly.
//
// 32 elements along the input dimension are a block of 16 bytes and a scale byte. Byte b of the block holds element 2b in its
// low nibble and element 2b+1 in its high one; a nibble is an E2M1 number (sign, two bits of exponent, one of mantissa); the scale
// is E8M0, a power of two: value = element * 2^(scale-127).
//
// This is the plain reference that tests and the scalar engine use; the kernels read the same bytes their own way and are
// held to it. Every product is exact in float64. In float32 it is exact wherever float32 has the number: down to the
// subnormal 2^-128, half of scale 0, and up to 1.5 * 2^127; beyond, it is infinite.
// Scale 255 is NaN in the format's definition; as in the models' reference code it is not special here (2^128).
package mxfp4

import (
	"fmt"
	"math"
)

const (
	Block      = 32        // elements that share a scale
	BlockBytes = Block / 2 // bytes of a block
)

// Elements are the values of the 16 codes.
var Elements = [16]float64{0, 0.5, 1, 1.5, 2, 3, 4, 6, math.Copysign(0, -1), -0.5, -1, -1.5, -2, -3, -4, -6}

// Scale gives the power of two that a scale byte stands for: 2^(code-127).
func Scale(code uint8) float64 { return math.Ldexp(1, int(code)-127) }

// Decode64 writes the values of len(scales) blocks to dst, 32 a scale. blocks holds 16 bytes a scale.
func Decode64(dst []float64, blocks, scales []byte) error { return decode(dst, blocks, scales) }

// Decode32 is Decode64 with each value rounded to float32; only values of 2^128 and more are not exact, and become infinite.
func Decode32(dst []float32, blocks, scales []byte) error { return decode(dst, blocks, scales) }

func decode[F float32 | float64](dst []F, blocks, scales []byte) error {
	if len(blocks) != len(scales)*BlockBytes || len(dst) != len(scales)*Block {
		return fmt.Errorf("mxfp4: %d values of %d bytes with %d scales: a scale has %d values and %d bytes", len(dst), len(blocks), len(scales), Block, BlockBytes)
	}
	for i, code := range scales {
		// The 16 values a block can hold, so that the loop below only looks up.
		var values [16]F
		scale := Scale(code)
		for nibble, element := range Elements {
			values[nibble] = F(element * scale)
		}
		block, out := blocks[i*BlockBytes:][:BlockBytes], dst[i*Block:][:Block]
		for b, pair := range block {
			out[2*b], out[2*b+1] = values[pair&15], values[pair>>4]
		}
	}
	return nil
}
