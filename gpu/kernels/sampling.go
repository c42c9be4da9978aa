package kernels

import (
	"math"
	"unsafe"
)

// The memory that sampling shares with the host: sample.cu has the same layouts.

// SampleRow is what one row is sampled with.
type SampleRow struct {
	Temperature, TopP, MinP float32 // 0 is greedy; 1 is off; 0 is off
	TopK                    int32   // 0 is off
	Seed                    uint64
	Position                int64
	Mask                    int32 // which of the masks; -1: everything is allowed
	_                       int32
}

// LogitStats is what the LogitStats launch leaves for a row.
type LogitStats struct {
	Highest float32
	Finite  uint32 // 0: a logit is NaN or infinite
	Mass    uint64 // the sum of exp(logit - Highest), times 2^40
}

// Logprob is the natural logarithm of the probability of a token with this logit.
func (s LogitStats) Logprob(logit float32) float32 {
	return float32(float64(logit) - float64(s.Highest) - math.Log(float64(s.Mass)*0x1p-40))
}

// LogitEdit changes one logit v: v/Repetition where it is positive, else v*Repetition; then minus
// Less, plus More. Was receives v.
type LogitEdit struct {
	Row, ID                     int32
	Repetition, Less, More, Was float32
}

// Sizes of the layouts, in bytes.
const (
	SampleRowBytes  = int(unsafe.Sizeof(SampleRow{}))
	LogitStatsBytes = int(unsafe.Sizeof(LogitStats{}))
	LogitEditBytes  = int(unsafe.Sizeof(LogitEdit{}))
)
