package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/models/checkpoint"
)

// Compute modes: how matrix products round their activations. In all modes accumulation is float32,
// and so is everything outside matrix products.
const (
	Exact = "exact" // nothing: MXFP4 and bf16 weights as they are, float32 activations
	Int8  = "int8"  // rounded to 8 bits in blocks of 32 before each expert matrix; products exact
	// as Int8, before every product of dense weights in 8 bits too
	Int8Fast = "int8-fast"
	// in steps of many rows rounded to bf16 for a GPU's matrix units, in attention too
	Rounded = "bf16"
	// as Rounded, but two MXFP4 terms before each expert matrix, if the GPU multiplies those
	MX = "mx"
)

// Types of dense weights (attention and unembedding). The router stays bf16 in both.
const (
	DenseBF16 = "bf16" // as released
	// a copy in 8 bits, in blocks of 32; inputs have 8 bits too, or 12: Settings.Dense12
	DenseQ8 = "q8"
)

// KVFP8 keeps keys and values of full layers in e4m3 (at most 448), of window layers in bf16.
const KVFP8 = "fp8"

// Settings are a user's choices for a running model, and the memory plan's. They pass unchanged
// from the flags and the config file to the engine. Names are those of vLLM's flags, so that one
// number has one name everywhere. The zero value is a usable exact engine.
type Settings struct {
	// The device. Only code that opens a backend reads these.
	Device  string // "auto", "cpu" or "gpu"; "" is auto
	GPUs    []int  // numbers of the GPUs that may be used; none: the first that works
	Isolate bool   // the GPU engine runs in a process of its own
	// at least this many layers have their experts on the CPU; 0: as few as make the model fit
	CPUExperts int
	Threads    int // of the CPU; 0: all
	// "" for the best here, or "scalar", "neon", "i8mm", "bf16", "avx2", "avxvnni", "avx512",
	// "vbmi", "amx"
	ISA string

	// The arithmetic.
	Compute string // Exact (default), Int8, or Int8Fast, Rounded or MX if the device has it
	// DenseBF16, or DenseQ8 if the device has it; "": package serve's choice, else DenseBF16
	Dense string
	// folder that keeps DenseQ8's copy; "": it is made again each time
	DenseCache string
	// "f32" (default with Exact), "bf16" (default else), or KVFP8 if the device has it
	KVCacheDtype string
	// results do not depend on the other rows of a step: a CPU always, a GPU with fewer kernels
	Deterministic bool

	// Limits.
	MaxModelLen int // longest context in tokens; 0: as long as fits
	// most sequences in a step, whose block tables have room; 0: as many as rows
	MaxNumSeqs           int
	MaxNumBatchedTokens  int     // rows of the largest step; 0: 512
	MaxWaiting           int     // requests that may wait; 0: 2048
	GPUMemoryUtilization float64 // share of the memory that may be taken; 0: all but a reserve
	NoPrefixCaching      bool    // every prompt is computed from its first token on
	Drafts               int     // guessed tokens of a sequence that a step may try; 0: none

	// Set by the loader.
	Pages int // KV pages in the pool, from the memory plan; 0: 512
	// how many rows of a step may have logits; 0: all. Steps of thousands of rows need a bound,
	// since a row of logits is long
	MaxLogits int
	// with DenseQ8: inputs of q, k and v have 12 bits, not 8, and with Exact those of all dense
	// layers; On sets it for devices that ask for it
	Dense12 bool
	// not all experts fit in memory: those of a step are requested from the disk once they are
	// chosen
	OnDisk bool
	// rows of prompts are bf16, and experts and bf16 weights multiply them on tiles; On sets it
	Tiles    bool
	Adapters []checkpoint.Adapter // of the checkpoint, computed by the same engine
	Taps     []string             // names of values that tests read back
}

func (o Settings) Check() error {
	_, err := o.withDefaults()
	return err
}

// withDefaults fills in the defaults and refuses impossible values.
func (o Settings) withDefaults() (Settings, error) {
	o.Compute = cmp.Or(o.Compute, Exact)
	if !slices.Contains([]string{Exact, Int8, Int8Fast, Rounded, MX}, o.Compute) {
		return o, fmt.Errorf("unknown compute mode %q: %s, %s, %s, %s or %s", o.Compute, Exact,
			Int8, Int8Fast, Rounded, MX)
	}
	o.Dense = cmp.Or(o.Dense, DenseBF16)
	if o.Dense != DenseBF16 && o.Dense != DenseQ8 {
		return o, fmt.Errorf("unknown type of the dense weights %q: %s or %s", o.Dense, DenseBF16,
			DenseQ8)
	}
	o.KVCacheDtype = o.CacheType()
	if o.KVCacheDtype != "f32" && o.KVCacheDtype != "bf16" && o.KVCacheDtype != KVFP8 {
		return o, fmt.Errorf("unknown kv type %q: f32, bf16 or %s", o.KVCacheDtype, KVFP8)
	}
	o.Pages, o.MaxNumBatchedTokens = cmp.Or(o.Pages, 512), o.Rows()
	if o.Pages < 1 || o.MaxNumBatchedTokens < 1 || o.Threads < 0 || o.MaxLogits < 0 ||
		o.MaxNumSeqs < 0 {
		return o, fmt.Errorf("pages %d, rows %d and threads %d must be positive", o.Pages,
			o.MaxNumBatchedTokens, o.Threads)
	}
	return o, nil
}

// On adds the settings that dev decides, so that PlanFor tells a model's memory on dev.
func (o Settings) On(dev interface{ Caps() Caps }) Settings {
	c := dev.Caps()
	o.Dense12 = o.Dense == DenseQ8 && o.Compute != Int8Fast && c.Dense12
	o.Tiles = c.Tiles != "" && cmp.Or(o.ISA, c.ISA) == c.Tiles && o.Compute == Int8 &&
		!o.Deterministic
	return o
}

// InEight: experts take their inputs in 8 bits.
func (o Settings) InEight() bool { return o.Compute == Int8 || o.Compute == Int8Fast }

// Rows is how many rows the largest step has.
func (o Settings) Rows() int { return cmp.Or(o.MaxNumBatchedTokens, 512) }

// CacheType is KVCacheDtype or its default.
func (o Settings) CacheType() string {
	if o.KVCacheDtype == "" && o.Compute != "" && o.Compute != Exact {
		return "bf16"
	}
	return cmp.Or(o.KVCacheDtype, "f32")
}

// Seqs is how many sequences may have rows in a step of this many rows.
func (o Settings) Seqs(rows int) int { return min(rows, cmp.Or(o.MaxNumSeqs, rows)) }

// kvType is the element type of the cache. With KVFP8 the cache has two, so kvType is bytes.
func (o Settings) kvType() Type {
	switch o.KVCacheDtype {
	case "bf16":
		return BF16
	case KVFP8:
		return U8
	}
	return F32
}
