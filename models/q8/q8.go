// Package q8 stores 8-bit copies of a checkpoint's dense weights (the projections of attention and
// the unembedding): half the bytes of bf16, created once in a separate file.
//
// The layout is the kernels': rows are in groups of eight. A group has, for each block of 32
// columns, the eight rows' scales (bf16) and then eight times four bytes of every row,
//
//	group = [k/32]{ scales bf16 [8], weights int8 [8][8 rows][4] }
//
// so that one vector holds four columns of eight rows and a matrix is read as one stream. The order
// within every eight columns is 0 2 4 6 1 3 5 7, as in 8-bit activations (and MXFP4's nibbles).
// Rows after the last are zero.
//
// A weight is scale * q with |q| <= 127; the scale is the bf16 with the least squared error, from
// the block's largest magnitude over 127 up to 1.08 times that.
package q8

import (
	"encoding/binary"
	"math"
	"runtime"
	"sync"
)

// Shape of the layout.
const (
	GroupRows  = 8
	BlockSize  = 32
	blockBytes = GroupRows*2 + GroupRows*BlockSize
	Suffix     = ".q8" // appended to the tensor's name for its copy
)

func Groups(n int) int { return (n + GroupRows - 1) / GroupRows }

// GroupBytes is the size of a group of rows of k columns, k a multiple of 32.
func GroupBytes(k int) int { return k / BlockSize * blockBytes }

// Quantize writes the copy of a bf16 matrix [n, k] into dst, which has Groups(n) * GroupBytes(k)
// bytes.
func Quantize(dst, src []byte, n, k int) { quantize(dst, src, n, k, runtime.GOMAXPROCS(0)) }

func quantize(dst, src []byte, n, k, workers int) {
	var wait sync.WaitGroup
	for i := range workers {
		first, last := Groups(n)*i/workers, Groups(n)*(i+1)/workers
		wait.Go(func() {
			for g := first; g < last; g++ {
				group(dst[g*GroupBytes(k):(g+1)*GroupBytes(k)], src[2*g*GroupRows*k:],
					min(GroupRows, n-g*GroupRows), k)
			}
		})
	}
	wait.Wait()
}

// group writes one group; src begins with its first row.
func group(dst, src []byte, rows, k int) {
	clear(dst)
	for b := range k / BlockSize {
		block := dst[b*blockBytes : (b+1)*blockBytes]
		for r := range rows {
			start := 2 * (r*k + b*BlockSize)
			from := src[start : start+2*BlockSize]
			largest := uint32(0)
			for i := 0; i < len(from); i += 2 {
				largest = max(largest, uint32(from[i])|uint32(from[i+1]&0x7f)<<8)
			}
			// rounded up: no value may exceed 127 scales
			scale := (math.Float32bits(math.Float32frombits(largest<<16)/127) + 0xffff) >> 16
			if scale<<16 < 0x00800000 { // no normal reciprocal: the block counts as zero
				continue
			}
			scale = bestScale(from, scale)
			size := math.Float32frombits(scale << 16)
			binary.LittleEndian.PutUint16(block[2*r:], uint16(scale))
			for c := 0; c < BlockSize; c += 8 {
				eight := from[2*c : 2*c+16]
				even := block[2*GroupRows+c*GroupRows+4*r:][:4]
				odd := block[2*GroupRows+(c+4)*GroupRows+4*r:][:4]
				for i := range 4 {
					even[i] = quantized(eight[4*i:], size)
					odd[i] = quantized(eight[4*i+2:], size)
				}
			}
		}
	}
}

// bestScale is the upper half of the bf16 scale that fits a block best, starting at the smallest
// that clips nothing.
func bestScale(block []byte, scale uint32) uint32 {
	const widest, rounding = 1.08, 3 << 22
	var values [BlockSize]float32
	for i := range values {
		values[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(block[2*i:])) << 16)
	}
	scaleBits, least := scale, float32(math.Inf(1))
	for most := widest * math.Float32frombits(scale<<16); ; scale++ {
		size := math.Float32frombits(scale << 16)
		if size > most {
			return scaleBits
		}
		inverse, lost := 1/size, float32(0)
		for _, v := range values {
			quotient := float32(v * inverse)
			rest := quotient - (float32(quotient+rounding) - rounding)
			lost += float32(rest * rest) // separate rounding, so that all machines agree
		}
		if lost *= size * size; lost < least {
			scaleBits, least = scale, lost
		}
	}
}

// quantized is a bf16 over size rounded to the nearest integer, ties to even, between -127 and 127:
// a sum of this magnitude has no bits for a fraction.
func quantized(bf16 []byte, size float32) byte {
	const rounding = 3 << 22
	v := math.Float32frombits(uint32(binary.LittleEndian.Uint16(bf16)) << 16)
	q := int32(math.Float32bits(v/size+rounding)) - int32(math.Float32bits(rounding))
	return byte(int8(max(-127, min(127, q))))
}
