// The passes that see every logit, with AVX2 if the CPU has it: a third of the time of the Go
// loops, and the same bits, which row_amd64_test.go checks.

package sample

import (
	"math"

	"golang.org/x/sys/cpu"
)

var avx2 = cpu.X86.HasAVX2

// expConstants are what denseMassAVX2 spreads over its lanes, in the order it reads them.
//
//lint:ignore U1000 row_amd64.s reads it
var expConstants = [6]float64{roundSteps, expC3, expC2, expC1, 1,
	math.Float64frombits(expSteps - 1)}

// denseMassAVX2 is denseMassGo.
//
//go:noescape
func denseMassAVX2(v *[blockTokens]float32, least float32, highest, scale float64) float64

// scanAVX2 fills maxima for blocks blocks and returns the largest of the logits' bits without their
// signs.
//
//go:noescape
func scanAVX2(logits, maxima *float32, blocks int) uint32

// laneBits and banned are keepAVX2's constants: the bit of each lane, and -Inf.
var (
	//lint:ignore U1000 row_amd64.s reads it
	laneBits = [8]uint32{1, 2, 4, 8, 16, 32, 64, 128}
	//lint:ignore U1000 row_amd64.s reads it
	banned = float32(math.Inf(-1))
)

// keepAVX2 is keepGo.
//
//go:noescape
func keepAVX2(out, v *[blockTokens]float32, word uint64) float32

func keep(out, v *[blockTokens]float32, word uint64) float32 {
	if avx2 {
		return keepAVX2(out, v, word)
	}
	return keepGo(out, v, word)
}

func denseMass(v *[blockTokens]float32, least float32, highest, scale float64) float64 {
	if avx2 {
		return denseMassAVX2(v, least, highest, scale)
	}
	return denseMassGo(v, least, highest, scale)
}

func scanBlocks(logits, maxima []float32) (finite bool) {
	if avx2 && len(maxima) > 0 {
		return scanAVX2(&logits[0], &maxima[0],
			len(maxima)) < math.Float32bits(float32(math.Inf(1)))
	}
	return scanBlocksGo(logits, maxima)
}
