// Package modeltest makes small gpt-oss checkpoints for tests: valid ones from a Spec, and invalid
// ones by changing a New before it is written. Weights are random but the same for the same Spec,
// and small enough that a forward pass stays finite.
package modeltest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models"
)

// Tiny is the smallest shape that still has several layers, query groups, experts and blocks: 100
// kB of weights.
func Tiny() models.Spec {
	s := models.Spec20B()
	s.Name, s.Layers, s.Hidden, s.Intermediate, s.Heads, s.KVHeads = "tiny", 2, 64, 32, 2, 1
	s.Experts, s.ExpertsPerToken, s.Vocab, s.EOS = 4, 2, 96, []int32{95}
	return s
}

// Tensor is one tensor to be written.
type Tensor struct {
	Name  string
	DType string
	Shape []int
	Data  []byte
}

// Checkpoint is the content that Write writes. All of it may be changed.
type Checkpoint struct {
	Config     map[string]any // config.json; nil: none
	Generation map[string]any // generation_config.json; nil: none
	Shards     [][]Tensor     // one: model.safetensors; more: model-0000i-of-0000n with an index
	Metadata   map[string]string
}

// New makes a checkpoint of a Spec in a number of files. Tensors are divided evenly in the order of
// models.Spec.Tensors, so that a file may end between an expert matrix's blocks and its scales.
func New(s models.Spec, files int) *Checkpoint {
	c := &Checkpoint{Config: Config(s), Metadata: map[string]string{"format": "pt"}}
	if s.EOS != nil {
		c.Generation = map[string]any{"eos_token_id": s.EOS}
	}
	var all []Tensor
	for _, t := range s.Tensors() {
		all = append(all, Tensor{t.Name, string(t.DType), t.Shape, values(t)})
	}
	each := (len(all) + files - 1) / files
	for part := range slices.Chunk(all, each) {
		c.Shards = append(c.Shards, part)
	}
	return c
}

// Config is the config.json of a Spec, as OpenAI's repositories write it.
func Config(s models.Spec) map[string]any {
	var types []string
	for layer := range s.Layers {
		if s.Sliding(layer) {
			types = append(types, "sliding_attention")
		} else {
			types = append(types, "full_attention")
		}
	}
	c := map[string]any{
		"architectures": []string{"GptOssForCausalLM"}, "model_type": "gpt_oss",
		"num_hidden_layers": s.Layers, "hidden_size": s.Hidden, "intermediate_size": s.Intermediate,
		"num_attention_heads": s.Heads, "num_key_value_heads": s.KVHeads, "head_dim": s.HeadDim,
		"num_local_experts": s.Experts, "num_experts_per_tok": s.ExpertsPerToken,
		"experts_per_token": s.ExpertsPerToken,
		"vocab_size":        s.Vocab, "sliding_window": s.Window,
		"max_position_embeddings": s.MaxPosition,
		"layer_types":             types, "hidden_act": "silu", "attention_bias": true,
		"tie_word_embeddings": false,
		"swiglu_limit":        s.SwigluLimit, "rms_norm_eps": s.NormEps, "rope_theta": s.RopeTheta,
		"rope_scaling": map[string]any{"rope_type": "yarn", "factor": s.RopeFactor,
			"beta_fast": s.RopeBetaFast,
			"beta_slow": s.RopeBetaSlow, "original_max_position_embeddings": s.RopeOriginal,
			"truncate": s.RopeTruncate},
		"quantization_config": map[string]any{"quant_method": "mxfp4",
			"modules_to_not_convert": []string{"model.layers.*.self_attn",
				"model.layers.*.mlp.router", "model.embed_tokens", "lm_head"}},
	}
	if len(s.EOS) > 0 {
		c["eos_token_id"] = s.EOS[0]
	}
	return c
}

// values draws a tensor's bytes from a stream seeded by its name.
func values(t models.TensorSpec) []byte {
	seed := fnv.New64a()
	seed.Write([]byte(t.Name))
	random := rand.New(rand.NewPCG(seed.Sum64(), 20250805))
	data := make([]byte, t.Bytes())
	switch {
	case strings.HasSuffix(t.Name, "_blocks"):
		for i := range data {
			data[i] = byte(random.Uint32())
		}
	case strings.HasSuffix(t.Name, "_scales"):
		for i := range data {
			data[i] = byte(118 + random.IntN(4)) // 2^-9 .. 2^-6, the range of the released experts
		}
	default:
		centre, spread := 0.0, 0.1
		if strings.HasSuffix(t.Name, "norm.weight") {
			centre = 1
		}
		for i := 0; i < len(data); i += 2 {
			v := float32(centre + spread*random.NormFloat64())
			binary.LittleEndian.PutUint16(data[i:], uint16(math.Float32bits(v)>>16))
		}
	}
	return data
}

// Tensor finds a tensor by name, to be changed in place, or returns nil.
func (c *Checkpoint) Tensor(name string) *Tensor {
	for _, shard := range c.Shards {
		for i := range shard {
			if shard[i].Name == name {
				return &shard[i]
			}
		}
	}
	return nil
}

// Drop removes every tensor whose name the function chooses.
func (c *Checkpoint) Drop(chosen func(name string) bool) {
	for i, shard := range c.Shards {
		c.Shards[i] = slices.DeleteFunc(slices.Clone(shard),
			func(t Tensor) bool { return chosen(t.Name) })
	}
}

// Add puts a tensor of zeros into the last file.
func (c *Checkpoint) Add(name, dtype string, elementBytes int, shape ...int) {
	n := elementBytes
	for _, d := range shape {
		n *= d
	}
	last := len(c.Shards) - 1
	c.Shards[last] = append(c.Shards[last], Tensor{name, dtype, shape, make([]byte, n)})
}

// FileName is the name of the i-th of n files, in OpenAI's numbering.
func FileName(i, n int) string {
	if n == 1 {
		return "model.safetensors"
	}
	return fmt.Sprintf("model-%05d-of-%05d.safetensors", i, n-1)
}

// Write writes the checkpoint into a folder, creating it.
func (c *Checkpoint) Write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	placed := map[string]string{}
	total := 0
	for i, shard := range c.Shards {
		name := FileName(i, len(c.Shards))
		for _, t := range shard {
			placed[t.Name] = name
			total += len(t.Data)
		}
		if err := os.WriteFile(filepath.Join(folder, name), Encode(shard, c.Metadata),
			0o644); err != nil {
			return err
		}
	}
	objects := map[string]any{}
	if c.Config != nil {
		objects["config.json"] = c.Config
	}
	if c.Generation != nil {
		objects["generation_config.json"] = c.Generation
	}
	if len(c.Shards) > 1 {
		objects["model.safetensors.index.json"] = map[string]any{
			"metadata": map[string]any{"total_size": total}, "weight_map": placed}
	}
	return writeObjects(folder, objects)
}

// Encode makes a safetensors file: tensors in the given order, header padded to a multiple of 8.
func Encode(tensors []Tensor, metadata map[string]string) []byte {
	var entries []entry
	for _, t := range tensors {
		entries = append(entries, entry{t.Name, t.DType, t.Shape, int64(len(t.Data))})
	}
	file, _ := header(entries, metadata)
	for _, t := range tensors {
		file = append(file, t.Data...)
	}
	return file
}

// entry is a tensor's entry in a header.
type entry struct {
	name, dtype string
	shape       []int
	bytes       int64
}

// header makes a file's length and header, and returns the number of tensor bytes after it.
func header(entries []entry, metadata map[string]string) (text []byte, data int64) {
	type object struct {
		DType   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	objects := map[string]any{}
	if metadata != nil {
		objects["__metadata__"] = metadata
	}
	for _, e := range entries {
		objects[e.name] = object{e.dtype, append([]int{}, e.shape...),
			[2]int64{data, data + e.bytes}}
		data += e.bytes
	}
	body, err := json.Marshal(objects)
	if err != nil {
		panic(err) // strings and ints
	}
	for len(body)%8 != 0 {
		body = append(body, ' ')
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(body))), body...), data
}

// writeObjects writes JSON files into folder, by name.
func writeObjects(folder string, objects map[string]any) error {
	for name, object := range objects {
		text, err := json.MarshalIndent(object, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
