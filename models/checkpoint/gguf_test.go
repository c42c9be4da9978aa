package checkpoint_test

// GGUF files as written by llama.cpp and ollama, made from the golden checkpoints, must give these
// checkpoints byte for byte, and so their logits (ui/cli also compares one with the goldens).

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// dataOf returns the bytes of a tensor.
func dataOf(t *testing.T, c *checkpoint.Checkpoint, name string) []byte {
	t.Helper()
	return hosttest.Must(c.Tensor(name))(t).Data
}

// golden opens T1 or T2.
func golden(t *testing.T, name string) *checkpoint.Checkpoint {
	t.Helper()
	c, err := checkpoint.Open(filepath.Join("..", "..", "testdata", "model", name, "checkpoint"))
	hosttest.Check(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// openGGUF resolves a GGUF file, opens it and loads its weights.
func openGGUF(t *testing.T, path string) *checkpoint.Checkpoint {
	t.Helper()
	found := hosttest.Must(checkpoint.Resolve(path))(t)
	if found.GGUF == nil || !found.Complete || found.Path != path {
		t.Fatalf("%s is found as %+v", path, found)
	}
	c := hosttest.Must(found.Open())(t)
	t.Cleanup(func() { c.Close() })
	last, reports := int64(0), 0
	hosttest.Check(t, c.Load(t.Context(), 0, nil, func(done, total int64) {
		if done < last || done > total {
			t.Errorf("progress goes from %d to %d of %d", last, done, total)
		}
		last = done
		reports++
	}))
	if last != c.Bytes() || reports == 0 {
		t.Errorf("%d of %d bytes were reported at the end", last, c.Bytes())
	}
	return c
}

func TestGGUF(t *testing.T) {
	for _, test := range []struct {
		model string
		style modeltest.GGUFStyle
		files int
	}{{"T1", modeltest.LlamaBF16, 1}, {"T1", modeltest.Ollama, 1}, {"T2", modeltest.LlamaBF16, 3},
		{"T2", modeltest.Ollama, 2}} {
		want := golden(t, test.model)
		path := hosttest.Must(modeltest.WriteGGUF(want, t.TempDir(), "tune", test.style,
			test.files))(t)
		got := openGGUF(t, path)
		if !got.Spec.SameShape(want.Spec) || got.Spec.Name != "tune" {
			t.Errorf("%+v: spec\n%+v, want\n%+v", test, got.Spec, want.Spec)
		}
		if len(got.Spec.EOS) != len(want.Spec.EOS) {
			t.Errorf("%+v: a turn ends with %v, want %v", test, got.Spec.EOS, want.Spec.EOS)
		}
		for _, tensor := range want.Spec.Tensors() {
			if !bytes.Equal(dataOf(t, got, tensor.Name), dataOf(t, want, tensor.Name)) {
				t.Errorf("%+v: tensor %s differs", test, tensor.Name)
			}
		}
	}
}

// TestGGUFQ8: values of Q8_0 blocks become the nearest bfloat16; all others are unchanged.
func TestGGUFQ8(t *testing.T) {
	want := golden(t, "T1")
	path := hosttest.Must(modeltest.WriteGGUF(want, t.TempDir(), "tune", modeltest.LlamaQ8, 1))(t)
	got := openGGUF(t, path)
	set := hosttest.Must(gguf.OpenSet(path))(t)
	text := hosttest.Must(os.ReadFile(path))(t)
	quantised := map[string]string{"model.embed_tokens.weight": "token_embd.weight",
		"model.layers.3.self_attn.k_proj.weight": "blk.3.attn_k.weight"}
	for _, tensor := range want.Spec.Tensors() {
		a, b := dataOf(t, got, tensor.Name), dataOf(t, want, tensor.Name)
		source, ok := quantised[tensor.Name]
		if !ok {
			if matrix := len(tensor.Shape) == 2 && strings.HasSuffix(tensor.Name, ".weight") &&
				!strings.Contains(tensor.Name, "router"); !matrix && !bytes.Equal(a, b) {
				t.Errorf("tensor %s differs", tensor.Name)
			}
			continue
		}
		from := text[set.Tensors[source].Begin:set.Tensors[source].End]
		for i := range len(a) / 2 {
			block := from[i/32*34:]
			// the writer's scales are powers of two, so no value is rounded
			exponent := int(binary.LittleEndian.Uint16(block)>>10) - 15
			exact := math.Ldexp(float64(int8(block[2+i%32])), exponent)
			if v := math.Float32frombits(
				uint32(binary.LittleEndian.Uint16(a[2*i:])) << 16); float64(v) != exact {
				t.Fatalf("%s: value %d is %v, the file has %v", tensor.Name, i, v, exact)
			}
		}
	}
}

// TestGGUFMixes: every published mix. Rounding errors are within a type's bits, and unrounded
// tensors are unchanged.
func TestGGUFMixes(t *testing.T) {
	want := golden(t, "T1")
	most := map[string]float64{"F16": 0, "Q8_0": 0.01, "Q6_K": 0.025, "Q5_K": 0.045, "Q5_1": 0.045,
		"Q5_0": 0.05, "Q4_K": 0.09, "Q4_1": 0.09, "Q4_0": 0.11, "IQ4_NL": 0.1, "IQ4_XS": 0.1,
		"Q3_K": 0.25, "Q2_K": 0.4} // of a matrix's size, root mean square
	for name, style := range modeltest.Published {
		path := hosttest.Must(modeltest.WriteGGUF(want, t.TempDir(), "tune", style, 1))(t)
		got := openGGUF(t, path)
		for _, tensor := range want.Spec.Tensors() {
			a, b := dataOf(t, want, tensor.Name), dataOf(t, got, tensor.Name)
			if bytes.Equal(a, b) {
				continue
			}
			var off, size float64
			for i := range len(a) / 2 {
				x, y := bf16(a[2*i:]), bf16(b[2*i:])
				off, size = off+(x-y)*(x-y), size+x*x
			}
			kind := ""
			switch matrix := strings.HasSuffix(tensor.Name, "proj.weight"); {
			case tensor.Name == "model.embed_tokens.weight":
				kind = style.Embedding
			case tensor.Name == "lm_head.weight":
				kind = style.Output
			case matrix && strings.Contains(tensor.Name, "v_proj"):
				kind = style.V
			case matrix && strings.Contains(tensor.Name, "o_proj"):
				kind = style.Long
			case matrix:
				kind = style.QK
			}
			bound, rounds := most[kind]
			if rms := math.Sqrt(off / size); !rounds || !(rms <= bound) {
				t.Errorf("%s: %s is off by %.4f, %s allows %.4f", name, tensor.Name, rms, kind, bound)
			}
		}
	}
}

func bf16(b []byte) float64 {
	return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
}

// TestGGUFByTensor: tensors that are fetched alone, released and fetched again are the same,
// regardless of earlier loads.
func TestGGUFByTensor(t *testing.T) {
	want := golden(t, "T2")
	path := hosttest.Must(modeltest.WriteGGUF(want, t.TempDir(), "tune", modeltest.LlamaBF16, 2))(t)
	got := hosttest.Must(checkpoint.Open(path))(t)
	defer got.Close()
	stopped, stop := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	stop(enough)
	if err := got.Load(stopped, 0, nil, nil); !errors.Is(err, enough) {
		t.Errorf("loading that was cancelled gives %v", err)
	}
	for round := range 2 {
		for _, tensor := range want.Spec.Tensors() {
			hosttest.Check(t, got.Fetch(tensor.Name))
			if !bytes.Equal(dataOf(t, got, tensor.Name), dataOf(t, want, tensor.Name)) {
				t.Errorf("round %d: tensor %s differs", round, tensor.Name)
			}
			if !got.Release(tensor.Name) {
				t.Errorf("tensor %s is not the checkpoint's own", tensor.Name)
			}
		}
		hosttest.Check(t, got.Load(t.Context(), 1<<50, nil, nil))
	}
	for _, tensor := range want.Spec.Tensors() {
		if !bytes.Equal(dataOf(t, got, tensor.Name), dataOf(t, want, tensor.Name)) {
			t.Errorf("loaded after that, tensor %s differs", tensor.Name)
		}
	}
	if want.Release("lm_head.weight") || got.Release("no such tensor") {
		t.Error("what is not the checkpoint's own was given back")
	}
}

// TestGGUFWritesNothing: no file appears in the cache folder, and a truncated file is an error, not
// a crash.
func TestGGUFWritesNothing(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	path := hosttest.Must(modeltest.WriteGGUF(golden(t, "T2"), t.TempDir(), "tune",
		modeltest.LlamaBF16, 1))(t)
	openGGUF(t, path)
	if left, err := os.ReadDir(cache); err != nil || len(left) != 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
	if runtime.GOOS != "linux" {
		return
	}
	c := hosttest.Must(checkpoint.Open(path))(t)
	defer c.Close()
	hosttest.Check(t, os.Truncate(path, 16<<10))
	if err := c.Load(t.Context(), 0, nil, nil); err == nil ||
		!strings.Contains(err.Error(),
			"tune.gguf: the disk does not give it, or the file became shorter") {
		t.Errorf("a file that was cut gives %v", err)
	}
	if head, err := c.Tensor("lm_head.weight"); err == nil || head.Data != nil {
		t.Errorf("a tensor that cannot be read has %d bytes, %v", len(head.Data), err)
	}
}

// TestGGUFRefuses: missing and extra parts of a file are reported before a byte is written.
func TestGGUFRefuses(t *testing.T) {
	want := golden(t, "T2")
	path := hosttest.Must(modeltest.WriteGGUF(want, t.TempDir(), "tune", modeltest.LlamaBF16, 1))(t)
	text := hosttest.Must(os.ReadFile(path))(t)
	replace := func(old, new string) []byte {
		if len(old) != len(new) || !bytes.Contains(text, []byte(old)) {
			t.Fatalf("%q cannot become %q", old, new)
		}
		return bytes.Replace(text, []byte(old), []byte(new), 1)
	}
	for _, test := range []struct {
		name string
		text []byte
		want string
	}{
		{"architecture", replace("gpt-oss", "gemma3n"),
			"a.gguf is a model of architecture gemma3n, and ossrun runs gpt-oss only"},
		{"renamed tensor", replace("blk.1.attn_k.weight", "blk.1.attn_x.weight"),
			"a.gguf lacks the tensor that model.layers.1.self_attn.k_proj.weight is made from"},
		{"renamed key", replace("gpt-oss.block_count", "gpt-oss.block_kount"),
			"a.gguf, read as a Hugging Face checkpoint: config.json: num_hidden_layers is missing"},
		{"cut", text[:len(text)-100], "a.gguf is cut short: tensor output.weight needs bytes"},
		{"cut header", text[:300],
			"a.gguf is cut short: its header needs more than the 300 bytes of the file"},
		{"another type", replace("\x01\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
			"\x01\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00\x00\x13\x00\x00\x00"),
			" in IQ1_S, which ossrun does not read: take a file in F32, F16, "},
	} {
		path := filepath.Join(t.TempDir(), "a.gguf")
		hosttest.Check(t, os.WriteFile(path, test.text, 0o644))
		_, err := gguf.ReadModel(path, "a")
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s gives %v, want %s", test.name, err, test.want)
		}
	}
}

// TestOriginalLayout: the original/ layout is read in place, with the bytes of the other one.
func TestOriginalLayout(t *testing.T) {
	for _, name := range []string{"T1", "T2"} {
		want := golden(t, name)
		root := t.TempDir()
		hosttest.Check(t, modeltest.WriteOriginal(want, filepath.Join(root, "original")))
		for _, folder := range []string{root, filepath.Join(root, "original")} {
			found, err := checkpoint.Resolve(folder)
			if err != nil || !found.Complete {
				t.Fatalf("%s is found as %+v, %v", folder, found, err)
			}
			got := hosttest.Must(found.Open())(t)
			defer got.Close()
			if !got.Spec.SameShape(want.Spec) {
				t.Errorf("spec\n%+v, want\n%+v", got.Spec, want.Spec)
			}
			for _, tensor := range want.Spec.Tensors() {
				if !bytes.Equal(dataOf(t, got, tensor.Name), dataOf(t, want, tensor.Name)) {
					t.Errorf("tensor %s differs", tensor.Name)
				}
			}
		}
	}
}
