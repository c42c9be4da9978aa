package gguf_test

// Headers from nowhere: whatever a file says, reading it ends, allocates no more than the file
// could hold, and gives tensors that lie inside the file or an error in one sentence. Right files
// are read in package models' tests of conversions.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models/gguf"
)

// file makes a file of a gpt-oss with one key and one tensor of float32.
func file(version uint32, tensors, keys uint64, dims []uint64, kind uint32, offset uint64,
	data int) []byte {
	return fileWith("general.architecture", "gpt-oss", version, tensors, keys, dims, kind, offset,
		data)
}

func fileWith(key, value string, version uint32, tensors, keys uint64, dims []uint64, kind uint32,
	offset uint64, data int) []byte {
	text := func(to []byte, s string) []byte {
		return append(binary.LittleEndian.AppendUint64(to, uint64(len(s))), s...)
	}
	b := binary.LittleEndian.AppendUint32([]byte("GGUF"), version)
	b = binary.LittleEndian.AppendUint64(b, tensors)
	b = binary.LittleEndian.AppendUint64(b, keys)
	b = binary.LittleEndian.AppendUint32(text(b, key), 8)
	b = text(b, value)
	b = binary.LittleEndian.AppendUint32(text(b, "t"), uint32(len(dims)))
	for _, d := range dims {
		b = binary.LittleEndian.AppendUint64(b, d)
	}
	b = binary.LittleEndian.AppendUint32(b, kind)
	b = binary.LittleEndian.AppendUint64(b, offset)
	for len(b)%32 != 0 {
		b = append(b, 0)
	}
	return append(b, make([]byte, data)...)
}

func TestRead(t *testing.T) {
	for _, test := range []struct {
		name string
		text []byte
		want string // the error, "" for none
	}{
		{"right", file(3, 1, 1, []uint64{4, 2}, 0, 0, 32), ""},
		{"nothing", nil, "f is cut short: its header needs more than the 0 bytes of the file"},
		{"no magic", []byte("safetensors"), `f is not a GGUF file: it begins with "safe"`},
		{"version", file(1, 1, 1, []uint64{4}, 0, 0, 32),
			"f is not a GGUF file that ossrun reads (version 1, not 2 or 3)"},
		{"many tensors", file(3, 1<<40, 1, []uint64{4}, 0, 0, 32),
			"f announces 1099511627776 tensors and 1 keys, more than any model has"},
		{"elements", file(3, 1, 1, []uint64{1 << 40, 1 << 40}, 0, 0, 32),
			"f gives tensor t more elements than can be"},
		{"beyond", file(3, 1, 1, []uint64{4, 3}, 0, 0, 32),
			"f is cut short: tensor t needs bytes 128..176, the file has 160"},
		{"offset", file(3, 1, 1, []uint64{4}, 0, 1<<63, 32),
			"f has tensor t at byte 9223372036854775808"},
		{"unaligned", file(3, 1, 1, []uint64{4}, 0, 7, 32),
			"f has tensor t at byte 7, which is not aligned to 32"},
		{"dimensions", file(3, 1, 1, []uint64{1, 1, 1, 1, 1}, 0, 0, 32),
			"f gives tensor t 5 dimensions"},
		{"type", file(3, 1, 1, []uint64{32}, 19, 0, 32),
			"f has tensor t in IQ1_S, which ossrun does not read: take a file in F32, F16, BF16, " +
				"Q2_K to Q8_0, IQ4_NL, IQ4_XS, MXFP4 and NVFP4"},
		{"another model, in a type of its own", fileWith("general.architecture", "qwen3moe", 3, 1,
			1, []uint64{32}, 19, 0, 32), "f is a model of architecture qwen3moe, and ossrun runs " +
			"gpt-oss only: run it with llama.cpp, Ollama or vLLM, or run ossrun pull 20b"},
		{"a name that is none", fileWith("general.architecture", "\x1b[2J", 3, 1, 1, []uint64{32},
			0, 0, 128), `f is a model of architecture "\x1b[2J", and ossrun runs gpt-oss only`},
		{"an adapter", fileWith("general.type", "adapter", 3, 1, 1, []uint64{32}, 0, 0, 128),
			"f is an adapter for llama.cpp, not a model: give --lora the folder that PEFT saved"},
		{"a projector", fileWith("general.type", "mmproj", 3, 1, 1, []uint64{32}, 0, 0, 128),
			"f is of type mmproj, a part beside a model and none itself: point at the model"},
		{"half a block of 256", file(3, 1, 1, []uint64{128}, 12, 0, 144),
			"f has tensor t with rows of 128 values, which Q4_K cannot hold"},
		{"half a block", file(3, 1, 1, []uint64{16}, 39, 0, 32),
			"f has tensor t with rows of 16 values, which MXFP4 cannot hold"},
	} {
		h, err := gguf.Read("f", bytes.NewReader(test.text), int64(len(test.text)))
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s gives %v", test.name, err)
		case test.want == "":
			if got := h.Tensors[0]; got.Begin != 128 || got.End != 160 || got.Shape[0] != 2 ||
				got.Shape[1] != 4 {
				t.Errorf("%s gives %+v", test.name, got)
			}
		case err == nil || !strings.HasPrefix(err.Error(), test.want):
			t.Errorf("%s gives %v, want %s", test.name, err, test.want)
		}
	}
}

// sparse is a file of any size that is zero but for some texts.
type sparse struct {
	at, size int64
	parts    map[int64][]byte // none across a page
}

func (s *sparse) Read(b []byte) (int, error) {
	if s.at >= s.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(b)), s.size-s.at, 4096-s.at%4096))
	clear(b[:n])
	for at, part := range s.parts {
		if from := at - s.at; from > -int64(len(part)) && from < int64(n) {
			copy(b[max(from, 0):n], part[max(-from, 0):])
		}
	}
	s.at += int64(n)
	return n, nil
}

// A file with holes takes some pages of the disk, whatever its header announces.
func TestHeadersWithHolesAreBounded(t *testing.T) {
	number := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	begin := slices.Concat([]byte("GGUF\x03\x00\x00\x00"), number(1), number(1000))
	keys := &sparse{size: 1 << 40, parts: map[int64][]byte{0: begin}}
	for at, n := int64(len(begin)), 1000; n > 0; n-- {
		keys.parts[at] = number(1<<20 - 64 + uint64(n%50)) // the key, and its number of 8 bytes
		at += 8 + 1<<20 - 64 + int64(n%50)
		keys.parts[at] = []byte{10}
		at += 4 + 8
	}
	list := &sparse{size: 1 << 50, parts: map[int64][]byte{0: slices.Concat(begin, number(4),
		[]byte("list"), []byte{9, 0, 0, 0, 0, 0, 0, 0}, number(1<<49))}}
	for name, file := range map[string]*sparse{"keys": keys, "a list": list} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := gguf.Read(name, file, file.size)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > 64<<20 ||
			file.at > 1<<30 {
			t.Errorf("%s: %d bytes of memory, %d of the file, %v", name, took, file.at, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(file(3, 1, 1, []uint64{4, 2}, 0, 0, 32))
	f.Add(file(2, 1, 1, []uint64{32}, 39, 0, 32))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := gguf.Read("f", bytes.NewReader(text), int64(len(text)))
		var wrong *gguf.Error
		if err != nil {
			if !errors.As(err, &wrong) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Fatalf("%q", err)
			}
			return
		}
		end := h.Bytes
		for _, tensor := range h.Tensors {
			if tensor.Begin < end || tensor.End < tensor.Begin || tensor.End > int64(len(text)) {
				t.Fatalf("tensor %+v after byte %d of %d", tensor, end, len(text))
			}
			end = tensor.End
		}
	})
}
