package gguf

import (
	"math"
	"testing"

	"github.com/ossrun/ossrun/models"
)

// BenchmarkRepack: bytes made, from blocks that are in the processor's cache.
func BenchmarkRepack(b *testing.B) {
	const blocks = 2048
	b.Run("MXFP4", func(b *testing.B) {
		from, to, scales := make([]byte, blocks*mxfp4Bytes), make([]byte, blocks*models.BlockBytes),
			make([]byte, blocks)
		b.SetBytes(int64(len(to) + len(scales)))
		for b.Loop() {
			unpackBlocks(to, scales, from, MXFP4)
		}
	})
	for kind, size := range map[Type]int{Q8: 34, F32: 128, F16: 64, BF16: 64} {
		b.Run(kind.String(), func(b *testing.B) {
			from, to := make([]byte, blocks*size), make([]byte, blocks*2*models.BlockSize)
			b.SetBytes(int64(len(to)))
			for b.Loop() {
				ToBF16(to, from, kind)
			}
		})
	}
}

// TestHalf: every half-precision number is what its definition says.
func TestHalf(t *testing.T) {
	for bits := range 1 << 16 {
		exponent, fraction, sign := bits>>10&31, float64(bits&0x3ff), 1.0
		if bits&0x8000 != 0 {
			sign = -1
		}
		want := sign * math.Ldexp(1+fraction/1024, exponent-15)
		switch {
		case exponent == 0:
			want = sign * math.Ldexp(fraction/1024, -14)
		case exponent == 31 && fraction == 0:
			want = math.Inf(int(sign))
		case exponent == 31:
			want = math.NaN()
		}
		if got := float64(half(uint16(bits))); math.Float64bits(got) != math.Float64bits(want) &&
			!(got != got && want != want) {
			t.Fatalf("%#x is %v, want %v", bits, got, want)
		}
	}
}
