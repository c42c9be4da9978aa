package models

// config.json to Spec. Shapes are read; the engine's constants are compared, so that a different
// checkpoint is refused instead of giving wrong answers. Fields without effect on inference are
// ignored: dropout, initializer_range, router_aux_loss_coef, use_cache, output_router_logits.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
)

// Limits for a Spec, far above any model, so that sizes computed from it cannot overflow.
const (
	maxLayers   = 1024
	maxWidth    = 1 << 16
	maxExperts  = 1 << 12
	maxVocab    = 1 << 22
	maxPosition = 1 << 24
)

// ReadSpec reads config.json and the optional generation_config.json in folder.
func ReadSpec(folder string) (Spec, error) {
	config, err := ReadFile(filepath.Join(folder, "config.json"))
	if err != nil {
		return Spec{}, err
	}
	generation, err := ReadFile(filepath.Join(folder, "generation_config.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Spec{}, err
	}
	return ParseSpec(config, generation)
}

// ParseSpec reads the texts of config.json and generation_config.json; the latter may be nil.
func ParseSpec(config, generation []byte) (Spec, error) {
	config, generation, err := HuggingFaceConfig(config, generation)
	if err != nil {
		return Spec{}, err
	}
	f, err := parseFields("config.json", config)
	if err != nil {
		return Spec{}, err
	}
	if err := foreignConfig(f); err != nil {
		return Spec{}, err
	}
	s, err := f.spec()
	if err != nil || generation == nil {
		return s, err
	}
	g, err := parseFields("generation_config.json", generation)
	if err != nil {
		return Spec{}, err
	}
	return s.withEOS(g)
}

// spec reads and checks a config.json whose model_type is gpt_oss.
func (f fields) spec() (Spec, error) {
	s := Spec{
		Layers:       f.integer("num_hidden_layers", 1, maxLayers),
		Hidden:       f.integer("hidden_size", BlockSize, maxWidth),
		Intermediate: f.integer("intermediate_size", BlockSize, maxWidth),
		Heads:        f.integer("num_attention_heads", 1, maxWidth/headDim),
		KVHeads:      f.integer("num_key_value_heads", 1, maxWidth/headDim),
		HeadDim:      headDim,
		Experts:      f.integer("num_local_experts", 1, maxExperts),
		Vocab:        f.integer("vocab_size", 1, maxVocab),
		Window:       window,
		MaxPosition:  f.integer("max_position_embeddings", 1, maxPosition),
		SwigluLimit:  SwigluLimit,
		NormEps:      float32(f.number("rms_norm_eps", 0.1, 1e-5)),
	}
	must(f, "head_dim", headDim, required)
	must(f, "sliding_window", window, required)
	must(f, "swiglu_limit", float64(SwigluLimit), implied)
	must(f, "hidden_act", "silu", implied)
	must(f, "attention_bias", true, implied)
	must(f, "tie_word_embeddings", false, implied)
	must(f, "partial_rotary_factor", 1.0, implied)
	f.expertsPerToken(&s)
	f.layerTypes(s)
	f.rope(&s)
	if !f.has("quantization_config") {
		f.fail("quantization_config", "is missing: %s", DequantisedExperts)
	}
	must(f.sub("quantization_config"), "quant_method", "mxfp4", required)
	if *f.err == nil {
		switch {
		case s.Hidden%BlockSize != 0:
			f.fail("hidden_size", "is %d, not a multiple of the %d elements of an MXFP4 block",
				s.Hidden, BlockSize)
		case s.Intermediate%BlockSize != 0:
			f.fail("intermediate_size",
				"is %d, not a multiple of the %d elements of an MXFP4 block", s.Intermediate,
				BlockSize)
		case s.Heads%s.KVHeads != 0:
			f.fail("num_attention_heads", "is %d, not a multiple of num_key_value_heads %d",
				s.Heads, s.KVHeads)
		}
	}
	if *f.err != nil {
		return Spec{}, *f.err
	}
	return s.withEOS(f)
}

// expertsPerToken reads the number under its two names, which must agree.
func (f fields) expertsPerToken(s *Spec) {
	const first, second = "num_experts_per_tok", "experts_per_token"
	field := first
	if !f.has(first) && f.has(second) {
		field = second
	}
	s.ExpertsPerToken = f.integer(field, 1, s.Experts)
	if f.has(first) && f.has(second) {
		must(f, second, s.ExpertsPerToken, required)
	}
}

func (f fields) layerTypes(s Spec) {
	const field = "layer_types"
	if !f.has(field) {
		return // they alternate, as every reader of this layout assumes
	}
	var types []string
	if json.Unmarshal(f.object[field], &types) != nil {
		f.fail(field, "is %s, not a list of strings", f.raw(field))
		return
	}
	if len(types) != s.Layers {
		f.fail(field, "names %d layers, num_hidden_layers is %d", len(types), s.Layers)
		return
	}
	for layer, got := range types {
		want := "full_attention"
		if s.Sliding(layer) {
			want = "sliding_attention"
		}
		if got != want {
			f.fail(fmt.Sprintf("%s[%d]", field, layer), "is %q, gpt-oss has %s", got, want)
			return
		}
	}
}

// rope reads YaRN's numbers: rope_scaling and rope_theta, or both in rope_parameters as
// transformers 5 writes them.
func (f fields) rope(s *Spec) {
	field, theta := "rope_scaling", f
	if f.has("rope_parameters") {
		field = "rope_parameters"
		theta = f.sub(field)
	} else if !f.has(field) {
		f.fail(field, "is missing, gpt-oss has yarn")
	}
	r := f.sub(field)
	kind := "rope_type"
	if !r.has(kind) && r.has("type") {
		kind = "type"
	}
	must(r, kind, "yarn", required)
	must(r, "truncate", false, required) // absent means true to every reader of this layout
	s.RopeTheta = theta.number("rope_theta", 1e9, 150000)
	s.RopeFactor = r.number("factor", 1e4, 32)
	s.RopeBetaFast = r.number("beta_fast", 1e6, 32)
	s.RopeBetaSlow = r.number("beta_slow", 1e6, 1)
	s.RopeOriginal = r.integer("original_max_position_embeddings", 1, maxPosition)
	if s.RopeTheta <= 1 {
		theta.fail("rope_theta", "is %g, not above 1", s.RopeTheta)
	}
	for _, changed := range [...]string{"mscale", "mscale_all_dim"} {
		if r.has(changed) {
			r.fail(changed, "is %s, gpt-oss has none", r.raw(changed))
		}
	}
	if a := r.number("attention_factor", 100, 0); a != 0 &&
		math.Abs(a-(0.1*math.Log(s.RopeFactor)+1)) > 1e-6 {
		r.fail("attention_factor", "is %g, gpt-oss has 0.1 ln(factor) + 1", a)
	}
}

// withEOS reads the optional eos_token_id, a number or a list.
func (s Spec) withEOS(f fields) (Spec, error) {
	const field = "eos_token_id"
	if !f.has(field) {
		return s, nil
	}
	var ids []int64
	if json.Unmarshal(f.object[field], &ids) != nil {
		ids = make([]int64, 1)
		if json.Unmarshal(f.object[field], &ids[0]) != nil {
			return s, fmt.Errorf("%s%s is %s, not a token id or a list of them", f.where, field,
				f.raw(field))
		}
	}
	s.EOS = nil
	for _, id := range ids {
		if id < 0 || id >= int64(s.Vocab) {
			return s, fmt.Errorf("%s%s holds %d, outside the vocabulary of %d", f.where, field, id,
				s.Vocab)
		}
		if !slices.Contains(s.EOS, int32(id)) {
			s.EOS = append(s.EOS, int32(id))
		}
	}
	return s, nil
}
