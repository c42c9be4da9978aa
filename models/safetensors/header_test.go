package safetensors

// Invalid headers. Each case is one fault and its sentence; the fuzz target checks a Header's
// promises for any bytes.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// file puts a length before a header and data bytes after it.
func file(header string, data int) []byte {
	text := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(text, header...), make([]byte, data)...)
}

func TestHeader(t *testing.T) {
	text := `{"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4],"note":{"x":[1]}},"none":{"dtype":"F32","shape":[7,0],"data_offsets":[4,4]},"one":{"dtype":"F64","shape":[],"data_offsets":[16,24]},"half":{"dtype":"F4","shape":[3,2],"data_offsets":[24,27]}}   `
	all := file(text, 27)
	h := hosttest.Must(ReadHeader("x", bytes.NewReader(all), int64(len(all))))(t)
	base := int64(8 + len(text))
	want := []Info{
		{"a", U8, []int{4}, base, base + 4},
		{"none", F32, []int{7, 0}, base + 4, base + 4},
		{"b", BF16, []int{2, 3}, base + 4, base + 16},
		{"one", "F64", []int{}, base + 16, base + 24},
		{"half", "F4", []int{3, 2}, base + 24, base + 27},
	}
	if got := fmt.Sprint(h.Tensors); got != fmt.Sprint(want) {
		t.Errorf("\n got %v\nwant %v", got, want)
	}
	if h.Metadata["format"] != "pt" || h.Size != int64(len(all)) {
		t.Errorf("metadata %v, size %d", h.Metadata, h.Size)
	}
}

// SECURITY.md: a model file: headers and sizes are checked before use; weights are hashed
func TestRefuseHeader(t *testing.T) {
	const ok = `"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}`
	tensor := func(dtype, shape, offsets string) string {
		return `{"a":{"dtype":"` + dtype + `","shape":` + shape + `,"data_offsets":` + offsets +
			`}}`
	}
	length := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	for _, test := range []struct {
		name string
		file []byte
		want string
		cut  bool
	}{
		{"nothing", nil, "f is cut short: a safetensors file begins with 8 bytes of header " +
			"length, this file has 0", true},
		{"seven bytes", make([]byte, 7),
			"f is cut short: a safetensors file begins with 8 bytes of header length, this file " +
				"has 7", true},
		{"length 0", length(0), "f is not a safetensors file: it announces a header of 0 bytes",
			false},
		{"length 2^64-1", append(length(1<<64-1), "{}"...),
			"f is not a safetensors file: it announces a header of 18446744073709551615 bytes, " +
				"more " +
				"than the 16777216 that any model needs", false},
		{"length 2^63", append(length(1<<63), "{}"...),
			"f is not a safetensors file: it announces a header of 9223372036854775808 bytes, more " +
				"than the 16777216 that any model needs", false},
		{"length beyond the file", append(length(3), "{}"...),
			"f is cut short: its header needs bytes 8..11, the file has 10", true},
		{"array", file(`[]`, 0), "f is not a safetensors file: its header is not a JSON object",
			false},
		{"space first", file(` {}`, 0),
			"f is not a safetensors file: its header is not a JSON object",
			false},
		{"not closed", file(`{"a":`, 0), "f has a broken header: it is not JSON", false},
		{"two objects", file(`{}{}`, 0), "f has a broken header: it is not JSON", false},
		{"not UTF-8", file("{\"\xff\":1}", 0), "f has a broken header: it is not UTF-8", false},
		{"metadata is a list", file(`{"__metadata__":[]}`, 0),
			"f has a broken header: __metadata__ is not an object of strings", false},
		{"metadata of numbers", file(`{"__metadata__":{"a":1}}`, 0),
			"f has a broken header: __metadata__ is not an object of strings", false},
		{"twice", file(`{`+ok+`,`+ok+`}`, 4), "f names tensor a twice", false},
		{"twice in disguise", file(`{`+ok+`,`+strings.Replace(ok, `"a"`, `"\u0061"`, 1)+`}`, 4),
			"f names tensor a twice", false},
		{"field twice", file(`{"a":{"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]}}`,
			4), "f has a broken header: tensor a: field dtype stands twice", false},
		{"no object", file(`{"a":[]}`, 0),
			"f has a broken header: tensor a: its value is not an object", false},
		{"no dtype", file(`{"a":{"shape":[4],"data_offsets":[0,4]}}`, 4),
			"f has a broken header: tensor a: field dtype is missing", false},
		{"no shape", file(`{"a":{"dtype":"U8","data_offsets":[0,4]}}`, 4),
			"f has a broken header: tensor a: field shape is missing", false},
		{"no offsets", file(`{"a":{"dtype":"U8","shape":[4]}}`, 4),
			"f has a broken header: tensor a: field data_offsets is missing", false},
		{"bad dtype", file(tensor("Q4", "[4]", "[0,4]"), 4),
			"f has a broken header: tensor a: dtype Q4 is unknown", false},
		{"dtype by our name", file(tensor("invalid", "[4]", "[0,4]"), 4),
			"f has a broken header: tensor a: dtype invalid is unknown", false},
		{"dtype is a number", file(`{"a":{"dtype":8,"shape":[4],"data_offsets":[0,4]}}`, 4),
			"f has a broken header: tensor a: field dtype has the wrong type", false},
		{"shape is a word", file(tensor("U8", `"4"`, "[0,4]"), 4),
			"f has a broken header: tensor a: field shape has the wrong type", false},
		{"negative length", file(tensor("U8", "[-4]", "[0,4]"), 4),
			"f has a broken header: tensor a: -4 is not the length of a dimension", false},
		{"fractional length", file(tensor("U8", "[4.0]", "[0,4]"), 4),
			"f has a broken header: tensor a: 4.0 is not the length of a dimension", false},
		{"length 2^63", file(tensor("U8", "[9223372036854775808]", "[0,4]"), 4),
			"f has a broken header: tensor a: 9223372036854775808 is not the length of a dimension",
			false},
		{"null length", file(tensor("U8", "[null]", "[0,4]"), 4),
			`f has a broken header: tensor a: "" is not the length of a dimension`, false},
		{"product wraps to 4", file(tensor("U8", "[4611686018427387905,4]", "[0,4]"), 4),
			"f has a broken header: tensor a: shape has more elements than 64 bits can count",
			false},
		{"bits wrap", file(tensor("F64", "[288230376151711744]", "[0,0]"), 0),
			"f has a broken header: tensor a: shape has more elements than 64 bits can count",
			false},
		{"half a byte", file(tensor("F4", "[3]", "[0,2]"), 2),
			"f has a broken header: tensor a: its 3 elements of F4 do not fill whole bytes", false},
		{"one offset", file(tensor("U8", "[4]", "[4]"), 4),
			"f has a broken header: tensor a: data_offsets has 1 numbers, not 2", false},
		{"negative offset", file(tensor("U8", "[4]", "[-4,0]"), 4),
			"f has a broken header: tensor a: -4 is not an offset", false},
		{"offset wraps with the header", file(tensor("U8", "[4]", "[0,9223372036854775807]"), 4),
			"f has a broken header: tensor a: 9223372036854775807 is not an offset", false},
		{"backwards", file(tensor("U8", "[4]", "[4,0]"), 4),
			"f has a broken header: tensor a: it ends at byte 61, before it begins at 65", false},
		{"too few bytes", file(tensor("BF16", "[4]", "[0,4]"), 4),
			"f has a broken header: tensor a: BF16 [4] needs 8 bytes, its offsets span 4", false},
		{"past the end", file(tensor("U8", "[4]", "[0,4]"), 3),
			"f is cut short: tensor a needs bytes 61..65, the file has 64", true},
		{"gap at the start", file(tensor("U8", "[4]", "[1,5]"), 5),
			"f has a broken header: bytes 61..62 before tensor a belong to no tensor", false},
		{"overlap", file(`{`+ok+`,"b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}}`, 7),
			"f has a broken header: tensors a and b overlap", false},
		{"same bytes", file(`{`+ok+`,"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 4),
			"f has a broken header: tensors a and b overlap", false},
		{"gap", file(`{`+ok+`,"b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}}`, 9),
			"f has a broken header: bytes 117..118 before tensor b belong to no tensor", false},
		{"tail", file(`{`+ok+`}`, 6),
			"f is 2 bytes longer than its tensors: bytes 65..67 belong to no tensor", false},
		{"a name that moves the cursor", file(`{"\u001b[2J":[]}`, 0),
			`f has a broken header: tensor "\x1b[2J": its value is not an object`, false},
		{"a long name", file(`{"`+strings.Repeat("a", 500)+`":[]}`, 0),
			`f has a broken header: tensor "` + strings.Repeat("a", 120) +
				`"...: its value is not an object`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := ReadHeader("f", bytes.NewReader(test.file), int64(len(test.file)))
			if err == nil {
				t.Fatal("it is read")
			}
			if err.Error() != test.want {
				t.Errorf("\n got: %s\nwant: %s", err, test.want)
			}
			var e *Error
			if !errors.As(err, &e) || e.Cut != test.cut || e.File != "f" {
				t.Errorf("error %#v, want cut %v", e, test.cut)
			}
		})
	}
	t.Run("deep nesting", func(t *testing.T) {
		all := file(`{"a":`+strings.Repeat("[", 1<<20)+strings.Repeat("]", 1<<20)+`}`, 0)
		if _, err := ReadHeader("f", bytes.NewReader(all), int64(len(all))); err == nil {
			t.Error("it is read")
		}
	})
}

func TestOpenFile(t *testing.T) {
	text := `{"a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[0],"data_offsets":[4,4]},"c":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}}`
	all := file(text, 5)
	copy(all[len(all)-5:], "abcde")
	path := filepath.Join(t.TempDir(), "m.safetensors")
	hosttest.Check(t, os.WriteFile(path, all, 0o644))
	f := hosttest.Must(Open(path))(t)
	if got := f.Tensor(0); string(got.Data) != "abcd" || got.Name != "a" ||
		got.File != "m.safetensors" || cap(got.Data) != 4 {
		t.Errorf("tensor is %+v", got)
	}
	if got := f.Tensor(1); len(got.Data) != 0 {
		t.Errorf("the empty tensor is %+v", got)
	}
	if err := errors.Join(f.Close(), f.Close()); err != nil {
		t.Error(err)
	}
	if h, err := Inspect(path); err != nil || len(h.Tensors) != 3 {
		t.Errorf("inspecting gives %v, %v", h, err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there gives %v", err)
	}
}

func TestIndex(t *testing.T) {
	index, err := ParseIndex("i",
		[]byte(`{"metadata":{"total_size":1},"weight_map":{"x":"b.safetensors","y":"a.safetensors","z":"b.safetensors"}}`))
	if err != nil || fmt.Sprint(index.Files) != "[a.safetensors b.safetensors]" ||
		index.FileOf["z"] != "b.safetensors" {
		t.Errorf("index %v, %v", index, err)
	}
	for _, name := range []string{"", ".", "..", "../x", "a/../../x", "/etc/passwd", `..\x`, `a\b`,
		"a/b", "a\x1b[2J", "a b"} {
		if _, err := ParseIndex("i", fmt.Appendf(nil, `{"weight_map":{"x":%q}}`,
			name)); err == nil {
			t.Errorf("file name %q is taken", name)
		}
	}
	for _, text := range []string{"", "[]", "{}", `{"weight_map":[]}`, `{"weight_map":{"a":1}}`,
		"{\"weight_map\":{\"a\":\"\xff\"}}"} {
		if _, err := ParseIndex("i", []byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func FuzzReadHeader(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},"b":{"dtype":"U8","shape":[],"data_offsets":[12,13]}}`, 13))
	f.Add(file(`{"__metadata__":{"format":"pt"}}`, 0))
	f.Add(file(`{"a":{"dtype":"F4","shape":[2,0],"data_offsets":[0,0]}}`, 0))
	f.Add([]byte("version https://git-lfs.github.com/spec/v1"))
	f.Fuzz(func(t *testing.T, all []byte) {
		file, err := FromMemory("f", all)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Errorf("reading memory failed: %v", err)
			}
			if strings.ContainsFunc(err.Error(), func(r rune) bool {
				return r < ' ' ||
					r == 0x7f
			}) {
				t.Errorf("control characters in %q", err)
			}
			return
		}
		names := map[string]bool{}
		owned := int64(8) + int64(binary.LittleEndian.Uint64(all))
		for i, info := range file.Header.Tensors {
			if names[info.Name] {
				t.Errorf("%q stands twice", info.Name)
			}
			names[info.Name] = true
			if info.Begin != owned || info.End < info.Begin || info.End > int64(len(all)) {
				t.Errorf("%q has bytes %d..%d after %d of %d", info.Name, info.Begin, info.End,
					owned, len(all))
			}
			owned = info.End
			count := int64(1)
			for _, d := range info.Shape {
				count *= int64(d)
			}
			if data := file.Tensor(i).Data; int64(len(data))*8 != count*int64(info.DType.Bits()) {
				t.Errorf("%q of %s %v has %d bytes", info.Name, info.DType, info.Shape, len(data))
			}
		}
		if owned != int64(len(all)) {
			t.Errorf("tensors end at %d of %d", owned, len(all))
		}
	})
}

func FuzzParseIndex(f *testing.F) {
	f.Add([]byte(`{"metadata":{"total_size":1},"weight_map":{"x":"b.safetensors","y":"a.safetensors"}}`))
	f.Add([]byte(`{"weight_map":{"\u001b[2J":1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		index, err := ParseIndex("i", text)
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(r rune) bool {
				return r < ' ' ||
					r == 0x7f
			}) {
				t.Errorf("control characters in %q", err)
			}
			return
		}
		for _, name := range index.Files {
			if filepath.Base(name) != name || name == ".." || name == "." {
				t.Errorf("file name %q leads somewhere", name)
			}
		}
	})
}
