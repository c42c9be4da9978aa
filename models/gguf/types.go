package gguf

// The element types of GGUF files: the supported ones with their block sizes, and the names of all
// for messages.

import "fmt"

// Type is an element type, by its number in files.
type Type uint32

const (
	F32   Type = 0
	F16   Type = 1
	Q4_0  Type = 2
	Q4_1  Type = 3
	Q5_0  Type = 6
	Q5_1  Type = 7
	Q8    Type = 8 // Q8_0: 32 values are an F16 scale and 32 signed bytes
	Q2K   Type = 10
	Q3K   Type = 11
	Q4K   Type = 12
	Q5K   Type = 13
	Q6K   Type = 14
	IQ4NL Type = 20
	IQ4XS Type = 23
	BF16  Type = 30
	NVFP4 Type = 40

	// MXFP4 is 32 values as an E8M0 scale and 16 bytes: byte j holds value j in its low nibble and
	// value j+16 in its high one.
	MXFP4 Type = 39
	// MXFP4Ollama is the MXFP4 of ollama's first gpt-oss files, under a number that was free then.
	// It is the same block, but byte j has values 2j and 2j+1, as in OpenAI's files.
	MXFP4Ollama Type = 4
)

// block is the unit of storage of a type.
type block struct {
	values, bytes int
	decode        func(to []float32, from []byte) // of one block; nil: handled in ToBF16
}

var blocks = map[Type]block{
	F32: {1, 4, nil}, F16: {1, 2, nil}, BF16: {1, 2, nil}, Q8: {32, 34, nil},
	MXFP4: {32, 17, decodeMXFP4}, MXFP4Ollama: {32, 17, decodeMXFP4Ollama},
	Q4_0: {32, 18, decodeQ4_0}, Q4_1: {32, 20, decodeQ4_1}, Q5_0: {32, 22, decodeQ5_0},
	Q5_1: {32, 24, decodeQ5_1}, IQ4NL: {32, 18, decodeIQ4NL}, IQ4XS: {256, 136, decodeIQ4XS},
	Q2K: {256, 84, decodeQ2K}, Q3K: {256, 110, decodeQ3K}, Q4K: {256, 144, decodeQ4K},
	Q5K: {256, 176, decodeQ5K}, Q6K: {256, 210, decodeQ6K}, NVFP4: {64, 36, decodeNVFP4},
}

// readable names the supported types, for messages.
const readable = "F32, F16, BF16, Q2_K to Q8_0, IQ4_NL, IQ4_XS, MXFP4 and NVFP4"

// Block returns the values and bytes of a block; false for an unsupported type.
func (t Type) Block() (elements, bytes int, ok bool) {
	b, ok := blocks[t]
	return b.values, b.bytes, ok
}

// names are llama.cpp's, including types that other models use.
var names = map[Type]string{
	F32: "F32", F16: "F16", Q4_0: "Q4_0", Q4_1: "Q4_1", MXFP4Ollama: "MXFP4 (ollama's)",
	Q5_0: "Q5_0", Q5_1: "Q5_1", Q8: "Q8_0", 9: "Q8_1", Q2K: "Q2_K", Q3K: "Q3_K", Q4K: "Q4_K",
	Q5K: "Q5_K", Q6K: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
	IQ4NL: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", IQ4XS: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32",
	27: "I64", 28: "F64", 29: "IQ1_M", BF16: "BF16", 34: "TQ1_0", 35: "TQ2_0", MXFP4: "MXFP4",
	NVFP4: "NVFP4",
}

func (t Type) String() string {
	if name, ok := names[t]; ok {
		return name
	}
	return fmt.Sprintf("type %d", uint32(t))
}
