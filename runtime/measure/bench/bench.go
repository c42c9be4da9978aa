// Package bench measures an engine: prefill, decode, batches and long contexts in tokens a second,
// each relative to the machine's limits.
//
// It returns data and prints nothing. What must stay true: a figure and the limit that it is
// divided by (the bandwidth of plain reads, the rate of plain 8-bit multiplications) are taken in
// the same round, one right after the other and as the same kind of average, because other work on
// the machine changes both; a ratio is the median of the rounds' ratios. Ratios of processor time
// are next to them: they leave out other processes. Bytes are those that the operations declare
// (engine.Program.Bytes), operations those of the matrix products alone.
package bench

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/serve"
)

type Options struct {
	Settings engine.Settings
	Prefill  []int // prompt lengths
	Batches  []int // sequences decoded together
	Contexts []int // tokens already in the cache when decoding is measured once more
	Rounds   int   // of each measurement
	Steps    int   // decode steps of a round; of batches fewer, see stepsOf
	Plain    bool  // without the profiles, which run each kind of step three times more
	Progress func(string)
}

// Rate is tokens a second over some rounds.
type Rate struct {
	Test       string  `json:"test"`        // as llama-bench names it: pp512, tg128 @ d4096
	Tokens     int     `json:"tokens"`      // prompt length, or sequences decoded together
	Context    int     `json:"context"`     // tokens in the cache before
	TokensPerS float64 `json:"tok_s"`       // median of the rounds
	Least      float64 `json:"tok_s_least"` // slowest round
	Most       float64 `json:"tok_s_most"`  // fastest round
	// tokens a second of processor time of this process, independent of other work on the machine
	PerCPUSecond float64 `json:"tok_per_cpu_s"`
	// distinct experts that a layer read in a step, mean of layers and steps; on a GPU the expected
	// number, of an even routing
	Experts float64 `json:"experts"`
	// declared by the operations, with the experts that were really chosen: of a decode step, or of
	// the whole prompt; mean of the steps
	BytesPerStep  int64   `json:"bytes_per_step"`
	BytesPerToken int64   `json:"bytes_per_token"`
	GBPerS        float64 `json:"gb_s"` // of these bytes, median of the rounds
	// bytes a second over plain reads, median of the rounds' ratios
	OfRead    float64 `json:"of_read"`
	OfReadCPU float64 `json:"of_read_cpu"` // the same of bytes a second of processor time
	// expected by an excerpt of the model, measured in the same rounds; see predict
	PredictedPerS float64 `json:"predicted_tok_s"`
	OfPredicted   float64 `json:"of_predicted"` // measured over predicted
	// operations a second over plain multiplications; prefill only
	OfMultiply float64 `json:"of_multiply"`
	OfMulCPU   float64 `json:"of_multiply_cpu"`
}

// Operation is a kind of operation over a whole step.
type Operation struct {
	Name         string  `json:"name"`
	Milliseconds float64 `json:"ms"` // median of the rounds
	Least        float64 `json:"ms_least"`
	Most         float64 `json:"ms_most"`
	Percent      float64 `json:"percent"` // of the step
	Bytes        int64   `json:"bytes"`
	GBPerS       float64 `json:"gb_s"`
	OfRead       float64 `json:"of_read"`
	// tera-operations a second; 0 without a matrix product
	TOPS       float64 `json:"tops"`
	OfMultiply float64 `json:"of_multiply"`
}

// About is the machine and the program of a report, so that reports can be shared.
type About struct {
	Date    string `json:"date"`
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Kernels string `json:"kernels"` // the same in builds that compute the same way
	Command string `json:"command"`
	OS      string `json:"os"`
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"` // that the process may use
	Memory  int64  `json:"memory_total"`
}

type Report struct {
	About   About  `json:"about"`
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
	// processes that wanted the processor in the minute before; 0 if unknown
	LoadAverage float64 `json:"load_average"`

	LoadS float64 `json:"load_s"` // until the engine is ready, the weights opened before
	// until the first token of a one-token prompt, the load included
	StartS   float64 `json:"start_s"`
	Resident int64   `json:"resident_bytes"`

	Prefill []Rate `json:"prefill"`
	Decode  []Rate `json:"decode"`

	PrefillProfile []Operation `json:"prefill_profile"` // of the first prompt length
	DecodeProfile  []Operation `json:"decode_profile"`
	BatchProfile   []Operation `json:"batch_profile"` // of the last batch
}

// Run measures ckpt on a backend. Besides the weights it needs memory for the cache of the longest
// measurement, and for two layers to predict by. When ctx ends it returns the report so far, and
// the error.
func Run(ctx context.Context, backend engine.Backend, gauge serve.Gauge,
	ckpt *checkpoint.Checkpoint, o Options) (*Report, error) {
	b := newRun(ctx, backend, gauge, ckpt, o)
	b.untapped = backend.Caps().Discrete
	defer b.close()
	if err := b.start(); err != nil {
		return nil, err
	}
	if err := b.openExcerpt(); err != nil {
		return nil, err
	}
	for _, n := range o.Prefill {
		if err := b.prefill(n); err != nil {
			return &b.report, err
		}
	}
	for _, point := range o.points() {
		if err := b.decode(point); err != nil {
			return &b.report, err
		}
	}
	if err := b.closeExcerpt(); err != nil {
		return &b.report, err
	}
	b.report.Resident = residentBytes()
	return &b.report, b.close()
}

func newRun(ctx context.Context, backend engine.Backend, gauge serve.Gauge,
	ckpt *checkpoint.Checkpoint, o Options) *run {
	return &run{ctx: ctx, o: o, backend: backend, gauge: gauge, ckpt: ckpt,
		random: rand.New(rand.NewPCG(1, 2))}
}

type decodePoint struct{ sequences, context int }

// points are one sequence, the batches, and one sequence after each context.
func (o *Options) points() []decodePoint {
	list := []decodePoint{{1, 0}}
	for _, n := range o.Batches {
		if n > 1 {
			list = append(list, decodePoint{n, 0})
		}
	}
	for _, n := range o.Contexts {
		if n > 0 {
			list = append(list, decodePoint{1, n})
		}
	}
	return list
}

const fewSteps = 4

// stepsOf is the steps of a batch's round: as many tokens as one sequence has, but a few steps.
func (o *Options) stepsOf(sequences int) int {
	return min(o.Steps, max(fewSteps, o.Steps/sequences))
}

func (p decodePoint) test(o *Options) string {
	name := fmt.Sprintf("tg%d", o.stepsOf(p.sequences))
	if p.sequences > 1 {
		name += fmt.Sprintf(" x %d", p.sequences)
	}
	if p.context > 0 {
		name += fmt.Sprintf(" @ d%d", p.context)
	}
	return name
}
