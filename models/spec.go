// Package models knows gpt-oss by its names and its shape: the catalogue, what a name or a target
// means, and the Spec that config.json gives. It opens no weights: package checkpoint finds and
// opens them, package gguf reads those of other programs, package hub fetches them.
//
// What must stay true: a Spec comes from ParseSpec or ReadSpec, which compare everything that the
// engine takes as fixed, so that a checkpoint that differs is refused instead of giving wrong
// answers.
package models

import "reflect"

// The shape of a model. What gpt-oss varies from checkpoint to checkpoint is a field; what it never
// varies (the activation, the constant 1.702, biases, untied embeddings, MXFP4 experts in blocks of
// 32) is the engine's and is checked in config.go.

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
	Window          int // positions that a sliding layer sees, its own included
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

// What gpt-oss fixes for every size.
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

// released is what the two published models share.
func released(name string, layers, experts int) Spec {
	return Spec{
		Name: name, Layers: layers, Hidden: 2880, Intermediate: 2880, Heads: 64, KVHeads: 8,
		HeadDim: headDim,
		Experts: experts, ExpertsPerToken: 4, Vocab: 201088, Window: window, MaxPosition: 131072,
		RopeTheta: 150000, RopeFactor: 32, RopeBetaFast: 32, RopeBetaSlow: 1, RopeOriginal: 4096,
		SwigluLimit: SwigluLimit, NormEps: 1e-5, EOS: []int32{200002, 199999, 200012},
	}
}

// Spec20B is the shape of openai/gpt-oss-20b.
func Spec20B() Spec { return released("gpt-oss-20b", 24, 32) }

// Spec120B is the shape of openai/gpt-oss-120b.
func Spec120B() Spec { return released("gpt-oss-120b", 36, 128) }
