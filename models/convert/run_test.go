package convert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func goldenModel(t *testing.T, name string) (*checkpoint.Checkpoint, string) {
	t.Helper()
	path := filepath.Join("..", "..", "testdata", "model", name, "checkpoint")
	c := hosttest.Must(checkpoint.Open(path))(t)
	t.Cleanup(func() { c.Close() })
	return c, path
}

// dataOf returns the bytes of a tensor.
func dataOf(t *testing.T, c *checkpoint.Checkpoint, name string) []byte {
	t.Helper()
	return hosttest.Must(c.Tensor(name))(t).Data
}

// twin writes a golden checkpoint as a merged export in 16 bits: experts as bfloat16, transposed,
// no quantization_config.
func twin(t *testing.T, name string, files int) string {
	t.Helper()
	c, path := goldenModel(t, name)
	var config map[string]any
	text, err := os.ReadFile(filepath.Join(path, "config.json"))
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	hosttest.Check(t, err)
	w := hosttest.Must(modeltest.Merged(c, config, files))(t)
	folder := filepath.Join(t.TempDir(), name)
	hosttest.Check(t, w.Write(folder))
	return folder
}

// same compares a checkpoint with the golden one, tensor by tensor.
func same(t *testing.T, path, name string) {
	t.Helper()
	want, _ := goldenModel(t, name)
	got := hosttest.Must(checkpoint.Open(path))(t)
	defer got.Close()
	if !got.Spec.SameShape(want.Spec) {
		t.Errorf("spec\n%+v, want\n%+v", got.Spec, want.Spec)
	}
	for _, tensor := range want.Spec.Tensors() {
		a := hosttest.Must(want.Tensor(tensor.Name))(t)
		b := hosttest.Must(got.Tensor(tensor.Name))(t)
		matrix, blocks := strings.CutSuffix(tensor.Name, "_blocks")
		switch {
		case strings.HasSuffix(tensor.Name, "_scales"):
		case !blocks && !bytes.Equal(a.Data, b.Data):
			t.Errorf("%s: tensor %s differs", name, tensor.Name)
		case blocks:
			x := hosttest.Must(want.Tensor(matrix + "_scales"))(t)
			y := hosttest.Must(got.Tensor(matrix + "_scales"))(t)
			if !bytes.Equal(modeltest.Dequantised(a, x), modeltest.Dequantised(b, y)) {
				t.Errorf("%s: the numbers of %s differ", name, matrix)
			}
			for i := range x.Data {
				one, other := a.Data[16*i:][:16], b.Data[16*i:][:16]
				if (x.Data[i] != y.Data[i] || !bytes.Equal(one, other)) && largest(one) >= 6 {
					t.Fatalf("%s: block %d of %s is %d %x, want %d %x", name, i, matrix, y.Data[i],
						other, x.Data[i], one)
				}
			}
		}
	}
	if left, err := filepath.Glob(filepath.Join(path, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// largest is the largest code of a block without its sign: 6 is the number 4.
func largest(block []byte) (most byte) {
	for _, b := range block {
		most = max(most, b&7, b>>4&7)
	}
	return most
}

// TestTwin: a 16-bit export of unchanged experts gives the released numbers, and reports that; also
// the same bytes, except for blocks with a twin.
func TestTwin(t *testing.T) {
	for name, files := range map[string]int{"T1": 1, "T2": 3} {
		out := filepath.Join(t.TempDir(), "out")
		r := hosttest.Must(Run(t.Context(), twin(t, name, files), Options{Out: out}))(t)
		for layer, loss := range r.Layers {
			if loss.Blocks == 0 || loss.Exact != loss.Blocks || loss.Error != 0 {
				t.Errorf("%s: layer %d: %+v", name, layer, loss)
			}
		}
		same(t, out, name)
	}
}

// TestOriginal: the same for OpenAI's layout, alone and in the folder above, with its tokenizer;
// opening it directly names the import.
func TestOriginal(t *testing.T) {
	for name, inside := range map[string]string{"T1": "", "T2": "original"} {
		c, _ := goldenModel(t, name)
		folder := t.TempDir()
		hosttest.Check(t, modeltest.WriteOriginal16(c, filepath.Join(folder, inside)))
		hosttest.Check(t, os.WriteFile(filepath.Join(folder, "tokenizer.json"), []byte("{}"),
			0o600))
		if _, err := checkpoint.Open(folder); err == nil || !strings.HasSuffix(err.Error(),
			"tensor block.0.mlp.mlp1_weight is BF16: "+models.DequantisedExperts) {
			t.Errorf("opened as it is, it says %v", err)
		}
		out := filepath.Join(t.TempDir(), "out")
		r := hosttest.Must(Run(t.Context(), folder, Options{Out: out}))(t)
		for layer, loss := range r.Layers {
			if loss.Blocks == 0 || loss.Exact != loss.Blocks {
				t.Errorf("%s: layer %d: %+v", name, layer, loss)
			}
		}
		same(t, out, name)
		if _, err := os.Stat(filepath.Join(out, "tokenizer.json")); err != nil {
			t.Error(err)
		}
	}
}

// TestGGUFExperts: experts that are exact in a GGUF file's type come back as they were; those of
// fewer bits are off by what both roundings lose.
func TestGGUFExperts(t *testing.T) {
	want, _ := goldenModel(t, "T1")
	for kind, most := range map[string]float64{"BF16": 0, "F16": 0, "Q8_0": 0.02, "Q4_1": 0.12,
		"IQ4_NL": 0.12, "Q5_0": 0.12} {
		t.Run(kind, func(t *testing.T) {
			style := modeltest.LlamaBF16
			style.Experts = kind
			path := hosttest.Must(modeltest.WriteGGUF(want, t.TempDir(), "tune", style, 2))(t)
			if _, err := checkpoint.Resolve(path); err == nil || !strings.Contains(err.Error(),
				"ossrun import") {
				t.Errorf("opened as it is, it says %v", err)
			}
			out := filepath.Join(t.TempDir(), "out")
			r := hosttest.Must(Run(t.Context(), path, Options{Out: out}))(t)
			for layer, loss := range r.Layers {
				if off := loss.Relative(); off > most || loss.Worst < off {
					t.Errorf("layer %d: %.4f, %+v", layer, off, loss)
				}
			}
			if kind == "BF16" { // half precision does not reach as far down
				same(t, out, "T1")
			}
		})
	}
}

// TestResumed: whenever it is stopped, and whatever was deleted or cut meanwhile, the next run goes
// on, and the bytes are the same.
func TestResumed(t *testing.T) {
	source, out := twin(t, "T2", 2), filepath.Join(t.TempDir(), "out")
	enough := errors.New("enough")
	stopped, cut := 0, false
	for i := range 60 {
		ctx, stop := context.WithCancelCause(t.Context())
		calls := 0
		onPiece = func() {
			if calls++; calls > i%7*30 {
				stop(enough)
			}
		}
		_, err := Run(ctx, source, Options{Out: out})
		onPiece = func() {}
		stop(nil)
		if err == nil {
			break
		}
		if !errors.Is(err, enough) {
			t.Fatal(err)
		}
		stopped++
		whole, _ := filepath.Glob(filepath.Join(out, "model-*.safetensors"))
		if len(whole) > 0 && !cut { // as a disk that loses what was not written out
			cut = true
			hosttest.Check(t, os.Truncate(whole[0], 100))
		}
	}
	if stopped < 4 || !cut {
		t.Errorf("it was stopped %d times, a file cut: %v", stopped, cut)
	}
	same(t, out, "T2")
	// over a whole one: what the disk has changed is written again, and a checkpoint of others is
	// left alone
	part := hosttest.Must(filepath.Glob(filepath.Join(out, "model-00002-*")))(t)[0]
	text := hosttest.Must(os.ReadFile(part))(t)
	text[len(text)-1] ^= 1
	hosttest.Check(t, os.WriteFile(part, text, 0o644))
	hosttest.Must(Run(t.Context(), source, Options{Out: out}))(t)
	same(t, out, "T2")
	hosttest.Check(t, os.Remove(filepath.Join(out, stateName)))
	if _, err := Run(t.Context(), source, Options{Out: out}); err == nil ||
		!strings.Contains(err.Error(), "holds a checkpoint already") {
		t.Errorf("over another's: %v", err)
	}
}

// TestRefused: what cannot be imported is said before anything is written.
func TestRefused(t *testing.T) {
	source := twin(t, "T1", 1)
	config := hosttest.Must(os.ReadFile(filepath.Join(source, "config.json")))(t)
	with := func(old, new string) []byte {
		return bytes.Replace(config, []byte(old), []byte(new), 1)
	}
	_, released := goldenModel(t, "T1")
	for name, x := range map[string]struct {
		path   string
		config []byte
		want   string
	}{
		"bitsandbytes": {"", with(`{`, `{"quantization_config": {"quant_method": "bitsandbytes"},`),
			"bitsandbytes' 4 bits"},
		"another model": {"", with("gpt_oss", "llama"), "model_type is llama"},
		"another shape": {"", with(`"hidden_size": 128`, `"hidden_size": 160`), "has shape"},
		"MXFP4":         {released, nil, "needs no import"},
		"a text":        {filepath.Join(source, "config.json"), nil, "neither a folder"},
		"an adapter":    {filepath.Join("..", "lora", "testdata", "experts"), nil, "experts holds a LoRA adapter, not a model"},
		"nothing":       {t.TempDir(), nil, "is an empty folder"},
	} {
		t.Run(name, func(t *testing.T) {
			path := x.path
			if path == "" {
				path = source
				hosttest.Check(t, os.WriteFile(filepath.Join(path, "config.json"), x.config, 0o600))
			}
			out := filepath.Join(t.TempDir(), "out")
			_, err := Run(t.Context(), path, Options{Out: out})
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v, want %s", err, x.want)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("something was written")
			}
		})
	}
}
