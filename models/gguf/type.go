package gguf

// The element types that gpt-oss files use, and the names of the others for messages.

import "fmt"

// Type is an element type as files number it.
type Type uint32

const (
	F32  Type = 0
	F16  Type = 1
	Q8   Type = 8 // Q8_0: 32 values are an F16 scale and 32 signed bytes
	BF16 Type = 30

	// MXFP4 is 32 values as an E8M0 scale and 16 bytes: byte j holds value j in its low nibble and
	// value j+16 in its high one.
	MXFP4 Type = 39
	// MXFP4Ollama is what ollama's first gpt-oss files call MXFP4, under a number that was free
	// then: the same block, but byte j holds values 2j and 2j+1, as in OpenAI's files.
	MXFP4Ollama Type = 4
)

// Block is how many values a type stores together, and in how many bytes; false for a type that no
// gpt-oss file has.
func (t Type) Block() (elements, bytes int, ok bool) {
	switch t {
	case F32:
		return 1, 4, true
	case F16, BF16:
		return 1, 2, true
	case Q8:
		return 32, 34, true
	case MXFP4, MXFP4Ollama:
		return 32, 17, true
	}
	return 0, 0, false
}

// names are llama.cpp's, for types that people meet in files of other conversions.
var names = map[Type]string{
	F32: "F32", F16: "F16", 2: "Q4_0", 3: "Q4_1", MXFP4Ollama: "MXFP4 (ollama's)", 6: "Q5_0",
	7: "Q5_1", Q8: "Q8_0", 9: "Q8_1", 10: "Q2_K",
	11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS",
	18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL",
	21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", BF16: "BF16", MXFP4: "MXFP4",
}

func (t Type) String() string {
	if name, ok := names[t]; ok {
		return name
	}
	return fmt.Sprintf("type %d", uint32(t))
}
