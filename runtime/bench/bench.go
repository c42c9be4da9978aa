// Package bench measures an engine: prefill, decode, batches and long contexts in tokens a second,
// and each beside what the machine can do.
//
// It returns data and prints nothing. What must stay true: a figure and the limit that it is
// divided by (the bandwidth of plain reads, the rate of plain 8-bit multiplications) are taken in
// the same round, one right after the other and as the same kind of average, because other work on
// the machine changes both; a ratio is the median of the rounds' ratios. Ratios of processor time
// stand beside them: they leave out what others took. Bytes are those that the operations declare
// (engine.Program.Bytes), operations those of the matrix products alone.
package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Gauge is a device that can measure its own limits.
type Gauge interface {
	Bandwidth(data []byte) float64            // bytes a second of plain reads, all threads
	MultiplyPeak(spend time.Duration) float64 // 8-bit operations a second, all threads
	MultiplyUnit() string                     // the instruction it counts
}

// Options say what is measured.
type Options struct {
	Settings engine.Settings
	Prefill  []int // prompt lengths
	Batches  []int // sequences decoded together
	Contexts []int // tokens already in the cache when decoding is measured once more
	Rounds   int   // of each measurement
	Steps    int   // decode steps of a round
	Plain    bool  // without the profiles, which run each kind of step three times more
	Progress func(string)
}

// Rate is tokens a second over some rounds.
type Rate struct {
	Tokens     int     `json:"tokens"`      // prompt length, or sequences decoded together
	Context    int     `json:"context"`     // tokens in the cache before
	TokensPerS float64 `json:"tok_s"`       // median of the rounds
	Least      float64 `json:"tok_s_least"` // slowest round
	Most       float64 `json:"tok_s_most"`  // fastest round
	// tokens a second of processor time of this process: what a busy machine does not change
	PerCPUSecond float64 `json:"tok_per_cpu_s"`
	// declared by the operations, with the experts that were really chosen; decode only
	BytesPerStep int64 `json:"bytes_per_step"`
	// bytes a second over plain reads, median of the rounds' ratios; decode only
	OfRead    float64 `json:"of_read"`
	OfReadCPU float64 `json:"of_read_cpu"` // the same of bytes a second of processor time
	// operations a second over plain multiplications; prefill only
	OfMultiply float64 `json:"of_multiply"`
	OfMulCPU   float64 `json:"of_multiply_cpu"`
}

// Operation is a kind of operation over a whole step.
type Operation struct {
	Name         string  `json:"name"`
	Milliseconds float64 `json:"ms"`
	Percent      float64 `json:"percent"` // of the step
	Bytes        int64   `json:"bytes"`
	GBPerS       float64 `json:"gb_s"`
	OfRead       float64 `json:"of_read"`
	// tera-operations a second; 0 where there is no matrix product
	TOPS       float64 `json:"tops"`
	OfMultiply float64 `json:"of_multiply"`
}

// Report is one run.
type Report struct {
	Model   string `json:"model"`
	Layers  int    `json:"layers"`
	Device  string `json:"device"`
	Compute string `json:"compute"`
	Dense   string `json:"dense"`
	KV      string `json:"kv"`
	Weights int64  `json:"weight_bytes"`
	// of the 8-bit copy of the dense weights, on disk and in memory; 0 without
	DenseBytes int64   `json:"dense_cache_bytes"`
	ReadGBs    float64 `json:"read_gb_s"` // best of all rounds
	PeakTOPS   float64 `json:"vnni_tops"` // best of all rounds, of the instruction below
	PeakUnit   string  `json:"vnni_unit"`
	// until the first token of a one-token prompt, weights in memory
	StartS   float64 `json:"start_s"`
	Resident int64   `json:"resident_bytes"`

	Prefill []Rate `json:"prefill"`
	Decode  []Rate `json:"decode"`

	PrefillProfile []Operation `json:"prefill_profile"` // of the first prompt length
	DecodeProfile  []Operation `json:"decode_profile"`
	BatchProfile   []Operation `json:"batch_profile"` // of the last batch
}

// Run measures ckpt on dev. It needs memory for the weights that are already there, and for the
// cache of the longest measurement.
func Run(ctx context.Context, dev engine.Device, ckpt *checkpoint.Checkpoint, o Options) (*Report,
	error) {
	gauge, ok := dev.(Gauge)
	if !ok {
		return nil, fmt.Errorf("%s cannot measure its own limits", dev.Name())
	}
	b := &run{ctx: ctx, o: o, dev: dev, gauge: gauge, ckpt: ckpt, random: rand.New(rand.NewPCG(1,
		2))}
	defer b.close()
	if err := b.start(); err != nil {
		return nil, err
	}
	for _, n := range o.Prefill {
		if err := b.prefill(n); err != nil {
			return nil, err
		}
	}
	points := []decodePoint{{1, 0}}
	for _, n := range o.Batches {
		points = append(points, decodePoint{n, 0})
	}
	for _, n := range o.Contexts {
		points = append(points, decodePoint{1, n})
	}
	for _, at := range points {
		if err := b.decode(at); err != nil {
			return nil, err
		}
	}
	b.report.Resident = residentBytes()
	return &b.report, b.close()
}

// decodePoint is one measurement of decoding.
type decodePoint struct{ sequences, context int }
