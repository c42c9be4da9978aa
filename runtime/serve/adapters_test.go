package serve

// Nothing derived from a model with an adapter is its base's: the 8-bit copy on the disk, stored KV
// pages, and the entry among the loaded models.

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// denseAdapter writes one for denseModel's shape; it must be written before that.
func denseAdapter(t *testing.T, endings ...string) string {
	t.Helper()
	s := models.Spec20B()
	s.Layers, s.Hidden, s.Experts = 2, 64, 4
	folder := filepath.Join(t.TempDir(), "tune")
	if len(endings) == 0 {
		endings = []string{"q_proj.weight", "router.weight"}
	}
	hosttest.Check(t, modeltest.NewAdapter(s, endings...).Write(folder))
	return folder
}

// TestAdapterHasItsOwnCopy: a base and its adapted model share a folder of 8-bit copies, and each
// answers from its own, at the first start and at later ones.
func TestAdapterHasItsOwnCopy(t *testing.T) {
	folder := denseAdapter(t)
	base, cache := denseModel(t), filepath.Join(t.TempDir(), "dense")
	adapted := hosttest.Must(base.With("", folder))(t)
	if adapted.Name != "it+tune" || keyOf(adapted) == keyOf(base) {
		t.Errorf("it is called %s, and kept as %s", adapted.Name, keyOf(adapted))
	}
	asked := func(found checkpoint.Model, dense string) []float32 {
		m, _ := denseModels(t, found, dense, cache)
		list := answered(t, m)
		if err, lost := m.Close(); err != nil || lost != nil {
			t.Fatal(err, lost)
		}
		return list
	}
	first := map[string][]float32{}
	for _, dense := range []string{engine.DenseBF16, engine.DenseQ8} {
		first["base "+dense] = asked(base, dense)
		first["adapted "+dense] = asked(adapted, dense)
	}
	for name, list := range first {
		for other, its := range first {
			if name != other && slices.Equal(list, its) {
				t.Errorf("%s and %s answer alike", name, other)
			}
		}
	}
	copies, _ := filepath.Glob(filepath.Join(cache, "*.q8"))
	records, _ := filepath.Glob(filepath.Join(cache, "*.source"))
	if len(copies) != 2 || len(records) != 2 {
		t.Fatalf("%q, %q", copies, records)
	}
	for name, found := range map[string]checkpoint.Model{"base": base, "adapted": adapted} {
		if !slices.Equal(asked(found, engine.DenseQ8), first[name+" "+engine.DenseQ8]) {
			t.Errorf("a later start of %s answers otherwise", name)
		}
	}
	// made after the first answers, as with the default type
	cache = filepath.Join(t.TempDir(), "behind")
	m, said := denseModels(t, adapted, "", cache)
	if !slices.Equal(answered(t, m), first["adapted "+engine.DenseBF16]) {
		t.Error("the first answer is not that of the merged weights")
	}
	heard(t, said, "has 8-bit dense weights now")
	if !slices.Equal(answered(t, m), first["adapted "+engine.DenseQ8]) {
		t.Error("behind the takeover the answer is not that of the merged weights' copy")
	}
}

// TestAdaptersAreOneEngine: a base and two adapters are loaded once, with copies only of those that
// change dense weights. Each answers as it does alone, with either type and when the copies take
// over.
func TestAdaptersAreOneEngine(t *testing.T) {
	all, router := denseAdapter(t), denseAdapter(t, "router.weight")
	base := denseModel(t)
	list := []checkpoint.Model{base}
	for name, folder := range map[string]string{"all": all, "router": router} {
		list = append(list, hosttest.Must(base.With(name, folder))(t))
	}
	want := map[string][]float32{}
	for _, found := range list {
		for _, dense := range []string{engine.DenseBF16, engine.DenseQ8} {
			m, _ := denseModels(t, found, dense, filepath.Join(t.TempDir(), "alone"))
			want[found.Name+dense] = answered(t, m)
		}
	}
	check := func(m *Models, dense string) {
		t.Helper()
		for _, found := range list {
			model := hosttest.Must(m.Get(t.Context(), found.Name))(t)
			got := answeredBy(t, model)
			if !slices.Equal(got, want[found.Name+dense]) {
				t.Errorf("%s, %s: %v, and alone %v", found.Name, dense, got,
					want[found.Name+dense])
			}
			for name, other := range want {
				if name != found.Name+dense && slices.Equal(got, other) {
					t.Errorf("%s, %s answers as %s", found.Name, dense, name)
				}
			}
		}
		names, steps := 0, uint64(0)
		for name, st := range m.Stats() {
			if names++; name == "it" {
				steps = st.Steps
			} else if st.Steps > 0 {
				t.Errorf("%s has steps of its own", name)
			}
		}
		if names != len(list) || steps == 0 || len(m.loaded.entries) != 1 {
			t.Errorf("%d names, %d steps, %d engines", names, steps, len(m.loaded.entries))
		}
	}
	for _, dense := range []string{engine.DenseBF16, engine.DenseQ8} {
		m, _ := denseModels(t, base, dense, filepath.Join(t.TempDir(), "asked"), list[1:]...)
		check(m, dense)
	}
	cache := filepath.Join(t.TempDir(), "behind")
	m, said := denseModels(t, base, "", cache, list[1:]...)
	check(m, engine.DenseBF16)
	heard(t, said, "has 8-bit dense weights now")
	check(m, engine.DenseQ8)
	if copies, _ := filepath.Glob(filepath.Join(cache, "*.q8")); len(copies) != 2 {
		t.Errorf("%q", copies)
	}
}

// TestAdapterSharesExperts: next to its base, an adapted model needs no second room for the mapped
// experts; another model does, and so does a GGUF file's, whose weights are in private memory.
func TestAdapterSharesExperts(t *testing.T) {
	path := "../../testdata/model/T1/checkpoint"
	open := func(path string) *Model {
		found := hosttest.Must(checkpoint.Resolve(path))(t)
		c := hosttest.Must(found.Open())(t)
		t.Cleanup(func() { c.Close() })
		return &Model{ckpt: c, plan: Plan{Total: 1 << 30}}
	}
	base, adapted := open(path), open(path)
	want := int64(0)
	for _, to := range base.ckpt.Spec.Tensors() {
		if to.DType == models.U8 || len(to.Shape) == 2 && to.Shape[0] == base.ckpt.Spec.Experts &&
			to.Name[len(to.Name)-4:] == "bias" {
			want += to.Bytes()
		}
	}
	if got := adapted.sharedBytes(base); got != want || want == 0 {
		t.Errorf("%d bytes are shared, want %d", got, want)
	}
	base.plan.OnDisk = want / 4
	if got := adapted.sharedBytes(base); got != want-want/4 {
		t.Errorf("%d bytes of experts in memory are shared", got)
	}
	file := hosttest.Must(modeltest.WriteGGUF(base.ckpt, t.TempDir(), "t1", modeltest.LlamaBF16,
		1))(t)
	own := open(file)
	if adapted.sharedBytes(open("../../testdata/model/T2/checkpoint")) != 0 || own.sharedBytes(own) != 0 {
		t.Error("memory of another model is shared")
	}
}

// TestAdapterNames: a name that another model has is refused, so that no request gets the wrong
// one.
func TestAdapterNames(t *testing.T) {
	folder := denseAdapter(t)
	found := checkpoint.Model{Name: "it", Path: "/it"}
	for _, test := range []struct {
		given []string
		want  string // of the model that answers by default, and the others; or the error
	}{
		{[]string{folder}, "it+tune"},
		{[]string{"a=" + folder, "b=" + folder + ":0.5"}, "it a b"},
		{[]string{folder, "a=" + folder}, "it+tune a"},
		{[]string{"20b=" + folder}, "--lora 20b="},
		{[]string{"IT=" + folder}, "--lora IT="},
		{[]string{"served=" + folder}, "--lora served="},
		{[]string{"a=" + folder, "a=" + folder}, "--lora a="},
		{[]string{"a=/nowhere"}, "there is no folder /nowhere"},
	} {
		m := &Models{options: Options{Adapters: test.given, ServedNames: []string{"served"}}}
		got, err := m.adapt(found)
		names := got.Name
		for _, adapter := range m.adapters {
			names += " " + adapter.Name
			if len(adapter.Refs) != len(got.Refs)+1 || keyOf(adapter) == keyOf(got) {
				t.Errorf("%q: %s is %v beside %v", test.given, adapter.Name, adapter.Refs,
					got.Refs)
			}
		}
		if err == nil && names != test.want || err != nil && !strings.Contains(err.Error(),
			test.want) {
			t.Errorf("%q gives %q, %v", test.given, names, err)
		}
	}
}

// TestAdapterFingerprint: pages of KV that outlive a model are found again by one with the same
// adapters and scales only, even where the tensors that are looked at are the base's.
func TestAdapterFingerprint(t *testing.T) {
	folder := t.TempDir()
	open := func() *checkpoint.Checkpoint {
		c := hosttest.Must(checkpoint.Open("../../testdata/model/T1/checkpoint"))(t)
		t.Cleanup(func() { c.Close() })
		return c
	}
	hosttest.Check(t, modeltest.NewAdapter(open().Spec, "layers.1.self_attn.o_proj.weight").Write(
		folder))
	of := func(refs ...lora.Ref) string {
		c := open()
		hosttest.Check(t, c.Adapt(refs))
		return hosttest.Must(fingerprint(c, engine.Settings{}, false))(t)
	}
	one, half := lora.Ref{Name: "a", Path: folder, Scale: 1}, lora.Ref{Path: folder, Scale: 0.5}
	base, adapted := of(), of(one)
	if adapted == base || of(half) == adapted || of(half) == base || of(one, half) == adapted {
		t.Error("two models have the same pages")
	}
	if of(one) != adapted || of() != base {
		t.Error("the same model has others")
	}
}
