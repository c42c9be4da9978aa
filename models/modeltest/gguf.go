package modeltest

// GGUF files of a checkpoint, as written by llama.cpp's and ollama's converters, for the tests of
// reading them. The layouts are built with plain arithmetic on single values, so that the tests
// compare two independent implementations.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
)

// GGUFStyle imitates a program's files: the types of matrices other than experts. llama.cpp's have
// gate and up separate, vectors and the router in F32, MXFP4 in its own order of nibbles.
type GGUFStyle struct {
	Embedding, Output, QK, V string
	Long                     string // attn_output, whose rows K-quants can hold
	original                 bool
	Experts                  string // "": MXFP4
}

var (
	LlamaBF16 = GGUFStyle{"BF16", "BF16", "BF16", "BF16", "BF16", false, ""}
	LlamaQ8   = GGUFStyle{"Q8_0", "Q8_0", "Q8_0", "Q8_0", "Q8_0", false, ""} // as in ggml-org's files
	// from the original/ layout: gate_up and qkv unsplit, all else BF16, OpenAI's order of nibbles
	// under type 4
	Ollama = GGUFStyle{"BF16", "BF16", "BF16", "BF16", "BF16", true, ""}
)

// Published are the mixes of unsloth, bartowski, LM Studio and ggml-org by name. Rows of 2,880
// values do not divide into blocks of 256, so llama.cpp uses a type with blocks of 32 for them:
// IQ4_NL for the smallest, Q5_0 for Q4_K, Q5_1 for Q5_K, Q8_0 for Q6_K.
var Published = map[string]GGUFStyle{
	"F16":    {"F16", "F16", "F16", "F16", "F16", false, ""},
	"Q8_0":   LlamaQ8,
	"Q6_K":   {"Q8_0", "Q8_0", "Q8_0", "Q8_0", "Q6_K", false, ""},
	"Q5_K_M": {"Q5_1", "Q8_0", "Q5_1", "Q8_0", "Q5_K", false, ""},
	"Q4_K_M": {"Q5_0", "Q8_0", "Q5_0", "Q8_0", "Q4_K", false, ""},
	"Q4_K_S": {"Q5_0", "Q8_0", "Q5_0", "Q5_1", "Q4_K", false, ""},
	"Q4_1":   {"Q4_1", "Q8_0", "Q4_1", "Q4_1", "Q4_1", false, ""},
	"Q4_0":   {"Q4_0", "Q8_0", "Q4_0", "Q4_0", "Q4_0", false, ""},
	"IQ4_XS": {"IQ4_NL", "Q8_0", "IQ4_NL", "IQ4_NL", "IQ4_XS", false, ""},
	"IQ4_NL": {"IQ4_NL", "Q8_0", "IQ4_NL", "IQ4_NL", "IQ4_NL", false, ""},
	"Q3_K_M": {"IQ4_NL", "Q8_0", "IQ4_NL", "Q5_0", "Q4_K", false, ""},
	"Q3_K_S": {"IQ4_NL", "Q8_0", "IQ4_NL", "IQ4_NL", "Q3_K", false, ""},
	"Q2_K":   {"IQ4_NL", "Q8_0", "IQ4_NL", "IQ4_NL", "Q3_K", false, ""},
	"Q2_K_L": {"Q8_0", "Q8_0", "IQ4_NL", "Q5_0", "Q2_K", false, ""},
}

// of is the type of a matrix.
func (s GGUFStyle) of(name string) string {
	switch {
	case name == "token_embd.weight":
		return s.Embedding
	case name == "output.weight":
		return s.Output
	case strings.HasSuffix(name, "attn_v.weight"):
		return s.V
	case strings.HasSuffix(name, "attn_output.weight"):
		return s.Long
	}
	return s.QK
}

type ggufTensor struct {
	name  string
	kind  uint32
	shape []int // row-major
	data  []byte
}

// WriteGGUF writes an open checkpoint as a number of files, and returns the path of the first. says
// are additional keys: texts and numbers.
func WriteGGUF(c *checkpoint.Checkpoint, folder, stem string, style GGUFStyle, files int,
	says ...map[string]any) (string, error) {
	s := c.Spec
	architecture := "gpt-oss"
	if style.original {
		architecture = "gptoss"
	}
	var list []ggufTensor
	var err error
	for _, want := range s.Tensors() {
		list = append(list, ggufTensors(reader(c, &err), want, style)...)
	}
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	each := (len(list) + files - 1) / files
	first := ""
	for i := range files {
		path := filepath.Join(folder, stem+".gguf")
		if files > 1 {
			path = filepath.Join(folder, fmt.Sprintf("%s-%05d-of-%05d.gguf", stem, i+1, files))
		}
		if i == 0 {
			first = path
		}
		var keys ggufKeys
		keys.text("general.architecture", architecture)
		if i == 0 {
			keys.ofSpec(architecture, s)
			for _, more := range says {
				for name, value := range more {
					switch v := value.(type) {
					case string:
						keys.text(name, v)
					case int:
						keys.integer(name, v)
					case float64:
						keys.float(name, v)
					}
				}
			}
		}
		if err := os.WriteFile(path, encodeGGUF(keys, list[i*each:min(len(list), (i+1)*each)]),
			0o644); err != nil {
			return "", err
		}
	}
	return first, nil
}

// WriteSparseGGUF writes a file of any size as llama.cpp's converter does, with holes as weights,
// which read as zeros.
func WriteSparseGGUF(path string, s models.Spec) error {
	shapes := map[string]models.Tensor{}
	for _, t := range s.Tensors() {
		shapes[t.Name] = models.Tensor{Name: t.Name, DType: t.DType, Shape: t.Shape}
	}
	var list []ggufTensor
	for _, want := range s.Tensors() {
		list = append(list, ggufTensors(func(name string) models.Tensor { return shapes[name] },
			want, LlamaBF16)...)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	var keys ggufKeys
	keys.text("general.architecture", "gpt-oss")
	keys.ofSpec("gpt-oss", s)
	head, size := headGGUF(keys, list)
	if err := os.WriteFile(path, head, 0o644); err != nil {
		return err
	}
	return os.Truncate(path, int64(len(head))+size)
}

// ggufTensors converts a tensor of the Hugging Face layout. Tensors without data stay without data.
func ggufTensors(tensor func(name string) models.Tensor, want models.TensorSpec,
	style GGUFStyle) []ggufTensor {
	t := tensor(want.Name)
	var layer int
	var rest string
	if n, _ := fmt.Sscanf(want.Name, "model.layers.%d.%s", &layer, &rest); n != 2 {
		name := map[string]string{"model.embed_tokens.weight": "token_embd.weight",
			"model.norm.weight": "output_norm.weight", "lm_head.weight": "output.weight"}[want.Name]
		return []ggufTensor{dense(name, t, style)}
	}
	blk := fmt.Sprintf("blk.%d.", layer)
	part, kind, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(rest, "self_attn."), "mlp."),
		".")
	switch {
	case strings.HasSuffix(rest, "_scales"):
		return nil
	case strings.HasSuffix(rest, "_blocks"):
		scales := tensor(strings.TrimSuffix(want.Name, "_blocks") + "_scales")
		if strings.Contains(rest, "down_proj") {
			return []ggufTensor{experts(blk+"ffn_down_exps.weight", t, scales, 0, 1, style)}
		}
		if style.original {
			return []ggufTensor{experts(blk+"ffn_gate_up_exps.weight", t, scales, 0, 1, style)}
		}
		return []ggufTensor{experts(blk+"ffn_gate_exps.weight", t, scales, 0, 2, style),
			experts(blk+"ffn_up_exps.weight", t, scales, 1, 2, style)}
	case strings.HasSuffix(rest, "gate_up_proj_bias") && !style.original:
		return []ggufTensor{dense(blk+"ffn_gate_exps.bias", every(t, 0), style),
			dense(blk+"ffn_up_exps.bias", every(t, 1), style)}
	case strings.HasSuffix(rest, "gate_up_proj_bias"):
		return []ggufTensor{dense(blk+"ffn_gate_up_exps.bias", t, style)}
	case strings.HasSuffix(rest, "down_proj_bias"):
		return []ggufTensor{dense(blk+"ffn_down_exps.bias", t, style)}
	case strings.HasSuffix(rest, "sinks"):
		return []ggufTensor{dense(blk+map[bool]string{true: "attn_sinks",
			false: "attn_sinks.weight"}[style.original], t, style)}
	case style.original && (part == "k_proj" || part == "v_proj"):
		return nil
	case style.original && part == "q_proj":
		prefix := fmt.Sprintf("model.layers.%d.self_attn.", layer)
		k, v := tensor(prefix+"k_proj."+kind), tensor(prefix+"v_proj."+kind)
		whole := models.Tensor{Shape: slices.Clone(t.Shape), Data: slices.Concat(t.Data, k.Data,
			v.Data)}
		whole.Shape[0] += k.Shape[0] + v.Shape[0]
		return []ggufTensor{dense(blk+"attn_qkv."+kind, whole, style)}
	}
	names := map[string]string{"input_layernorm": "attn_norm",
		"post_attention_layernorm": "post_attention_norm", "q_proj": "attn_q", "k_proj": "attn_k",
		"v_proj": "attn_v", "o_proj": "attn_output", "router": "ffn_gate_inp"}
	if style.original {
		names["post_attention_layernorm"], names["o_proj"] = "ffn_norm", "attn_out"
	}
	return []ggufTensor{dense(blk+names[part]+"."+kind, t, style)}
}

// every returns every second column of a matrix, starting at column first.
func every(t models.Tensor, first int) models.Tensor {
	out := models.Tensor{Shape: slices.Clone(t.Shape)}
	out.Shape[1] /= 2
	for i := first; i < len(t.Data)/2; i += 2 {
		out.Data = append(out.Data, t.Data[2*i:2*i+2]...)
	}
	return out
}

// dense converts a bfloat16 tensor to the style's type for it.
func dense(name string, t models.Tensor, style GGUFStyle) ggufTensor {
	g := ggufTensor{name: name, shape: t.Shape}
	matrix := len(t.Shape) == 2 && strings.HasSuffix(name, ".weight") &&
		!strings.Contains(name, "ffn_gate_inp")
	switch {
	case style.original:
		g.kind, g.data = 30, t.Data
	case matrix:
		g.kind, g.data = encoded(style.of(name), t.Data)
	default:
		for _, v := range floats(t.Data) {
			g.data = binary.LittleEndian.AppendUint32(g.data, math.Float32bits(v))
		}
	}
	return g
}

// encoded converts bfloat16 numbers to a type, and returns its number. Most blocks of the demo are
// zeros, which are encoded once.
func encoded(kind string, data []byte) (number uint32, out []byte) {
	zeros := make([]byte, 512) // a multiple of all types' blocks
	if kind == "BF16" || len(data)%len(zeros) != 0 {
		return encodedAsIs(kind, data)
	}
	number, zero := encodedAsIs(kind, zeros)
	out = make([]byte, 0, len(data)/len(zeros)*len(zero))
	for block := range slices.Chunk(data, len(zeros)) {
		coded := zero
		if !bytes.Equal(block, zeros) {
			_, coded = encodedAsIs(kind, block)
		}
		out = append(out, coded...)
	}
	return number, out
}

func encodedAsIs(kind string, data []byte) (number uint32, out []byte) {
	switch kind {
	case "BF16":
		return 30, data
	case "Q8_0":
		return 8, quantised(floats(data))
	case "F16":
		for _, v := range floats(data) {
			out = binary.LittleEndian.AppendUint16(out, halfOf(float64(v)))
		}
		return 1, out
	}
	q := quantTypes[kind]
	return q.kind, q.encode(floats(data))
}

// Dequantised returns an expert matrix's values as bfloat16, [experts, out, in].
func Dequantised(blocks, scales models.Tensor) (out []byte) {
	for i, b := range blocks.Data {
		for shift := 0; shift < 8; shift += 4 {
			c := b >> shift & 15
			v := [8]float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}[c&7]
			if c >= 8 {
				v = -v
			}
			v = math.Ldexp(v, int(scales.Data[i/16])-127)
			bits := math.Float32bits(float32(v)) | uint32(c>>3)<<31
			out = binary.LittleEndian.AppendUint16(out, uint16(bits>>16))
		}
	}
	return out
}

// floats reads bfloat16.
func floats(data []byte) []float32 {
	out := make([]float32, len(data)/2)
	for i := range out {
		out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
	}
	return out
}

// quantised is Q8_0 with power-of-two scales, which half precision represents exactly: only the
// reader is tested.
func quantised(values []float32) (out []byte) {
	for block := range slices.Chunk(values, 32) {
		most := 0.0
		for _, v := range block {
			most = max(most, math.Abs(float64(v)))
		}
		exponent := -14
		for math.Ldexp(127, exponent) < most {
			exponent++
		}
		out = binary.LittleEndian.AppendUint16(out, uint16(exponent+15)<<10)
		for _, v := range block {
			out = append(out, byte(int8(math.RoundToEven(float64(v)/math.Ldexp(1, exponent)))))
		}
	}
	return out
}

// experts returns an expert matrix's rows from first, every step-th, as blocks of a scale and 32
// nibbles.
func experts(name string, blocks, scales models.Tensor, first, step int,
	style GGUFStyle) ggufTensor {
	e, rows, n := blocks.Shape[0], blocks.Shape[1], blocks.Shape[2]
	g := ggufTensor{name: name, kind: 39, shape: []int{e, rows / step, n * 32}}
	if style.original {
		g.kind = 4
	}
	if len(blocks.Data) == 0 {
		return g
	}
	if style.Experts != "" {
		whole := Dequantised(blocks, scales)
		part := models.Tensor{Shape: g.shape}
		for row := first; row < e*rows; row += step {
			part.Data = append(part.Data, whole[row*n*64:][:n*64]...)
		}
		g.kind, g.data = encoded(style.Experts, part.Data)
		return g
	}
	for expert := range e {
		for row := first; row < rows; row += step {
			for block := range n {
				at := (expert*rows+row)*n + block
				var codes [32]byte
				for i := range codes {
					codes[i] = blocks.Data[at*16+i/2] >> (4 * (i % 2)) & 15
				}
				g.data = append(g.data, scales.Data[at])
				for j := range 16 {
					if style.original {
						g.data = append(g.data, codes[2*j]|codes[2*j+1]<<4)
					} else {
						g.data = append(g.data, codes[j]|codes[j+16]<<4)
					}
				}
			}
		}
	}
	return g
}

// ggufKeys are encoded keys and their number.
type ggufKeys struct {
	n    uint64
	data []byte
}

func appendText(to []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint64(to, uint64(len(text))), text...)
}

func (k *ggufKeys) key(name string, kind uint32) {
	k.n++
	k.data = binary.LittleEndian.AppendUint32(appendText(k.data, name), kind)
}

func (k *ggufKeys) text(name, value string) {
	k.key(name, 8)
	k.data = appendText(k.data, value)
}

func (k *ggufKeys) integer(name string, value int) {
	k.key(name, 4)
	k.data = binary.LittleEndian.AppendUint32(k.data, uint32(value))
}

func (k *ggufKeys) float(name string, value float64) {
	k.key(name, 6)
	k.data = binary.LittleEndian.AppendUint32(k.data, math.Float32bits(float32(value)))
}

func (k *ggufKeys) ofSpec(a string, s models.Spec) {
	for name, v := range map[string]int{"block_count": s.Layers, "embedding_length": s.Hidden,
		"expert_feed_forward_length": s.Intermediate,
		"feed_forward_length":        s.Intermediate, "attention.head_count": s.Heads,
		"attention.head_count_kv": s.KVHeads, "attention.key_length": s.HeadDim,
		"attention.value_length": s.HeadDim, "attention.sliding_window": s.Window,
		"expert_count": s.Experts, "expert_used_count": s.ExpertsPerToken,
		"context_length": s.MaxPosition, "rope.scaling.original_context_length": s.RopeOriginal} {
		k.integer(a+"."+name, v)
	}
	k.float(a+".attention.layer_norm_rms_epsilon", float64(s.NormEps))
	k.float(a+".rope.freq_base", s.RopeTheta)
	k.float(a+".rope.scaling.factor", s.RopeFactor)
	k.key("tokenizer.ggml.tokens", 9) // a list of texts, skipped
	k.data = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(k.data, 8),
		uint64(s.Vocab))
	for i := range s.Vocab {
		k.data = appendText(k.data, fmt.Sprint("t", i))
	}
	k.key("tokenizer.ggml.eos_token_ids", 9)
	k.data = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(k.data, 5),
		uint64(len(s.EOS)))
	for _, id := range s.EOS {
		k.data = binary.LittleEndian.AppendUint32(k.data, uint32(id))
	}
}

// ggufAlignment divides the position of every tensor.
const ggufAlignment = 32

func aligned(n int64) int64 { return (n + ggufAlignment - 1) / ggufAlignment * ggufAlignment }

// bytes is the size of a tensor, without data by its type: blocks of 32 values are 17 bytes of
// MXFP4 (39, and ollama's 4) or 34 of Q8_0 (8).
func (t ggufTensor) bytes() int64 {
	if len(t.data) > 0 {
		return int64(len(t.data))
	}
	n := int64(1)
	for _, d := range t.shape {
		n *= int64(d)
	}
	switch t.kind {
	case 4, 39:
		return n / 32 * 17
	case 8:
		return n / 32 * 34
	case 30:
		return n * 2
	}
	return n * 4
}

// headGGUF makes a file's header of version 3 and returns the size of the tensors' data.
func headGGUF(keys ggufKeys, tensors []ggufTensor) (out []byte, size int64) {
	out = binary.LittleEndian.AppendUint32([]byte("GGUF"), 3)
	out = binary.LittleEndian.AppendUint64(out, uint64(len(tensors)))
	out = append(binary.LittleEndian.AppendUint64(out, keys.n), keys.data...)
	for _, t := range tensors {
		out = binary.LittleEndian.AppendUint32(appendText(out, t.name), uint32(len(t.shape)))
		for _, d := range slices.Backward(t.shape) {
			out = binary.LittleEndian.AppendUint64(out, uint64(d))
		}
		out = binary.LittleEndian.AppendUint32(out, t.kind)
		out = binary.LittleEndian.AppendUint64(out, uint64(size))
		size = aligned(size + t.bytes())
	}
	return append(out, make([]byte, aligned(int64(len(out)))-int64(len(out)))...), size
}

// encodeGGUF makes a complete file.
func encodeGGUF(keys ggufKeys, tensors []ggufTensor) []byte {
	out, _ := headGGUF(keys, tensors)
	for _, t := range tensors {
		out = append(out, t.data...)
		out = append(out, make([]byte, aligned(int64(len(out)))-int64(len(out)))...)
	}
	return out
}
