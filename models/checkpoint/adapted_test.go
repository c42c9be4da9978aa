package checkpoint_test

// Checkpoints with LoRA adapters: which tensors are copies, their content, and that their files are
// distinguished. That the numbers are PEFT's is tested with an engine, in runtime/engine/golden.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// adapter writes an adapter for T1 and returns its reference.
func adapter(t *testing.T, name string, endings ...string) lora.Ref {
	t.Helper()
	c := golden(t, "T1")
	folder := filepath.Join(t.TempDir(), name)
	hosttest.Check(t, modeltest.NewAdapter(c.Spec, endings...).Write(folder))
	return hosttest.Must(lora.Find(folder))(t)
}

func adapted(t *testing.T, c *checkpoint.Checkpoint, refs ...lora.Ref) *checkpoint.Checkpoint {
	t.Helper()
	hosttest.Check(t, c.Adapt(refs))
	return c
}

// TestAdapted: a changed tensor is W + 2BA, in bfloat16, for every way to request it; all others
// are the base's own memory, and the base is unchanged.
func TestAdapted(t *testing.T) {
	ref := adapter(t, "one", "q_proj.weight", "router.weight")
	base, c := golden(t, "T1"), adapted(t, golden(t, "T1"), ref)
	changed := 0
	for _, to := range c.Spec.Tensors() {
		was, is := hosttest.Must(base.Tensor(to.Name))(t), hosttest.Must(c.Tensor(to.Name))(t)
		if !strings.HasSuffix(to.Name, "q_proj.weight") &&
			!strings.HasSuffix(to.Name, "router.weight") {
			if !bytes.Equal(was.Data, is.Data) || c.Release(to.Name) {
				t.Errorf("%s is changed", to.Name)
			}
			continue
		}
		changed++
		if want := withAdapter(t, was, ref.Path, 2); !bytes.Equal(is.Data, want) {
			t.Errorf("%s is not W + 2BA", to.Name)
		}
	}
	if changed != 2*c.Spec.Layers {
		t.Errorf("%d tensors are changed", changed)
	}
	// after its release, it is merged again
	const name = "model.layers.0.self_attn.q_proj.weight"
	first := bytes.Clone(dataOf(t, c, name))
	if !c.Release(name) || !bytes.Equal(dataOf(t, c, name), first) {
		t.Error("what was given back is not made again")
	}
	// all at once, except skipped ones
	all, last := adapted(t, golden(t, "T1"), ref), int64(0)
	without := func(name string) bool { return strings.HasSuffix(name, "router.weight") }
	hosttest.Check(t, all.Merge(t.Context(), without, func(done, total int64) {
		if last = done; done > total {
			t.Errorf("%d of %d", done, total)
		}
	}))
	if want := int64(c.Spec.Layers * len(first)); last != want {
		t.Errorf("%d bytes are made, want %d", last, want)
	}
	if !bytes.Equal(dataOf(t, all, name), first) {
		t.Error("made all at once it is another")
	}
}

// withAdapter is W + scale*BA, computed in the plainest way.
func withAdapter(t *testing.T, w models.Tensor, folder string, scale float64) []byte {
	t.Helper()
	held := modeltest.NewAdapter(golden(t, "T1").Spec, "q_proj.weight", "router.weight")
	value := func(data []byte, i int) float64 {
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16))
	}
	find := func(part string) modeltest.Tensor {
		module := strings.TrimSuffix(w.Name, ".weight")
		return held.Tensors[slices.IndexFunc(held.Tensors, func(t modeltest.Tensor) bool {
			return t.Name == "base_model.model."+module+"."+part+".weight"
		})]
	}
	a, b := find("lora_A"), find("lora_B")
	out := make([]byte, len(w.Data))
	rank, in := a.Shape[0], a.Shape[1]
	for i := range len(out) / 2 {
		sum := value(w.Data, i)
		for r := range rank {
			sum += scale * value(b.Data, i/in*rank+r) * value(a.Data, r*in+i%in)
		}
		bits := math.Float32bits(float32(sum))
		binary.LittleEndian.PutUint16(out[2*i:], uint16((bits+0x7fff+bits>>16&1)>>16))
	}
	return out
}

// TestAdaptedLayouts: the same adapter on the same model as a GGUF file and in original/, and on
// the demo in memory.
func TestAdaptedLayouts(t *testing.T) {
	ref := adapter(t, "one", "k_proj.weight", "lm_head.weight")
	want := adapted(t, golden(t, "T1"), ref)
	file := hosttest.Must(modeltest.WriteGGUF(golden(t, "T1"), t.TempDir(), "t1",
		modeltest.LlamaBF16, 1))(t)
	original := t.TempDir()
	hosttest.Check(t, modeltest.WriteOriginal(golden(t, "T1"), original))
	for _, path := range []string{file, original} {
		found, err := checkpoint.Resolve(path)
		if err == nil {
			found, err = found.With("", ref.Path)
		}
		hosttest.Check(t, err)
		if !strings.HasSuffix(found.Name, "+one") {
			t.Errorf("it is called %s", found.Name)
		}
		c := hosttest.Must(found.Open())(t)
		defer c.Close()
		hosttest.Check(t, c.Load(t.Context(), 0, nil, nil))
		for _, to := range want.Spec.Tensors() {
			if !bytes.Equal(dataOf(t, c, to.Name), dataOf(t, want, to.Name)) {
				t.Errorf("%s: %s differs", path, to.Name)
			}
		}
	}
	demo := hosttest.Must(checkpoint.OpenDemo())(t)
	defer demo.Close()
	folder := t.TempDir()
	hosttest.Check(t, modeltest.NewAdapter(demo.Spec, "v_proj.weight").Write(folder))
	before := bytes.Clone(dataOf(t, demo, "model.layers.0.self_attn.v_proj.weight"))
	adapted(t, demo, lora.Ref{Name: "x", Path: folder, Scale: 1})
	if bytes.Equal(dataOf(t, demo, "model.layers.0.self_attn.v_proj.weight"), before) {
		t.Error("the demo is not changed")
	}
}

// TestAdaptedStates: files of an adapted model differ from those of its base, of another scale, or
// of another adapter, opened or only resolved.
func TestAdaptedStates(t *testing.T) {
	one, two := adapter(t, "one", "q_proj.weight"), adapter(t, "two", "k_proj.weight")
	half := one
	half.Scale = 0.5
	seen := map[string]string{}
	found := hosttest.Must(checkpoint.Resolve(golden(t, "T1").Path))(t)
	for name, refs := range map[string][]lora.Ref{"base": nil, "one": {one}, "half": {half},
		"two": {two}, "both": {one, two}} {
		found.Refs = refs
		c := hosttest.Must(found.Open())(t)
		defer c.Close()
		states := c.FileStates().Files
		if !slices.Equal(states, found.FileStates().Files) || len(states) == 0 {
			t.Errorf("%s: %v when it is open, %v when it is found", name, states,
				found.FileStates().Files)
		}
		key := ""
		for _, s := range states {
			key += s.Path + s.Scale + "\n"
		}
		for _, k := range []string{key, c.AdapterIDs} {
			if other, is := seen[k]; is {
				t.Errorf("%s and %s have the same key", name, other)
			}
			seen[k] = name
		}
	}
}

// TestAdapterInTheCache: a downloaded adapter is found by its repository, listed with its base, and
// not deleted while a model uses it.
func TestAdapterInTheCache(t *testing.T) {
	root, c := cache(t), golden(t, "T1")
	repo := store.Repo{Owner: "someone", Name: "style"}
	made := modeltest.NewAdapter(c.Spec, "o_proj.weight")
	made.Config["base_model_name_or_path"] = "openai/gpt-oss-20b"
	hosttest.Check(t, made.Write(filepath.Join(root, repo.Folder(), "snapshots",
		strings.Repeat("a", 40))))
	list, err := checkpoint.Inventory()
	if err != nil || len(list) != 1 || !list[0].Complete || !strings.Contains(list[0].Note,
		"a LoRA adapter for openai/gpt-oss-20b, which --lora hf:someone/style adds") {
		t.Errorf("listed are %+v, %v", list, err)
	}
	ref, err := lora.Find("hf:someone/style:0.5")
	if err != nil || ref.Name != "style" || ref.Scale != 0.5 {
		t.Fatalf("%+v, %v", ref, err)
	}
	if _, err := lora.Find("hf:someone/style@nothing"); err == nil {
		t.Error("a revision that is not there is found")
	}
	adapted(t, c, ref)
	plan := hosttest.Must(store.PlanRemoval(root, repo, ""))(t)
	var busy *store.InUseError
	if err := plan.Run(); !errors.As(err, &busy) {
		t.Errorf("in use, its removal gives %v", err)
	}
	hosttest.Check(t, c.Close())
	if err := plan.Run(); err != nil {
		t.Errorf("closed, its removal gives %v", err)
	}
}
