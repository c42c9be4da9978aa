package safetensors

// DType is an element type by its name in a header; "" is none. gpt-oss uses BF16 and U8; the
// others are known so that an error can describe a foreign file.
type DType string

// The types that are read; widths has all types.
const (
	U8   DType = "U8"
	BF16 DType = "BF16"
	I32  DType = "I32"
	F32  DType = "F32"
)

// widths are the bits of one element.
var widths = map[DType]int{"BOOL": 8, U8: 8, "I8": 8, "U16": 16, "I16": 16, "F16": 16, BF16: 16,
	"U32": 32, I32: 32, F32: 32, "U64": 64, "I64": 64, "F64": 64, "C64": 64, "F8_E5M2": 8,
	"F8_E4M3": 8, "F8_E8M0": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4}

// Bits is the width of one element: 16 for BF16, 8 for U8, 0 for an unknown type.
func (d DType) Bits() int { return widths[d] }
