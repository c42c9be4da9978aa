package convert

// Adapters on experts, against what PEFT's merge_and_unload makes of T1 (models/lora/testdata).

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/models/safetensors"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func adapter(t *testing.T, text string) lora.Ref {
	t.Helper()
	return hosttest.Must(lora.Find(filepath.Join("..", "lora", "testdata", text)))(t)
}

// TestExpertsArePEFTs: before rounding, experts are PEFT's to the last bits of float32, for every
// form of the base.
func TestExpertsArePEFTs(t *testing.T) {
	_, released := goldenModel(t, "T1")
	merged := hosttest.Must(safetensors.Open(filepath.Join("..", "lora", "testdata", "experts",
		"merged.safetensors")))(t)
	defer merged.Close()
	base, _ := goldenModel(t, "T1")
	original, wide := t.TempDir(), t.TempDir()
	hosttest.Check(t, errors.Join(modeltest.WriteOriginal(base, original),
		modeltest.WriteOriginal16(base, wide)))
	for name, path := range map[string]string{"MXFP4": released, "16 bits": twin(t, "T1", 2),
		"OpenAI's": original, "OpenAI's in 16 bits": wide} {
		from := hosttest.Must(open(disk(path), adapter(t, "experts")))(t)
		defer from.Close()
		for i := range merged.Header.Tensors {
			want := merged.Tensor(i)
			var layer, expert int
			var matrix string
			hosttest.Must(fmt.Sscanf(strings.ReplaceAll(want.Name, ".", " "), "%d %d %s", &layer,
				&expert, &matrix))(t)
			in, out := want.Shape[0]*8, want.Shape[1]
			got := make([]float32, in*out)
			if err := from.Expert(fmt.Sprintf("model.layers.%d.mlp.experts.%s", layer, matrix),
				expert, got); err != nil {
				t.Fatal(err)
			}
			for row := range want.Shape[0] {
				for o := range out {
					v := math.Float32frombits(binary.LittleEndian.Uint32(want.Data[4*(row*out+o):]))
					d := math.Abs(float64(got[o*in+row*8] - v))
					if d > 1e-6*math.Abs(float64(v))+1e-9 {
						t.Fatalf("%s: %s [%d, %d] is %v, PEFT's is %v", name, want.Name, row*8, o,
							got[o*in+row*8], v)
					}
				}
			}
		}
	}
}

// TestExpertsAsModules: the same products as pairs per expert, as saved by unsloth, give the same
// numbers.
func TestExpertsAsModules(t *testing.T) {
	_, released := goldenModel(t, "T1")
	together := adapter(t, "experts")
	file := hosttest.Must(safetensors.Open(filepath.Join(together.Path, lora.WeightsName)))(t)
	defer file.Close()
	const experts, size = 8, 2 // bytes of a number
	a := modeltest.Adapter{Config: map[string]any{"peft_type": "LORA", "r": 2, "lora_alpha": 6,
		"rank_pattern":  map[string]any{`down_projs\.\d+`: 3},
		"alpha_pattern": map[string]any{`down_projs\.\d+`: 4}}}
	for i := range file.Header.Tensors {
		tensor := file.Tensor(i)
		module, rest, ok := strings.Cut(tensor.Name, ".mlp.experts.")
		if !ok {
			continue
		}
		matrix, end := "down_projs", rest
		if nested, is := strings.CutPrefix(rest, "base_layer."); is {
			matrix, end = "gate_up_projs", nested
		}
		for e := range experts {
			shape := []int{tensor.Shape[0] / experts, tensor.Shape[1]}
			data := tensor.Data[e*len(tensor.Data)/experts:][:len(tensor.Data)/experts]
			if strings.HasPrefix(end, "lora_B") {
				shape, data = []int{tensor.Shape[0], tensor.Shape[1] / experts}, nil
				for at := e; at < tensor.Shape[0]*tensor.Shape[1]; at += experts {
					data = append(data, tensor.Data[at*size:][:size]...)
				}
			}
			name := fmt.Sprintf("%s.mlp.experts.%s.%d.%s", module, matrix, e, end)
			a.Tensors = append(a.Tensors, modeltest.Tensor{Name: name, Shape: shape, Data: data,
				DType: string(tensor.DType)})
		}
	}
	folder := t.TempDir()
	hosttest.Check(t, a.Write(folder))
	one := hosttest.Must(open(disk(released), together))(t)
	defer one.Close()
	other := hosttest.Must(open(disk(released),
		lora.Ref{Name: "modules", Path: folder, Scale: 1}))(t)
	defer other.Close()
	for _, tensor := range one.spec.Tensors() {
		matrix, is := strings.CutSuffix(tensor.Name, "_blocks")
		for e := range experts {
			if !is {
				break
			}
			x := make([]float32, tensor.Bytes()*2/experts)
			y := slices.Clone(x)
			hosttest.Check(t, errors.Join(one.Expert(matrix, e, x), other.Expert(matrix, e, y)))
			if !slices.Equal(x, y) {
				t.Fatalf("expert %d of %s differs", e, matrix)
			}
		}
	}
}

// TestImportWithAdapters: dense weights are those of an adapter added at load, unchanged experts
// come back unchanged, and another scale is another import.
func TestImportWithAdapters(t *testing.T) {
	base, released := goldenModel(t, "T1")
	out := filepath.Join(t.TempDir(), "out")
	if _, err := Run(t.Context(), released, Options{Out: out}); err == nil ||
		!strings.Contains(err.Error(), "needs no import") {
		t.Fatalf("without an adapter: %v", err)
	}
	r := hosttest.Must(Run(t.Context(), released,
		Options{Out: out, Adapters: []lora.Ref{adapter(t, "patterns")}}))(t)
	for layer, loss := range r.Layers {
		if loss.Exact != loss.Blocks {
			t.Errorf("layer %d: %+v", layer, loss)
		}
	}
	got := hosttest.Must(checkpoint.Open(out))(t)
	defer got.Close()
	want, err := checkpoint.Open(released)
	hosttest.Check(t, err)
	defer want.Close()
	hosttest.Check(t, want.Adapt([]lora.Ref{adapter(t, "patterns")}))
	changed := 0
	for _, tensor := range base.Spec.Tensors() {
		a, b := dataOf(t, want, tensor.Name), dataOf(t, got, tensor.Name)
		if tensor.DType == models.BF16 && string(a) != string(b) {
			t.Errorf("%s differs", tensor.Name)
		}
		if string(b) != string(dataOf(t, base, tensor.Name)) {
			changed++
		}
	}
	if changed == 0 {
		t.Error("the adapter changed nothing")
	}

	out = filepath.Join(t.TempDir(), "experts")
	r, err = Run(t.Context(), released, Options{Out: out,
		Adapters: []lora.Ref{adapter(t, "experts")}})
	if err != nil || r.Layers[0].Exact == r.Layers[0].Blocks || r.Layers[0].Relative() > 0.2 {
		t.Errorf("%+v, %v", r.Layers, err)
	}
	whole, err := os.ReadFile(filepath.Join(out, checkpoint.ImportRecord))
	if err != nil || !strings.Contains(string(whole), "experts:1") {
		t.Errorf("it leaves %s, %v", whole, err)
	}
	none := adapter(t, "experts:0")
	out = filepath.Join(t.TempDir(), "none")
	r, err = Run(t.Context(), released, Options{Out: out, Adapters: []lora.Ref{none}})
	if err != nil || r.Layers[0].Exact != r.Layers[0].Blocks {
		t.Errorf("none of it: %+v, %v", r.Layers, err)
	}
}

// TestWrongExperts: a pair that fits no matrix is refused before anything is written.
func TestWrongExperts(t *testing.T) {
	_, released := goldenModel(t, "T1")
	spec := modeltest.Tiny()
	for want, change := range map[string]func(a *modeltest.Adapter){
		"the pair of [4 64] and [128 4] fits no matrix of model.layers.0.mlp.experts in checkpoint": func(
			a *modeltest.Adapter) {
		},
		"does not hold a pair of lora_A and lora_B for model.layers.0.mlp.experts (0.weight)": func(
			a *modeltest.Adapter) {
			a.Tensors = a.Tensors[:1]
		},
		"fits no matrix of model.layers.0.mlp.experts in": func(a *modeltest.Adapter) {
			for i := range a.Tensors {
				a.Tensors[i].Name = strings.Replace(a.Tensors[i].Name, "mlp.experts.",
					"mlp.experts.down_projs.99.", 1)
			}
		},
		"and [128 4] fits no matrix of model.layers.0.mlp.experts": func(a *modeltest.Adapter) {
			for i := range a.Tensors {
				a.Tensors[i].Name = strings.Replace(a.Tensors[i].Name, "mlp.experts.",
					"mlp.experts.gate_up_projs.x.", 1)
			}
		},
	} {
		a := modeltest.NewAdapter(spec, "layers.0.self_attn.q_proj.weight")
		for i := range a.Tensors {
			a.Tensors[i].Name = strings.Replace(a.Tensors[i].Name, "self_attn.q_proj", "mlp.experts", 1)
		}
		change(a)
		folder, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
		hosttest.Check(t, a.Write(folder))
		_, err := Run(t.Context(), released, Options{Out: out, Adapters: []lora.Ref{
			{Name: "x", Path: folder, Scale: 1}}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Error("something was written")
		}
	}
}
