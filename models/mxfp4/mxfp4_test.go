package mxfp4

// Decoding against the golden values, and against a second way of computing them for every code and scale.

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"

	"github.com/ossrun/ossrun/models/safetensors"
)

func TestGolden(t *testing.T) {
	f, err := safetensors.Open(filepath.Join("..", "..", "testdata", "model", "units", "mxfp4.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data := map[string][]byte{}
	for i, info := range f.Header.Tensors {
		data[info.Name] = f.Tensor(i).Data
	}
	blocks, scales := data["blocks"], data["scales"]
	seen := map[byte]bool{}
	for _, s := range scales {
		seen[s] = true
	}
	for _, s := range []byte{0, 1, 2, 254} {
		if !seen[s] {
			t.Errorf("the golden file lacks scale %d", s)
		}
	}
	got64, got32 := make([]float64, len(scales)*Block), make([]float32, len(scales)*Block)
	if err := Decode64(got64, blocks, scales); err != nil {
		t.Fatal(err)
	}
	if err := Decode32(got32, blocks, scales); err != nil {
		t.Fatal(err)
	}
	for i := range got64 {
		// By value: the golden arrays hold 0 where a code says -0.
		if want := math.Float64frombits(binary.LittleEndian.Uint64(data["values_f64"][8*i:])); got64[i] != want {
			t.Errorf("float64 value %d (scale %d) is %g, want %g", i, scales[i/Block], got64[i], want)
		}
		if want := math.Float32frombits(binary.LittleEndian.Uint32(data["values_f32"][4*i:])); got32[i] != want {
			t.Errorf("float32 value %d (scale %d) is %g, want %g", i, scales[i/Block], got32[i], want)
		}
	}
}

// Every byte under every scale, built from the fields of E2M1 instead of a table.
func TestEveryCode(t *testing.T) {
	element := func(code byte) float64 {
		mantissa, exponent := float64(code&1), int(code>>1&3)
		value := math.Ldexp(1+mantissa/2, exponent-1)
		if exponent == 0 {
			value = mantissa / 2 // subnormal
		}
		if code&8 != 0 {
			value = -value
		}
		return value
	}
	var blocks, scales []byte
	for scale := range 256 {
		for first := range 256 / BlockBytes {
			for b := range BlockBytes {
				blocks = append(blocks, byte(first*BlockBytes+b))
			}
			scales = append(scales, byte(scale))
		}
	}
	got64, got32 := make([]float64, len(scales)*Block), make([]float32, len(scales)*Block)
	if err := Decode64(got64, blocks, scales); err != nil {
		t.Fatal(err)
	}
	if err := Decode32(got32, blocks, scales); err != nil {
		t.Fatal(err)
	}
	for i, got := range got64 {
		code := blocks[i/2] >> (4 * (i % 2)) & 15
		want := math.Ldexp(element(code), int(scales[i/Block])-127)
		if got != want {
			t.Fatalf("code %d of scale %d is %g, want %g", code, scales[i/Block], got, want)
		}
		exact := float64(got32[i]) == want
		if !exact && !(math.Abs(want) >= math.Ldexp(1, 128) && math.IsInf(float64(got32[i]), int(math.Copysign(1, want)))) {
			t.Fatalf("code %d of scale %d is %g in float32, want %g", code, scales[i/Block], got32[i], want)
		}
	}
}

func TestLengths(t *testing.T) {
	for _, test := range []struct{ values, bytes, scales int }{{32, 16, 2}, {31, 16, 1}, {32, 15, 1}, {32, 17, 1}, {33, 16, 1}, {1, 0, 0}} {
		if Decode64(make([]float64, test.values), make([]byte, test.bytes), make([]byte, test.scales)) == nil {
			t.Errorf("%+v is decoded", test)
		}
	}
	if err := Decode32(nil, nil, nil); err != nil {
		t.Errorf("nothing gives %v", err)
	}
}
