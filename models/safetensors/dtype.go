package safetensors

// The element types of the format. gpt-oss uses two of them, BF16 and U8; the others are known so
// that a foreign file is read far enough to be named for what it is.

// DType is an element type. The zero value is no type.
type DType uint8

const (
	Invalid DType = iota
	BOOL
	U8
	I8
	U16
	I16
	F16
	BF16
	U32
	I32
	F32
	U64
	I64
	F64
	C64
	F8E5M2
	F8E4M3
	F8E8M0
	F6E2M3
	F6E3M2
	F4
)

// dtypes holds each type's name in the header and its width in bits, indexed by DType.
var dtypes = [...]struct {
	name string
	bits int
}{
	Invalid: {"invalid", 0},
	BOOL:    {"BOOL", 8},
	U8:      {"U8", 8},
	I8:      {"I8", 8},
	U16:     {"U16", 16},
	I16:     {"I16", 16},
	F16:     {"F16", 16},
	BF16:    {"BF16", 16},
	U32:     {"U32", 32},
	I32:     {"I32", 32},
	F32:     {"F32", 32},
	U64:     {"U64", 64},
	I64:     {"I64", 64},
	F64:     {"F64", 64},
	C64:     {"C64", 64},
	F8E5M2:  {"F8_E5M2", 8},
	F8E4M3:  {"F8_E4M3", 8},
	F8E8M0:  {"F8_E8M0", 8},
	F6E2M3:  {"F6_E2M3", 6},
	F6E3M2:  {"F6_E3M2", 6},
	F4:      {"F4", 4},
}

// String gives the type's name as headers write it.
func (d DType) String() string {
	if int(d) >= len(dtypes) {
		return dtypes[Invalid].name
	}
	return dtypes[d].name
}

// Bits gives the width of one element: 16 for BF16, 8 for U8, 0 for Invalid.
func (d DType) Bits() int {
	if int(d) >= len(dtypes) {
		return 0
	}
	return dtypes[d].bits
}

// parseDType finds the type that a header names; Invalid when there is none.
func parseDType(name string) DType {
	for d := BOOL; int(d) < len(dtypes); d++ {
		if dtypes[d].name == name {
			return d
		}
	}
	return Invalid
}
