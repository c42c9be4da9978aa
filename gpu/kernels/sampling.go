package kernels

import (
	"encoding/binary"
	"math"
)

// The memory layouts that sampling shares with the host: sample.cu has the same.

// SampleRow is what one row is sampled with.
type SampleRow struct {
	Temperature, TopP, MinP float32 // 0 is greedy; 1 is off; 0 is off
	TopK                    int32   // 0 is off
	Seed                    uint64
	Position                int64
	Mask                    int32 // which of the masks; -1: everything is allowed
}

// Sizes of the layouts, in bytes.
const (
	SampleRowBytes  = 40
	LogitStatsBytes = 16
	LogitEditBytes  = 24
)

// What Sample leaves instead of a token.
const (
	TokenNotFinite     = -1 // a logit is NaN or infinite
	TokenNothingIsLeft = -2 // the mask allows no token
)

// Append adds the row as the device reads it.
func (r SampleRow) Append(b []byte) []byte {
	for _, f := range []float32{r.Temperature, r.TopP, r.MinP} {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(r.TopK))
	b = binary.LittleEndian.AppendUint64(b, r.Seed)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.Position))
	b = binary.LittleEndian.AppendUint32(b, uint32(r.Mask))
	return append(b, 0, 0, 0, 0)
}

// LogitStats is what the LogitStats launch leaves for a row.
type LogitStats struct {
	Highest float32
	Finite  bool
	Mass    uint64 // the sum of exp(logit - Highest), times 2^40
}

// LogitStatsAt reads row i.
func LogitStatsAt(b []byte, i int) LogitStats {
	b = b[i*LogitStatsBytes:][:LogitStatsBytes]
	return LogitStats{math.Float32frombits(binary.LittleEndian.Uint32(b)),
		binary.LittleEndian.Uint32(b[4:]) != 0, binary.LittleEndian.Uint64(b[8:])}
}

// Logprob is the natural logarithm of the probability of a token with this logit.
func (s LogitStats) Logprob(logit float32) float32 {
	return float32(float64(logit) - float64(s.Highest) - math.Log(float64(s.Mass)*0x1p-40))
}

// LogitEdit changes one logit v: v/Repetition where it is positive, else v*Repetition; then minus
// Less, plus More.
type LogitEdit struct {
	Row, ID                int32
	Repetition, Less, More float32
}

// Append adds the edit as the device reads it; the last word receives the old logit.
func (e LogitEdit) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(e.Row))
	b = binary.LittleEndian.AppendUint32(b, uint32(e.ID))
	for _, f := range []float32{e.Repetition, e.Less, e.More, 0} {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}
