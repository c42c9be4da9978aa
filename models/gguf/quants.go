package gguf

// The values of quantised blocks, as defined by ggml. Every type is a scale times a small integer,
// some with a minimum. The formulas are those of PyPI's gguf package; the test compares each type
// with it, bit for bit.
//
// What must stay true: each product is rounded to float32 before anything is added. The explicit
// conversion prevents the compiler from fusing the two and rounding once.

import (
	"encoding/binary"
	"math"

	"github.com/ossrun/ossrun/models/safetensors"
)

func f16(b []byte) float32 { return half(binary.LittleEndian.Uint16(b)) }

// nibbles writes 32 values: the low halves of 16 bytes, then the high ones.
func nibbles(to []float32, from []byte, value func(code byte, i int) float32) {
	for i, b := range from[:16] {
		to[i], to[i+16] = value(b&15, i), value(b>>4, i+16)
	}
}

func decodeQ4_0(to []float32, from []byte) {
	d := f16(from)
	nibbles(to, from[2:], func(code byte, _ int) float32 { return d * float32(int(code)-8) })
}

func decodeQ4_1(to []float32, from []byte) {
	d, m := f16(from), f16(from[2:])
	nibbles(to, from[4:], func(code byte, _ int) float32 { return float32(d*float32(code)) + m })
}

// fifth is the i-th value's fifth bit, shifted into place.
func fifth(bits uint32, i int) int { return int(bits>>i&1) << 4 }

func decodeQ5_0(to []float32, from []byte) {
	d, bits := f16(from), binary.LittleEndian.Uint32(from[2:])
	nibbles(to, from[6:], func(code byte, i int) float32 {
		return d * float32((int(code)|fifth(bits, i))-16)
	})
}

func decodeQ5_1(to []float32, from []byte) {
	d, m, bits := f16(from), f16(from[2:]), binary.LittleEndian.Uint32(from[4:])
	nibbles(to, from[8:], func(code byte, i int) float32 {
		return float32(d*float32(int(code)|fifth(bits, i))) + m
	})
}

// iq4 are the values of IQ4_NL's and IQ4_XS's codes.
var iq4 = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

func decodeIQ4NL(to []float32, from []byte) {
	d := f16(from)
	nibbles(to, from[2:], func(code byte, _ int) float32 { return d * iq4[code] })
}

// decodeIQ4XS: a scale, the upper two bits of eight scales, their lower four, 128 bytes of codes.
func decodeIQ4XS(to []float32, from []byte) {
	d, high := f16(from), binary.LittleEndian.Uint16(from[2:])
	for i := range 8 {
		low := from[4+i/2] >> (4 * (i % 2)) & 15
		scale := d * float32(int(low|byte(high>>(2*i)&3)<<4)-32)
		nibbles(to[32*i:], from[8+16*i:], func(code byte, _ int) float32 {
			return scale * iq4[code]
		})
	}
}

// decodeQ2K: 16 pairs of a scale and a minimum in four bits each, 64 bytes of codes, their scale,
// the minima's.
func decodeQ2K(to []float32, from []byte) {
	d, dmin := f16(from[80:]), f16(from[82:])
	for i := range 16 { // 16 values each
		pair, codes := from[i], from[16+i/8*32+i%2*16:]
		scale, low := d*float32(pair&15), dmin*float32(pair>>4)
		for j := range 16 {
			code := codes[j] >> (i / 2 % 4 * 2) & 3
			to[16*i+j] = float32(scale*float32(code)) - low
		}
	}
}

// decodeQ3K: 32 bytes of upper bits, 64 of lower ones, 16 scales of six bits, their scale.
func decodeQ3K(to []float32, from []byte) {
	d, packed := f16(from[108:]), from[96:108]
	for i := range 16 {
		six := packed[i%8] >> (i / 8 * 4) & 15
		six |= packed[8+i%4] >> (i / 4 * 2) & 3 << 4
		scale := d * float32(int(six)-32)
		upper, codes := from[i%2*16:], from[32+i/8*32+i%2*16:]
		for j := range 16 {
			code := int(codes[j]>>(i/2%4*2)&3) | int(upper[j]>>(i/2)&1)<<2
			to[16*i+j] = scale * float32(code-4)
		}
	}
}

// sixBits are the i-th scale and minimum of the 12 bytes in Q4_K and Q5_K.
func sixBits(packed []byte, i int) (scale, low byte) {
	if i < 4 {
		return packed[i] & 63, packed[i+4] & 63
	}
	return packed[i+4]&15 | packed[i-4]>>6<<4, packed[i+4]>>4 | packed[i]>>6<<4
}

// decodeQ4K: a scale of the scales, one of the minima, eight pairs of them, 128 bytes of codes.
func decodeQ4K(to []float32, from []byte) { decodeQ45K(to, from, nil, from[16:]) }

// decodeQ5K: the same, with 32 bytes of fifth bits before the codes.
func decodeQ5K(to []float32, from []byte) { decodeQ45K(to, from, from[16:48], from[48:]) }

func decodeQ45K(to []float32, from, upper, codes []byte) {
	d, dmin := f16(from), f16(from[2:])
	for i := range 8 { // 32 values each
		six, lowest := sixBits(from[4:16], i)
		scale, low := d*float32(six), dmin*float32(lowest)
		for j := range 32 {
			code := codes[i/2*32+j] >> (i % 2 * 4) & 15
			if upper != nil {
				code |= upper[j] >> i & 1 << 4
			}
			to[32*i+j] = float32(scale*float32(code)) - low
		}
	}
}

// decodeQ6K: 128 bytes of lower halves, 64 of upper bits, 16 signed scales, their scale.
func decodeQ6K(to []float32, from []byte) {
	d := f16(from[208:])
	for i := range 16 {
		scale := d * float32(int8(from[192+i]))
		// of each 128 values the first 64 are low halves of 64 bytes, the others high ones
		quarter := i / 2 % 4
		lower, upper := from[i/8*64+quarter%2*32+i%2*16:], from[128+i/8*32+i%2*16:]
		for j := range 16 {
			code := lower[j]>>(quarter/2*4)&15 | upper[j]>>(2*quarter)&3<<4
			to[16*i+j] = scale * float32(int(code)-32)
		}
	}
}

// E2M1 are the values of MXFP4's codes.
var E2M1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -0.5, -1, -1.5,
	-2, -3, -4, -6}

// e8m0 is half of a power-of-two scale, because the largest is not a float32.
func e8m0(b byte) float32 { return float32(math.Ldexp(1, int(b)-128)) }

func decodeMXFP4(to []float32, from []byte) {
	d := e8m0(from[0])
	nibbles(to, from[1:], func(code byte, _ int) float32 { return d * (2 * E2M1[code]) })
}

func decodeMXFP4Ollama(to []float32, from []byte) {
	d := e8m0(from[0])
	for i, b := range from[1:17] {
		to[2*i], to[2*i+1] = d*(2*E2M1[b&15]), d*(2*E2M1[b>>4])
	}
}

// decodeNVFP4: four unsigned scales, with four bits of exponent (bias 7) and three of fraction.
// Each has 16 values: the low halves of eight bytes, then the high ones.
func decodeNVFP4(to []float32, from []byte) {
	for i, b := range from[:4] {
		d := float32(math.Ldexp(float64(8+b&7), int(b>>3&15)-7-3))
		switch {
		case b == 0x7f: // not a number, which ggml treats as 0
			d = 0
		case b>>3&15 == 0:
			d = float32(math.Ldexp(float64(b&7), -9))
		}
		for j, c := range from[4+8*i:][:8] {
			to[16*i+j], to[16*i+j+8] = d*E2M1[c&15], d*E2M1[c>>4]
		}
	}
}

// Kinds are the types of safetensors that Floats and ToBF16 read.
var Kinds = map[safetensors.DType]Type{safetensors.BF16: BF16, "F16": F16, safetensors.F32: F32}

// Floats writes the values of complete blocks.
func Floats(to []float32, from []byte, kind Type) {
	switch b := blocks[kind]; kind {
	case F32:
		for i := range len(from) / 4 {
			to[i] = math.Float32frombits(binary.LittleEndian.Uint32(from[4*i:]))
		}
	case F16:
		for i := range len(from) / 2 {
			to[i] = f16(from[2*i:])
		}
	case BF16:
		for i := range len(from) / 2 {
			to[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(from[2*i:])) << 16)
		}
	case Q8:
		for ; len(from) > 0; to, from = to[b.values:], from[b.bytes:] {
			d := f16(from)
			for j, v := range from[2:b.bytes] {
				to[j] = d * float32(int8(v))
			}
		}
	default:
		for ; len(from) > 0; to, from = to[b.values:], from[b.bytes:] {
			b.decode(to, from)
		}
	}
}
