package engine

import (
	"fmt"
	"slices"
)

// Compute modes: what matrices do to their activations. Accumulation is float32 in all, and so is whatever is not a matrix.
const (
	Exact   = "exact" // nothing: MXFP4 and bf16 weights as they are, float32 activations
	Int8    = "int8"  // rounded to 8 bits in blocks of 32 before each expert matrix; products exact
	Rounded = "bf16"  // in steps of many rows rounded to bf16 where they meet a matrix unit, that of attention too; else as Exact. GPUs have it
	MX      = "mx"    // as Rounded, but in two terms of MXFP4 before each expert matrix; GPUs that multiply MXFP4 have it
)

// Dense weights (attention and unembedding): how they are kept. The router stays bf16 in both.
const (
	DenseBF16 = "bf16" // as released
	DenseQ8   = "q8"   // 8 bits in blocks of 32, a copy made once: about half the bytes; their inputs are rounded too, to 8 bits or to 12 (Options.Dense12)
)

// KVFP8 keeps keys and values of the full layers in e4m3, 8 bits that are rounded to nearest and end at 448; the window layers' stay bf16.
const KVFP8 = "fp8"

// Options shape an Engine. The zero value is a usable exact engine.
type Options struct {
	Compute string // Exact (default), Int8, or Rounded or MX where the device has it
	Dense   string // DenseBF16 (default) or DenseQ8, where the device has it
	Dense12 bool   // with DenseQ8: inputs of dense layers have 12 bits, not 8; On sets it for devices that want it so
	KV      string // "f32" (default with Exact), "bf16" (default else), or KVFP8 where the device has it
	Pages   int    // KV pages in the pool; default 512
	Threads int    // of those the device has; 0: all
	MaxRows int    // rows of the largest step; default 512
	ISA     string // "" for the best this machine has, or "scalar", "neon", "avx2", "avxvnni", "avx512"
	Taps    []string

	// MaxLogits is of how many rows of a step the logits may be asked for; 0: of all. A device has room for so many rows of the vocabulary's length, so
	// steps of thousands of rows want it bounded by the sequences there can be.
	MaxLogits int

	// MaxSeqs is of how many sequences a step may have rows; 0: of as many as it has rows. A device has room for so many block tables, and those of long
	// contexts are long.
	MaxSeqs int

	// Deterministic asks for the same bits whatever else is in the step. The CPU always gives them; a GPU has slower kernels for it.
	Deterministic bool

	DenseCache string // folder for the copy that DenseQ8 makes; "": in memory only, made anew each time
}

const (
	defaultPages   = 512
	defaultMaxRows = 512
)

// withDefaults fills what was left open and refuses what cannot be.
func (o Options) withDefaults() (Options, error) {
	if o.Compute == "" {
		o.Compute = Exact
	}
	if !slices.Contains([]string{Exact, Int8, Rounded, MX}, o.Compute) {
		return o, fmt.Errorf("unknown compute mode %q: %s, %s, %s or %s", o.Compute, Exact, Int8, Rounded, MX)
	}
	if o.Dense == "" {
		o.Dense = DenseBF16
	}
	if o.Dense != DenseBF16 && o.Dense != DenseQ8 {
		return o, fmt.Errorf("unknown form of the dense weights %q: %s or %s", o.Dense, DenseBF16, DenseQ8)
	}
	if o.KV == "" {
		o.KV = "f32"
		if o.Compute != Exact {
			o.KV = "bf16"
		}
	}
	if o.KV != "f32" && o.KV != "bf16" && o.KV != KVFP8 {
		return o, fmt.Errorf("unknown kv type %q: f32, bf16 or %s", o.KV, KVFP8)
	}
	if o.Pages == 0 {
		o.Pages = defaultPages
	}
	o.MaxRows = o.Rows()
	if o.Pages < 1 || o.MaxRows < 1 || o.Threads < 0 || o.MaxLogits < 0 || o.MaxSeqs < 0 {
		return o, fmt.Errorf("pages %d, rows %d and threads %d must be positive", o.Pages, o.MaxRows, o.Threads)
	}
	return o, nil
}

// On completes options with what dev does by itself: of what a model takes there, PlanFor is to be asked with these.
func (o Options) On(dev Device) Options {
	o.Dense12 = o.Dense == DenseQ8 && dev.Caps().Dense12
	return o
}

// Rows is the largest step: MaxRows or its default.
func (o Options) Rows() int {
	if o.MaxRows == 0 {
		return defaultMaxRows
	}
	return o.MaxRows
}

// Seqs is of how many sequences a step of so many rows may have rows.
func (o Options) Seqs(rows int) int {
	if o.MaxSeqs > 0 {
		return min(rows, o.MaxSeqs)
	}
	return rows
}

// kvType is the element type of the cache: with KVFP8 it has two, so it is bytes.
func (o Options) kvType() Type {
	switch o.KV {
	case "bf16":
		return BF16
	case KVFP8:
		return U8
	}
	return F32
}
