package models

// Every tensor that a gpt-oss checkpoint in the Hugging Face layout holds, derived from the Spec: 3
// for the model and 19 a layer (459 for the 20b). Open checks a checkpoint against this list and
// the engine asks for these names.

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/ossrun/ossrun/models/safetensors"
)

// DType is a tensor's element type.
type DType = safetensors.DType

// The two element types of a gpt-oss checkpoint.
const (
	BF16 = safetensors.BF16
	U8   = safetensors.U8
)

// Tensor is a view of one tensor: Data are the mapped bytes, read-only, little-endian, without a
// guaranteed alignment, and valid until the Checkpoint is closed.
type Tensor = safetensors.Tensor

// TensorSpec is a tensor that a checkpoint must have.
type TensorSpec struct {
	Name  string
	DType DType
	Shape []int // row-major
}

func (t TensorSpec) Bytes() int64 {
	n := int64(t.DType.Bits() / 8)
	for _, d := range t.Shape {
		n *= int64(d)
	}
	return n
}

// FileHeader returns the header of a safetensors file with these tensors, and the byte of the file
// at which each begins.
func FileHeader(list []TensorSpec, metadata map[string]string) (head []byte,
	places map[string]int64) {
	type info struct {
		DType   DType    `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	fields, offset := map[string]any{"__metadata__": metadata}, int64(0)
	places = map[string]int64{}
	for _, t := range list {
		places[t.Name] = offset
		fields[t.Name] = info{t.DType, t.Shape, [2]int64{offset, offset + t.Bytes()}}
		offset += t.Bytes()
	}
	text, _ := json.Marshal(fields) // of plain values
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	head = append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	for name := range places {
		places[name] += int64(len(head))
	}
	return head, places
}

// Tensors lists the checkpoint's tensors, layer by layer between embedding and unembedding.
func (s Spec) Tensors() []TensorSpec {
	list := make([]TensorSpec, 0, 3+19*s.Layers)
	add := func(name string, dtype DType, shape ...int) {
		list = append(list, TensorSpec{Name: name, DType: dtype, Shape: shape})
	}
	// linear is a projection with a bias, weight [out, in].
	linear := func(name string, out, in int) {
		add(name+".weight", BF16, out, in)
		add(name+".bias", BF16, out)
	}
	// experts is one MXFP4 matrix with a bias for each expert: blocks of 16 bytes hold 32 elements
	// along the input.
	experts := func(name string, out, in int) {
		add(name+"_blocks", U8, s.Experts, out, in/BlockSize, BlockBytes)
		add(name+"_scales", U8, s.Experts, out, in/BlockSize)
		add(name+"_bias", BF16, s.Experts, out)
	}
	query, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	add("model.embed_tokens.weight", BF16, s.Vocab, s.Hidden)
	for layer := range s.Layers {
		prefix := fmt.Sprintf("model.layers.%d.", layer)
		add(prefix+"input_layernorm.weight", BF16, s.Hidden)
		linear(prefix+"self_attn.q_proj", query, s.Hidden)
		linear(prefix+"self_attn.k_proj", kv, s.Hidden)
		linear(prefix+"self_attn.v_proj", kv, s.Hidden)
		linear(prefix+"self_attn.o_proj", s.Hidden, query)
		add(prefix+"self_attn.sinks", BF16, s.Heads)
		add(prefix+"post_attention_layernorm.weight", BF16, s.Hidden)
		linear(prefix+"mlp.router", s.Experts, s.Hidden)
		// rows 2i and 2i+1 are gate i and up i
		experts(prefix+"mlp.experts.gate_up_proj", 2*s.Intermediate, s.Hidden)
		experts(prefix+"mlp.experts.down_proj", s.Hidden, s.Intermediate)
	}
	add("model.norm.weight", BF16, s.Hidden)
	add("lm_head.weight", BF16, s.Vocab, s.Hidden)
	return list
}

// WeightBytes is the size of all tensors: 13,761,264,768 for the 20b.
func (s Spec) WeightBytes() int64 { return TotalBytes(s.Tensors()) }

func TotalBytes(list []TensorSpec) (n int64) {
	for _, t := range list {
		n += t.Bytes()
	}
	return n
}
