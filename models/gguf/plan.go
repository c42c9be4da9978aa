package gguf

// The mapping from a GGUF file's tensors to those of the Hugging Face layout. llama.cpp splits gate
// and up into two tensors; ollama, like OpenAI, has one. ollama's files come from OpenAI's
// original/ layout, with q, k and v in one.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/safetensors"
)

// rows are the rows of a GGUF tensor along its first dimension, starting at first.
type rows struct {
	tensor TensorInfo
	first  int64
}

// stride is the bytes of one step along the first dimension.
func (r rows) stride(set *Set) (int64, error) {
	t := r.tensor
	values, size, _ := t.Type.Block()
	width := t.Elements() / int64(t.Shape[0])
	if width%int64(values) != 0 {
		return 0, fmt.Errorf("%s: tensor %s has %d values a step, which %s cannot hold",
			set.Base(t), t.Name, width, t.Type)
	}
	return width / int64(values) * int64(size), nil
}

// rewrite makes one tensor, or with scales an expert matrix's two, from GGUF tensors.
type rewrite struct {
	to     models.TensorSpec // of an expert matrix: its _blocks
	scales string            // the name of the _scales, "" for any other tensor
	from   []rows            // more than one: their rows alternate
}

// planRewrites finds the source of every tensor of the Spec and checks its shape and type. Experts
// are MXFP4, or of any type if any is true.
func planRewrites(s models.Spec, set *Set, any bool) ([]rewrite, error) {
	find := finder{set: set, used: map[string]bool{}}
	var list []rewrite
	for _, to := range s.Tensors() {
		if strings.HasSuffix(to.Name, "_scales") {
			continue // rewritten with the blocks
		}
		r := rewrite{to: to}
		if matrix, ok := strings.CutSuffix(to.Name, "_blocks"); ok {
			r.scales = matrix + "_scales"
		}
		r.from = find.sources(s, to)
		if err := find.check(r, any); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	for _, name := range set.Names() {
		// rope_freqs follow from the config
		if !find.used[name] && !strings.HasPrefix(name, "rope_") {
			return nil, fmt.Errorf(
				"%s holds tensor %s, which no gpt-oss has: computing without it would be another "+
					"model", set.Base(set.Tensors[name]), safetensors.Printable(name))
		}
	}
	return list, nil
}

// finder looks up tensors by different converters' names.
type finder struct {
	set  *Set
	used map[string]bool
}

func (f finder) first(names ...string) []rows {
	for _, name := range names {
		if t, ok := f.set.Tensors[name]; ok {
			f.used[name] = true
			return []rows{{tensor: t}}
		}
	}
	return nil
}

// outsideNames and layerNames are converters' names of a tensor outside of the layers and in one.
// In a layer, weights and biases also have the suffix .weight or .bias.
var (
	outsideNames = map[string]string{"model.embed_tokens.weight": "token_embd.weight",
		"model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}
	layerNames = map[string][]string{"input_layernorm": {"attn_norm"},
		"post_attention_layernorm": {"post_attention_norm", "ffn_norm"},
		"q_proj":                   {"attn_q", fused}, "k_proj": {"attn_k", fused},
		"v_proj": {"attn_v", fused}, "o_proj": {"attn_output", "attn_out"},
		"router": {"ffn_gate_inp"}}
)

// fused is q, k and v in one tensor, one after the other.
const fused = "attn_qkv"

// sources finds the sources of a tensor of the Hugging Face layout; nil if they are missing.
func (f finder) sources(s models.Spec, to models.TensorSpec) []rows {
	if name, ok := outsideNames[to.Name]; ok {
		return f.first(name)
	}
	var layer int
	var rest string
	if _, err := fmt.Sscanf(to.Name, "model.layers.%d.%s", &layer, &rest); err != nil {
		return nil
	}
	lookup := func(kind string, names ...string) []rows {
		for i, name := range names {
			names[i] = fmt.Sprintf("blk.%d.%s%s", layer, name, kind)
		}
		return f.first(names...)
	}
	if matrix, ok := strings.CutPrefix(rest, "mlp.experts."); ok {
		kind := ".weight"
		if strings.HasSuffix(matrix, "_bias") {
			kind = ".bias"
		}
		if strings.HasPrefix(matrix, "down_proj_") {
			return lookup(kind, "ffn_down_exps")
		}
		if both := lookup(kind, "ffn_gate_up_exps"); both != nil {
			return both
		}
		gate, up := lookup(kind, "ffn_gate_exps"), lookup(kind, "ffn_up_exps")
		if gate == nil || up == nil {
			return nil
		}
		return append(gate, up...)
	}
	part, kind, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(rest, "self_attn."), "mlp."),
		".")
	if part == "sinks" {
		return lookup("", "attn_sinks.weight", "attn_sinks")
	}
	matches := lookup("."+kind, slices.Clone(layerNames[part])...)
	if matches != nil && strings.Contains(matches[0].tensor.Name, fused) {
		query, kv := int64(s.Heads*s.HeadDim), int64(s.KVHeads*s.HeadDim)
		matches[0].first = map[string]int64{"k_proj": query, "v_proj": query + kv}[part]
	}
	return matches
}

// check compares a rewrite's sources with its result.
func (f finder) check(r rewrite, any bool) error {
	if r.from == nil {
		return fmt.Errorf("%s lacks the tensor that %s is made from", f.set.Base(TensorInfo{}),
			r.to.Name)
	}
	want := slices.Clone(r.to.Shape)
	if r.scales != "" {
		want = append(want[:2:2], want[2]*models.BlockSize)
	}
	for _, from := range r.from {
		t := from.tensor
		expert := t.Type == MXFP4 || t.Type == MXFP4Ollama
		fits := slices.Clone(want)
		switch {
		case len(r.from) > 1: // gate and up: half of the rows (of a bias: of the values) each
			fits[1] /= 2
		case strings.Contains(t.Name, fused):
			fits[0] = t.Shape[0]
			if from.first+int64(want[0]) > int64(t.Shape[0]) {
				fits[0] = want[0]
			}
		}
		file := f.set.Base(t)
		switch {
		case r.scales != "" && !expert && !any:
			return fmt.Errorf("%s: tensor %s is %s: %s", file, t.Name, t.Type,
				models.DequantisedExperts)
		case r.scales == "" && expert:
			return fmt.Errorf("%s: tensor %s is %s, and only experts can be", file, t.Name, t.Type)
		case !slices.Equal(t.Shape, fits):
			return fmt.Errorf("%s: tensor %s has shape %v, its header calls for %v", file, t.Name,
				t.Shape, fits)
		}
	}
	return nil
}
