package gguf

// Which tensors of a GGUF file make which tensors of the Hugging Face layout. llama.cpp splits gate
// and up into two tensors, ollama keeps them in one as OpenAI does; ollama, from OpenAI's original/
// layout, keeps q, k and v in one.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/safetensors"
)

// rows are rows of a GGUF tensor along its first dimension, from one on.
type rows struct {
	tensor TensorInfo
	first  int64
}

// rewrite makes one tensor, or with scales an expert matrix's two, from GGUF tensors.
type rewrite struct {
	to     models.TensorSpec // of an expert matrix: its _blocks
	scales string            // the name of the _scales, "" for any other tensor
	from   []rows            // more than one: their rows take turns
}

// planRewrites finds the source of every tensor of the Spec and checks the sources' shapes and
// types.
func planRewrites(s models.Spec, set *Set) ([]rewrite, error) {
	find := finder{set: set, used: map[string]bool{}}
	var list []rewrite
	for _, to := range s.Tensors() {
		if strings.HasSuffix(to.Name, "_scales") {
			continue // made with the blocks
		}
		r := rewrite{to: to}
		if matrix, ok := strings.CutSuffix(to.Name, "_blocks"); ok {
			r.scales = matrix + "_scales"
		}
		r.from = find.sources(s, to)
		if err := find.check(r); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	for _, name := range set.Names() {
		// rope_freqs follow from the config
		if !find.used[name] && !strings.HasPrefix(name, "rope_") {
			return nil, fmt.Errorf(
				"%s holds tensor %s, which no gpt-oss has: computing without it would be another "+
					"model", set.Base(set.Tensors[name]), safetensors.Show(name))
		}
	}
	return list, nil
}

// finder looks tensors up by the names that different converters give them.
type finder struct {
	set  *Set
	used map[string]bool
}

// one gives the first of the names that the file has.
func (f finder) one(names ...string) []rows {
	for _, name := range names {
		if t, ok := f.set.Tensors[name]; ok {
			f.used[name] = true
			return []rows{{tensor: t}}
		}
	}
	return nil
}

// sources finds what a tensor of the Hugging Face layout is made from; nil when it is not there.
func (f finder) sources(s models.Spec, to models.TensorSpec) []rows {
	switch to.Name {
	case "model.embed_tokens.weight":
		return f.one("token_embd.weight")
	case "model.norm.weight":
		return f.one("output_norm.weight")
	case "lm_head.weight":
		return f.one("output.weight")
	}
	var layer int
	var rest string
	if _, err := fmt.Sscanf(to.Name, "model.layers.%d.%s", &layer, &rest); err != nil {
		return nil
	}
	at := func(names ...string) []rows {
		for i := range names {
			names[i] = fmt.Sprintf("blk.%d.%s", layer, names[i])
		}
		return f.one(names...)
	}
	part, kind, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(rest, "self_attn."), "mlp."),
		".")
	query, kv := int64(s.Heads*s.HeadDim), int64(s.KVHeads*s.HeadDim)
	// fused gives q, k or v: alone, or as rows of the three together.
	fused := func(alone string, first int64) []rows {
		if found := at(alone + "." + kind); found != nil {
			return found
		}
		found := at("attn_qkv." + kind)
		for i := range found {
			found[i].first = first
		}
		return found
	}
	switch part {
	case "input_layernorm":
		return at("attn_norm.weight")
	case "post_attention_layernorm":
		return at("post_attention_norm.weight", "ffn_norm.weight")
	case "q_proj":
		return fused("attn_q", 0)
	case "k_proj":
		return fused("attn_k", query)
	case "v_proj":
		return fused("attn_v", query+kv)
	case "o_proj":
		return at("attn_output."+kind, "attn_out."+kind)
	case "sinks":
		return at("attn_sinks.weight", "attn_sinks")
	case "router":
		return at("ffn_gate_inp." + kind)
	}
	_, matrix, _ := strings.Cut(rest, "experts.")
	switch matrix {
	case "gate_up_proj_blocks":
		return orElse(at("ffn_gate_up_exps.weight"), func() []rows {
			return pair(at("ffn_gate_exps.weight"), at("ffn_up_exps.weight"))
		})
	case "gate_up_proj_bias":
		return orElse(at("ffn_gate_up_exps.bias"),
			func() []rows { return pair(at("ffn_gate_exps.bias"), at("ffn_up_exps.bias")) })
	case "down_proj_blocks":
		return at("ffn_down_exps.weight")
	case "down_proj_bias":
		return at("ffn_down_exps.bias")
	}
	return nil
}

func orElse(found []rows, other func() []rows) []rows {
	if found != nil {
		return found
	}
	return other()
}

// pair returns both, or none if one is missing.
func pair(gate, up []rows) []rows {
	if gate == nil || up == nil {
		return nil
	}
	return append(gate, up...)
}

// check compares the sources of a rewrite with what it makes.
func (f finder) check(r rewrite) error {
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
		case strings.Contains(t.Name, "attn_qkv"):
			fits[0] = t.Shape[0]
			if from.first+int64(want[0]) > int64(t.Shape[0]) {
				fits[0] = want[0]
			}
		}
		file := f.set.Base(t)
		switch {
		case r.scales != "" && !expert:
			return fmt.Errorf("%s: tensor %s is %s, gpt-oss has MXFP4: %s", file, t.Name, t.Type,
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
