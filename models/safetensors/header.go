// Package safetensors reads safetensors files as views of mapped memory.
//
// A file is: u64 little-endian header length N, N bytes of JSON, then the tensors' bytes. The JSON
// is an object of name -> {"dtype", "shape", "data_offsets": [begin, end]} with offsets counted
// from the end of the header, and an optional "__metadata__" object of strings.
//
// Nothing in a file is trusted. What must stay true of a Header: names are unique and valid UTF-8,
// each tensor's bytes are inside the file and match dtype and shape. No two tensors share a byte,
// and together they fill the file to its end. Reading a header touches no tensor byte.
package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"
)

// MaxHeader is the longest header that is read, in bytes. The 120b's 687 tensors in a single file
// would need about 100 kB.
const MaxHeader = 16 << 20

// lengthBytes is the size of the header length before the header.
const lengthBytes = 8

// Info is one tensor of a header.
type Info struct {
	Name       string
	DType      DType
	Shape      []int // empty for a scalar
	Begin, End int64 // byte positions in the file (not in the data section), End exclusive
}

// Header is a checked header: Tensors in the order of their bytes.
type Header struct {
	Tensors  []Info
	Metadata map[string]string
	Size     int64 // the size of the file, in bytes
}

// Error describes one file's problem, in one sentence without its full stop: "FILE is cut short:
// ...".
type Error struct {
	File string // base name
	Cut  bool   // the file ends too early: download it again
	What string // the sentence after the file's name
}

func (e *Error) Error() string { return e.File + " " + e.What }

// ReadHeader reads and checks the header of the size bytes in r. Errors about the content are
// *Error with file as their File; errors of r are wrapped.
func ReadHeader(file string, r io.ReaderAt, size int64) (*Header, error) {
	if size < lengthBytes {
		return nil, &Error{File: file, Cut: true,
			What: fmt.Sprintf(
				"is cut short: a safetensors file begins with %d bytes of header length, this "+
					"file has %d", lengthBytes, size)}
	}
	var length [lengthBytes]byte
	if _, err := r.ReadAt(length[:], 0); err != nil {
		return nil, fmt.Errorf("%s: reading the header length: %w", file, err)
	}
	if what := describeForeign(length[:]); what != "" {
		return nil, &Error{File: file, What: what}
	}
	n := binary.LittleEndian.Uint64(length[:])
	switch {
	case n < 2:
		return nil, &Error{File: file,
			What: fmt.Sprintf("is not a safetensors file: it announces a header of %d bytes", n)}
	case n > MaxHeader:
		return nil, &Error{File: file,
			What: fmt.Sprintf(
				"is not a safetensors file: it announces a header of %d bytes, more than the %d "+
					"that any model needs", n, MaxHeader)}
	case int64(n) > size-lengthBytes:
		return nil, &Error{File: file, Cut: true,
			What: fmt.Sprintf("is cut short: its header needs bytes %d..%d, the file has %d",
				lengthBytes, lengthBytes+n, size)}
	}
	text := make([]byte, n)
	if _, err := r.ReadAt(text, lengthBytes); err != nil {
		return nil, fmt.Errorf("%s: reading the header: %w", file, err)
	}
	return parse(file, text, size)
}

// describeForeign describes a file that does not begin like a safetensors file.
func describeForeign(begin []byte) string {
	switch {
	case bytes.HasPrefix(begin, []byte("version ")):
		return "is a Git LFS pointer, not the weights: run git lfs pull in its folder"
	case bytes.HasPrefix(begin, []byte("GGUF")):
		return "is a GGUF file under another name: give its own path to --model"
	case bytes.HasPrefix(begin, []byte("PK\x03\x04")):
		return "is a zip archive or a PyTorch pickle under another name, not a safetensors file"
	case bytes.HasPrefix(bytes.ToLower(begin), []byte("<!doctyp")),
		bytes.HasPrefix(bytes.ToLower(begin), []byte("<html")):
		return "is a web page, not the weights: the download saved an error page"
	}
	return ""
}

// parse checks the header's text for a file of size bytes.
func parse(file string, text []byte, size int64) (*Header, error) {
	fail := func(format string, args ...any) error {
		return &Error{File: file, What: fmt.Sprintf(format, args...)}
	}
	if text[0] != '{' {
		return nil, fail("is not a safetensors file: its header is not a JSON object")
	}
	if !utf8.Valid(text) {
		return nil, fail("has a broken header: it is not UTF-8")
	}
	if !json.Valid(text) {
		return nil, fail("has a broken header: it is not JSON")
	}
	data := lengthBytes + int64(len(text))
	h := &Header{Size: size}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if _, err := members(dec, func(name string, duplicate bool) error {
		if duplicate {
			return fail("names tensor %s twice", Printable(name))
		}
		if name == "__metadata__" {
			if dec.Decode(&h.Metadata) != nil {
				return fail("has a broken header: __metadata__ is not an object of strings")
			}
			return nil
		}
		info, err := readInfo(dec, data)
		if err != nil {
			return fail("has a broken header: tensor %s: %v", Printable(name), err)
		}
		info.Name = name
		h.Tensors = append(h.Tensors, info)
		return nil
	}); err != nil {
		return nil, err
	}
	// Empty tensors sort before the tensor that begins at the same position.
	slices.SortFunc(h.Tensors, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End))
	})
	end := data
	prev := ""
	for _, t := range h.Tensors {
		switch {
		case t.Begin < end:
			return nil, fail("has a broken header: tensors %s and %s overlap", Printable(prev),
				Printable(t.Name))
		case t.Begin > end:
			return nil, fail(
				"has a broken header: bytes %d..%d before tensor %s belong to no tensor", end,
				t.Begin, Printable(t.Name))
		case t.End > size:
			return nil, &Error{File: file, Cut: true,
				What: fmt.Sprintf("is cut short: tensor %s needs bytes %d..%d, the file has %d",
					Printable(t.Name), t.Begin, t.End, size)}
		}
		end, prev = t.End, t.Name
	}
	if end != size {
		return nil, fail(
			"is %d bytes longer than its tensors: bytes %d..%d belong to no tensor", size-end, end,
			size)
	}
	return h, nil
}

// members calls read for each member of the next object, and returns their names; again is true for
// a duplicate name.
func members(dec *json.Decoder, read func(name string, duplicate bool) error) (map[string]bool,
	error) {
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, cmp.Or(err, errors.New("its value is not an object"))
	}
	seen := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name := key.(string)
		if err := read(name, seen[name]); err != nil {
			return nil, err
		}
		seen[name] = true
	}
	_, err := dec.Token()
	return seen, err
}

// readInfo reads one tensor's object and converts its positions to count from the start of the
// file; data is where tensors' bytes begin. Duplicate fields are refused, unknown ones ignored.
// Every sum and product is checked for overflow.
func readInfo(dec *json.Decoder, data int64) (t Info, err error) {
	var shape, offsets []json.Number
	fields := map[string]any{"dtype": &t.DType, "shape": &shape, "data_offsets": &offsets}
	seen, err := members(dec, func(field string, duplicate bool) error {
		if duplicate {
			return fmt.Errorf("field %s stands twice", Printable(field))
		}
		to, ok := fields[field]
		if !ok {
			to = new(json.RawMessage)
		}
		if dec.Decode(to) != nil {
			return fmt.Errorf("field %s has the wrong type", Printable(field))
		}
		return nil
	})
	if err != nil {
		return t, err
	}
	for _, field := range [...]string{"dtype", "shape", "data_offsets"} {
		if !seen[field] {
			return t, fmt.Errorf("field %s is missing", field)
		}
	}
	if t.DType.Bits() == 0 {
		return t, fmt.Errorf("dtype %s is unknown", Printable(string(t.DType)))
	}
	count := uint64(1)
	t.Shape = make([]int, 0, len(shape))
	for _, n := range shape {
		v, err := strconv.ParseUint(n.String(), 10, 64)
		if err != nil || v > math.MaxInt {
			return t, fmt.Errorf("%s is not the length of a dimension", Printable(n.String()))
		}
		high, low := bits.Mul64(count, v)
		if high != 0 {
			return t, fmt.Errorf("shape has more elements than 64 bits can count")
		}
		count = low
		t.Shape = append(t.Shape, int(v))
	}
	high, width := bits.Mul64(count, uint64(t.DType.Bits()))
	if high != 0 {
		return t, fmt.Errorf("shape has more elements than 64 bits can count")
	}
	if width%8 != 0 {
		return t, fmt.Errorf("its %d elements of %s do not fill whole bytes", count, t.DType)
	}
	if len(offsets) != 2 {
		return t, fmt.Errorf("data_offsets has %d numbers, not 2", len(offsets))
	}
	var position [2]int64
	for i, n := range offsets {
		v, err := strconv.ParseUint(n.String(), 10, 64)
		if err != nil || v > math.MaxInt64-uint64(data) {
			return t, fmt.Errorf("%s is not an offset", Printable(n.String()))
		}
		position[i] = data + int64(v)
	}
	t.Begin, t.End = position[0], position[1]
	if t.Begin > t.End {
		return t, fmt.Errorf("it ends at byte %d, before it begins at %d", t.End, t.Begin)
	}
	if uint64(t.End-t.Begin) != width/8 {
		return t, fmt.Errorf("%s %v needs %d bytes, its offsets span %d", t.DType, t.Shape, width/8,
			t.End-t.Begin)
	}
	return t, nil
}

// Printable makes a name from a file safe for a message: unchanged if it is short and printable,
// else quoted and truncated, so that a hostile name can neither move a terminal's cursor nor flood
// it.
func Printable(name string) string {
	const most = 120
	plain := len(name) > 0 && len(name) <= most
	for i := 0; plain && i < len(name); i++ {
		plain = name[i] > ' ' && name[i] < 0x7f && name[i] != '"'
	}
	if plain {
		return name
	}
	if len(name) > most {
		return strconv.QuoteToASCII(name[:most]) + "..."
	}
	return strconv.QuoteToASCII(name)
}
