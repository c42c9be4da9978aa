// exp for arguments at or below zero. Plain sampling takes 201,088 of them a token, and math.Exp
// would be most of its cost. 2^(k/1024) is read from a table, the remainder is a cubic:
// the relative error is below 1e-14, far below that of the float32 logits.
//
// What must stay true: every machine gets the same bits, so that a seed gives one text everywhere.
// Hence no fused multiply-add: the conversions to float64 around products forbid it to the
// compiler.

package sample

import "math"

const expSteps = 1024 // table entries in one power of two: 8 KiB, a quarter of the L1 cache

var expTable = func() (t [expSteps]uint64) {
	for j := range t {
		t[j] = math.Float64bits(math.Exp2(float64(j) / expSteps))
	}
	return t
}()

const (
	expScale = expSteps * math.Log2E // nats to table steps
	expC1    = math.Ln2 / expSteps
	expC2    = expC1 * expC1 / 2
	expC3    = expC1 * expC1 * expC1 / 6

	// roundSteps added to a number below 2^51 leaves its nearest integer in the low bits of the
	// sum.
	roundSteps = 0x1.8p52
)

// exp2Steps is 2^(t/1024) for -700*expScale <= t <= 0.
func exp2Steps(t float64) float64 {
	m := t + roundSteps
	k := math.Float64bits(m)
	r := t - (m - roundSteps) // in [-1/2, 1/2]
	pow := math.Float64frombits(expTable[k%expSteps] + k/expSteps<<52)
	return pow * (1 + float64(r*(expC1+float64(r*(expC2+float64(r*expC3))))))
}
