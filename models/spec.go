// Package models knows gpt-oss by its names and its shape: the catalogue, the meaning of a name or
// a target, and the Spec from config.json. It opens no weights: package checkpoint finds and opens
// them, package gguf reads those of other programs, package hub downloads them.
//
// What must stay true: a Spec comes from ParseSpec or ReadSpec. They compare all values that are
// constants of the engine, so that a different checkpoint is refused instead of giving wrong
// answers.
package models

import "reflect"

// The shape of a model. Values that differ between gpt-oss checkpoints are fields. Constant ones
// (the activation, 1.702, biases, untied embeddings, MXFP4 experts in blocks of 32) are the
// engine's; config.go checks them.

// Spec is a model's shape and its constants, as config.json gives them.
type Spec struct {
	Name string // "gpt-oss-20b", "gpt-oss-120b", "demo", else the repository's or the folder's name

	Layers          int
	Hidden          int // width of the residual stream
	Intermediate    int // width of one expert
	Heads           int // query heads
	KVHeads         int
	HeadDim         int
	Experts         int // per layer
	ExpertsPerToken int
	Vocab           int
	Window          int // positions that a sliding layer sees, including its own
	MaxPosition     int // longest context, in tokens

	RopeTheta    float64
	RopeFactor   float64 // YaRN: context length over RopeOriginal
	RopeBetaFast float64 // YaRN: rotations above which a frequency is kept
	RopeBetaSlow float64 // YaRN: rotations below which a frequency is divided by RopeFactor
	RopeOriginal int     // YaRN: context length before scaling
	RopeTruncate bool    // YaRN: edges rounded to whole dimensions; false in every gpt-oss

	SwigluLimit float32
	NormEps     float32

	EOS []int32 // ids that end a generation, as generation_config.json or config.json lists them
}

// The constants of every size of gpt-oss.
const (
	headDim     = 64
	window      = 128
	SwigluLimit = 7
	BlockSize   = 32 // MXFP4 elements that share a scale
	BlockBytes  = BlockSize / 2
)

// Sliding tells whether a layer sees a window (even layers) or everything (odd layers).
// config.json's layer_types is checked against it.
func (s Spec) Sliding(layer int) bool { return layer%2 == 0 }

// SameShape tells whether two specs differ at most in name and EOS, so that kernels tuned for one
// serve the other.
func (s Spec) SameShape(o Spec) bool {
	s.Name, s.EOS, o.Name, o.EOS = "", nil, "", nil
	return reflect.DeepEqual(s, o)
}

// released is the common shape of the two published models.
func released(name string, layers, experts int) Spec {
	return Spec{
		Name: name, Layers: layers, Hidden: 2880, Intermediate: 2880, Heads: 64, KVHeads: 8,
		HeadDim: headDim,
		Experts: experts, ExpertsPerToken: 4, Vocab: 201088, Window: window, MaxPosition: 131072,
		RopeTheta: 150000, RopeFactor: 32, RopeBetaFast: 32, RopeBetaSlow: 1, RopeOriginal: 4096,
		SwigluLimit: SwigluLimit, NormEps: 1e-5, EOS: []int32{200002, 199999, 200012},
	}
}

func Spec20B() Spec { return released("gpt-oss-20b", 24, 32) }

func Spec120B() Spec { return released("gpt-oss-120b", 36, 128) }
