package engine

import "slices"

// Caps says what a device can do; nothing else of it decides settings, memory plans and reports. A
// device made of several says what all of them can do.
type Caps struct {
	Computes []string // the compute modes it has kernels for
	DenseQ8  bool     // it has kernels for dense weights in 8 bits
	Dense12  bool     // inputs of such weights have 12 bits, not 8
	FP8KV    bool     // it has kernels for KV pages in 8 bits
	Samples  bool     // it samples tokens: its steps are SamplingSteps
	// Alike: steps of up to so many rows give a row the same bits, larger ones others unless the
	// settings are Deterministic; 0: all steps do
	Alike int

	Discrete   bool    // it has a memory of its own, as a card has; else Memory is the host's
	Integrated bool    // a GPU that shares the host's memory
	Arch       string  // a GPU's instruction set: "sm_90", "gfx942"
	Bandwidth  float64 // byte/s of a GPU's memory by its data sheet; 0: not known
}

// Has tells whether there are kernels for a compute mode.
func (c Caps) Has(compute string) bool { return slices.Contains(c.Computes, compute) }
