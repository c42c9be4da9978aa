package models_test

// GGUF files as llama.cpp and ollama write them, made from the golden checkpoints, must come back as those checkpoints byte for byte: then the
// logits are theirs too (ui/cli holds a converted one to the goldens once more).

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/models/store"
)

// golden opens T1 or T2.
func golden(t *testing.T, name string) *models.Checkpoint {
	t.Helper()
	c, err := models.Open(filepath.Join("..", "testdata", "model", name, "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// convert resolves a GGUF file, converts it and opens the result.
func convert(t *testing.T, path string) *models.Checkpoint {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	found, err := models.Resolve(path)
	if err != nil {
		t.Fatal(err)
	}
	if found.Convert == nil || found.Convert.Done {
		t.Fatalf("%s is found as %+v", path, found)
	}
	last, reports := int64(0), 0
	if err := found.Convert.Run(t.Context(), func(done, total int64) {
		if done < last || done > total {
			t.Errorf("progress goes from %d to %d of %d", last, done, total)
		}
		last = done
		reports++
	}); err != nil {
		t.Fatal(err)
	}
	if last != found.Convert.Bytes || reports == 0 {
		t.Errorf("%d of %d bytes were reported at the end", last, found.Convert.Bytes)
	}
	again, err := models.Resolve(path)
	if err != nil || again.Convert != nil || again.Path != found.Path {
		t.Fatalf("the converted file is found as %+v, %v", again, err)
	}
	c, err := again.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestConvertGGUF(t *testing.T) {
	for _, test := range []struct {
		model string
		style modeltest.GGUFStyle
		files int
	}{{"T1", modeltest.LlamaBF16, 1}, {"T1", modeltest.Ollama, 1}, {"T2", modeltest.LlamaBF16, 3}, {"T2", modeltest.Ollama, 2}} {
		want := golden(t, test.model)
		path, err := modeltest.WriteGGUF(want, t.TempDir(), "tune", test.style, test.files)
		if err != nil {
			t.Fatal(err)
		}
		got := convert(t, path)
		if !got.Spec.SameShape(want.Spec) || got.Spec.Name != "tune" {
			t.Errorf("%+v: spec\n%+v, want\n%+v", test, got.Spec, want.Spec)
		}
		if len(got.Spec.EOS) != len(want.Spec.EOS) {
			t.Errorf("%+v: a turn ends with %v, want %v", test, got.Spec.EOS, want.Spec.EOS)
		}
		for _, tensor := range want.Spec.Tensors() {
			if !bytes.Equal(got.Tensor(tensor.Name).Data, want.Tensor(tensor.Name).Data) {
				t.Errorf("%+v: tensor %s differs", test, tensor.Name)
			}
		}
	}
}

// TestConvertQ8: values of Q8_0 blocks become the nearest bfloat16, and everything else stays.
func TestConvertQ8(t *testing.T) {
	want := golden(t, "T1")
	path, err := modeltest.WriteGGUF(want, t.TempDir(), "tune", modeltest.LlamaQ8, 1)
	if err != nil {
		t.Fatal(err)
	}
	got := convert(t, path)
	set, err := gguf.OpenSet(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	quantised := map[string]string{"model.embed_tokens.weight": "token_embd.weight", "model.layers.3.self_attn.k_proj.weight": "blk.3.attn_k.weight"}
	for _, tensor := range want.Spec.Tensors() {
		a, b := got.Tensor(tensor.Name).Data, want.Tensor(tensor.Name).Data
		source, ok := quantised[tensor.Name]
		if !ok {
			if matrix := len(tensor.Shape) == 2 && strings.HasSuffix(tensor.Name, ".weight") && !strings.Contains(tensor.Name, "router"); !matrix && !bytes.Equal(a, b) {
				t.Errorf("tensor %s differs", tensor.Name)
			}
			continue
		}
		from := text[set.Tensors[source].Begin:set.Tensors[source].End]
		for i := range len(a) / 2 {
			block := from[i/32*34:]
			exponent := int(binary.LittleEndian.Uint16(block)>>10) - 15 // the writer's scales are powers of two, so no value is rounded
			exact := math.Ldexp(float64(int8(block[2+i%32])), exponent)
			if v := math.Float32frombits(uint32(binary.LittleEndian.Uint16(a[2*i:])) << 16); float64(v) != exact {
				t.Fatalf("%s: value %d is %v, the file has %v", tensor.Name, i, v, exact)
			}
		}
	}
}

func TestConvertAgain(t *testing.T) {
	want := golden(t, "T2")
	path, err := modeltest.WriteGGUF(want, t.TempDir(), "tune", modeltest.LlamaBF16, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	plan := func() *models.Conversion {
		found, err := models.PlanConversion(path, "tune")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	first := plan()
	stopped, stop := context.WithCancelCause(t.Context())
	stop(errors.New("enough"))
	if err := first.Run(stopped, nil); err == nil || first.Done {
		t.Errorf("a conversion that was cancelled gives %v", err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(first.Folder)), "*"))
	if err != nil || len(left) != 1 || !strings.HasSuffix(left[0], ".lock") {
		t.Errorf("it leaves %v, %v", left, err)
	}
	// Two at once: one waits for the other, and then there is nothing to do.
	second := plan()
	ended := make(chan error, 2)
	for _, c := range []*models.Conversion{first, second} {
		go func() { ended <- c.Run(t.Context(), nil) }()
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if !first.Done || !second.Done || first.Folder != second.Folder {
		t.Errorf("%v in %s, %v in %s", first.Done, first.Folder, second.Done, second.Folder)
	}
	// A file that changed is another one.
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	if changed := plan(); changed.Done || changed.Folder == first.Folder {
		t.Errorf("a changed file is taken for converted in %s", changed.Folder)
	}
}

// TestConvertRefuses: what a file lacks or has too much is said before a byte is written.
func TestConvertRefuses(t *testing.T) {
	want := golden(t, "T2")
	path, err := modeltest.WriteGGUF(want, t.TempDir(), "tune", modeltest.LlamaBF16, 1)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
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
		{"architecture", replace("gpt-oss", "gemma3n"), "a.gguf: general.architecture is gemma3n: ossrun runs gpt-oss only"},
		{"renamed tensor", replace("blk.1.attn_k.weight", "blk.1.attn_x.weight"), "a.gguf lacks the tensor that model.layers.1.self_attn.k_proj.weight is made from"},
		{"renamed key", replace("gpt-oss.block_count", "gpt-oss.block_kount"), "a.gguf, read as a Hugging Face checkpoint: config.json: num_hidden_layers is missing"},
		{"cut", text[:len(text)-100], "a.gguf is cut short: tensor output.weight needs bytes"},
		{"cut header", text[:300], "a.gguf is cut short: its header needs more than the 300 bytes of the file"},
		{"another type", replace("\x01\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "\x01\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00\x00\x0c\x00\x00\x00"),
			" in Q4_K: gpt-oss files have F32, F16, BF16, Q8_0 and MXFP4"},
	} {
		path := filepath.Join(t.TempDir(), "a.gguf")
		if err := os.WriteFile(path, test.text, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := models.PlanConversion(path, "a")
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
		if err := modeltest.WriteOriginal(want, filepath.Join(root, "original")); err != nil {
			t.Fatal(err)
		}
		for _, folder := range []string{root, filepath.Join(root, "original")} {
			found, err := models.Resolve(folder)
			if err != nil || !found.Complete {
				t.Fatalf("%s is found as %+v, %v", folder, found, err)
			}
			got, err := found.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			if !got.Spec.SameShape(want.Spec) {
				t.Errorf("spec\n%+v, want\n%+v", got.Spec, want.Spec)
			}
			for _, tensor := range want.Spec.Tensors() {
				if !bytes.Equal(got.Tensor(tensor.Name).Data, want.Tensor(tensor.Name).Data) {
					t.Errorf("tensor %s differs", tensor.Name)
				}
			}
		}
	}
}

// TestRemoveConverted: a conversion that is in use stays, and what it was made from stays always.
func TestRemoveConverted(t *testing.T) {
	path, err := modeltest.WriteGGUF(golden(t, "T2"), t.TempDir(), "tune", modeltest.LlamaBF16, 1)
	if err != nil {
		t.Fatal(err)
	}
	open := convert(t, path)
	list, err := models.ListConverted()
	if err != nil || len(list) != 1 || list[0].Folder != open.Path || list[0].Source != path || list[0].Rounded != 0 {
		t.Fatalf("converted: %+v, %v", list, err)
	}
	c, ok, err := models.FindConverted(path)
	if err != nil || !ok || c.Folder != open.Path {
		t.Fatalf("%s was converted to %+v, %v, %v", path, c, ok, err)
	}
	var used *store.InUseError
	if _, err := c.Remove(); !errors.As(err, &used) {
		t.Errorf("deleting weights in use gives %v", err)
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	if freed, err := c.Remove(); err != nil || freed < open.Bytes() {
		t.Errorf("%d bytes are freed, %v", freed, err)
	}
	if _, ok, err := models.FindConverted(path); ok || err != nil {
		t.Errorf("after that it is converted: %v, %v", ok, err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the GGUF file: %v", err)
	}
}
