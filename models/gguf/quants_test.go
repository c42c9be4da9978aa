package gguf

import (
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
)

//go:embed testdata/quants.txt
var oracle string

// TestDecode: every quantised type's values are those of PyPI's gguf package, bit for bit, and as
// bfloat16 they are those values rounded.
func TestDecode(t *testing.T) {
	kinds := map[string]Type{}
	for kind, b := range blocks {
		if b.decode != nil && kind != MXFP4Ollama || kind == Q8 {
			kinds[kind.String()] = kind
		}
	}
	for line := range strings.Lines(oracle) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		kind, ok := kinds[fields[0]]
		if !ok {
			t.Errorf("%s is not read", fields[0])
			continue
		}
		delete(kinds, fields[0])
		from, want := unhex(t, fields[1]), unhex(t, fields[2])
		b := blocks[kind]
		rounded := make([]byte, len(want)/2)
		ToBF16(rounded, from, kind)
		for i := range len(want) / 4 {
			bits := binary.LittleEndian.Uint32(want[4*i:])
			if b.decode != nil {
				one := make([]float32, b.values)
				b.decode(one, from[i/b.values*b.bytes:][:b.bytes])
				// the package has no zero below zero
				if got, want := one[i%b.values], math.Float32frombits(bits); got != want {
					t.Fatalf("%s: value %d is %v, want %v", kind, i, got, want)
				}
			}
			near := roundBF16(math.Float32frombits(bits))
			if got := binary.LittleEndian.Uint16(rounded[2*i:]); uint32(got) != near &&
				got&0x7fff != 0 {
				t.Fatalf("%s: value %d is rounded to %#x, want %#x", kind, i, got, near)
			}
		}
	}
	if len(kinds) > 0 {
		t.Errorf("nothing holds %v", slices.Sorted(maps.Keys(kinds)))
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
