package serve

// Dense weights of the default type: the released ones first, then the copy's, and never two types
// in one turn.

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/convert"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/openai/porttest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
)

// denseModel is a small model of random weights, in files that count as settled, for which a copy
// is worth it.
func denseModel(t *testing.T) checkpoint.Model {
	t.Helper()
	s := models.Spec20B()
	s.Layers, s.Hidden, s.Intermediate, s.Experts = 2, 64, 32, 4
	folder := filepath.Join(t.TempDir(), "it")
	hosttest.Check(t, modeltest.WriteSynthetic(folder, s, 1, 1))
	found := hosttest.Must(checkpoint.Resolve(folder))(t)
	if len(found.FileStates().Files) == 0 {
		t.Skip("this system does not tell when a file was changed")
	}
	settle(t, found)
	before := minCopySaving
	minCopySaving = 1
	t.Cleanup(func() { minCopySaving = before })
	return found
}

// settle waits until the files of a model count as settled.
func settle(t *testing.T, found checkpoint.Model) {
	t.Helper()
	porttest.Eventually(t, func() (any, bool) {
		states := found.FileStates()
		states.Seen = states.Seen.Add(-time.Second)
		return nil, states.Unsettled() == ""
	})
}

// denseModels serve it, with adapters, on the CPU; said gets the notices.
func denseModels(t *testing.T, found checkpoint.Model, dense, cache string,
	adapters ...checkpoint.Model) (m *Models, said chan string) {
	t.Helper()
	said = make(chan string, 100)
	o := DefaultOptions()
	o.Settings.Device, o.Settings.Dense, o.Settings.DenseCache = "cpu", dense, cache
	o.Settings.MaxModelLen, o.Keep = 1024, KeepOptions{}
	o.Notify = func(line string) { said <- line }
	m = hosttest.Must(New(t.Context(), o))(t)
	t.Cleanup(func() {
		if err, lost := m.Close(); err != nil || lost != nil {
			t.Error(err, lost)
		}
	})
	m.adapters = adapters
	m.Choose(found)
	return m, said
}

// answered are the log probabilities of a text that is continued.
func answered(t *testing.T, m *Models) []float32 { return answeredBy(t, m.First()) }

func answeredBy(t *testing.T, model session.Runner) (list []float32) {
	t.Helper()
	turn := hosttest.Must(model.Start(t.Context(), session.Request{
		Prompt: []int32{100, 2000, 30000}, MaxTokens: 20,
		Params: sample.Params{Logprobs: 0, Seed: 7}}))(t)
	for e, ok := turn.Next(); ok; e, ok = turn.Next() {
		if a, ok := e.(session.Answer); ok {
			for _, l := range a.Logprobs {
				list = append(list, l.Logprob)
			}
		}
	}
	if len(list) == 0 {
		t.Fatalf("%+v", turn.Result())
	}
	return list
}

func denseOf(t *testing.T, m *Models) string {
	t.Helper()
	hosttest.Check(t, m.Ensure(t.Context()))
	return m.loaded.stateOf(keyOf(m.first)).model.(*Model).Dense()
}

// heard waits until a notice contains words.
func heard(t *testing.T, said chan string, words string) {
	t.Helper()
	late := time.After(2 * time.Minute)
	for {
		select {
		case line := <-said:
			if strings.Contains(line, words) {
				return
			}
			t.Logf("also: %s", line)
		case <-late:
			t.Fatalf("nobody says %q", words)
		}
	}
}

// readCopy is the one copy in a cache, and its bytes, once it has taken over.
func readCopy(t *testing.T, said chan string, cache string) (file string, content []byte) {
	t.Helper()
	heard(t, said, "has 8-bit dense weights now")
	made, _ := filepath.Glob(filepath.Join(cache, "*.q8"))
	if len(made) != 1 {
		t.Fatalf("%q", made)
	}
	return made[0], hosttest.Must(os.ReadFile(made[0]))(t)
}

// A first start answers with the released weights, has the copy made, and answers with it from then
// on, as a later start does at once. Each turn is that of one of the two types.
func TestDenseTakenOver(t *testing.T) {
	found, root := denseModel(t), t.TempDir()
	want := map[string][]float32{}
	for _, dense := range []string{engine.DenseBF16, engine.DenseQ8} {
		m, _ := denseModels(t, found, dense, filepath.Join(root, "asked"))
		if got := denseOf(t, m); got != dense {
			t.Fatalf("asked for %s, got %s", dense, got)
		}
		want[dense] = answered(t, m)
	}
	if slices.Equal(want[engine.DenseBF16], want[engine.DenseQ8]) {
		t.Fatal("both types give the same text: this test shows nothing")
	}
	cache := filepath.Join(root, "dense")
	m, said := denseModels(t, found, "", cache)
	// a turn that runs holds the copy and the takeover up
	waiting := hosttest.Must(m.loaded.acquire(t.Context(), keyOf(found), false))(t)
	first := waiting.model.(*Model)
	if first.Dense() != engine.DenseBF16 || !strings.Contains(strings.Join(m.Lines(), "\n"),
		"until their 8-bit copy is made") {
		t.Errorf("%s, %q", first.Dense(), m.Lines())
	}
	if got := answered(t, m); !slices.Equal(got, want[engine.DenseBF16]) {
		t.Error("the first turn is not that of the released weights")
	}
	m.loaded.release(waiting)
	heard(t, said, "has 8-bit dense weights now")
	if got := answered(t, m); !slices.Equal(got, want[engine.DenseQ8]) {
		t.Error("a turn behind the takeover is not that of the copy")
	}
	again, _ := denseModels(t, found, "", cache)
	if got := denseOf(t, again); got != engine.DenseQ8 {
		t.Errorf("the next start has %s", got)
	}
	if got := answered(t, again); !slices.Equal(got, want[engine.DenseQ8]) {
		t.Error("the next start's turn is not that of the copy")
	}
	hosttest.Check(t, os.RemoveAll(cache))
	released, _ := denseModels(t, found, engine.DenseBF16, cache)
	if got := denseOf(t, released); got != engine.DenseBF16 {
		t.Errorf("asked for bf16, got %s", got)
	}
	answered(t, released)
	if _, err := os.Stat(cache); err == nil {
		t.Error("a copy was made that was not to be made")
	}
}

// If the copy cannot be made, the released weights answer, with a notice. A truncated copy is
// ignored and made again.
func TestDenseNoCopy(t *testing.T) {
	found, root := denseModel(t), t.TempDir()
	file := filepath.Join(root, "file")
	hosttest.Check(t, os.WriteFile(file, nil, 0o644))
	m, said := denseModels(t, found, "", filepath.Join(file, "dense"))
	if got := denseOf(t, m); got != engine.DenseBF16 {
		t.Errorf("without a folder: %s", got)
	}
	heard(t, said, "cannot be made")
	answered(t, m)

	cache := filepath.Join(root, "dense")
	m, said = denseModels(t, found, "", cache)
	denseOf(t, m)
	made, whole := readCopy(t, said, cache)
	hosttest.Check(t, os.WriteFile(made+".cut", whole[:len(whole)/2], 0o644))
	hosttest.Check(t, os.Rename(made+".cut", made))
	m, said = denseModels(t, found, "", cache)
	if got := denseOf(t, m); got != engine.DenseBF16 {
		t.Errorf("with half a copy: %s", got)
	}
	if _, now := readCopy(t, said, cache); !slices.Equal(now, whole) {
		t.Errorf("%d bytes, not %d", len(now), len(whole))
	}
}

// A copy that the disk has changed is named and made again, in a server that runs.
func TestADamagedCopyIsMadeAgain(t *testing.T) {
	before := checkInterval
	checkInterval = 50 * time.Millisecond
	defer func() { checkInterval = before }()
	found, cache := denseModel(t), filepath.Join(t.TempDir(), "dense")
	m, said := denseModels(t, found, "", cache)
	denseOf(t, m)
	made, whole := readCopy(t, said, cache)
	want := answered(t, m)
	f := hosttest.Must(os.OpenFile(made, os.O_WRONLY, 0))(t)
	hosttest.Must(f.WriteAt([]byte{^whole[1000]}, 1000))(t)
	hosttest.Check(t, f.Close())
	heard(t, said, "is made again: "+made+" is damaged in its bytes 0 to")
	if _, now := readCopy(t, said, cache); !slices.Equal(now, whole) {
		t.Errorf("%d bytes, not %d", len(now), len(whole))
	}
	if got := answered(t, m); !slices.Equal(got, want) {
		t.Error("a turn behind the repair is another")
	}
}

// A GGUF file's weights in order that the disk has changed are named, and the next load reads the
// GGUF file.
func TestDamagedOrderedWeightsAreNotUsed(t *testing.T) {
	before := checkInterval
	checkInterval = 50 * time.Millisecond
	defer func() { checkInterval = before }()
	t.Cleanup(xdg.Reload)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	xdg.Reload()
	released := hosttest.Must(denseModel(t).Open())(t)
	path := hosttest.Must(modeltest.WriteGGUF(released, t.TempDir(), "tune", modeltest.LlamaBF16,
		1))(t)
	hosttest.Check(t, released.Close())
	found := hosttest.Must(checkpoint.Resolve(path))(t)
	settle(t, found)
	c := hosttest.Must(found.Open())(t)
	hosttest.Check(t, c.WriteOrdered(func() error { return nil }))
	hosttest.Check(t, c.Close())
	m, said := denseModels(t, found, engine.DenseBF16, t.TempDir())
	want, ordered := answered(t, m), found.Ordered()
	f := hosttest.Must(os.OpenFile(ordered, os.O_WRONLY, 0))(t)
	size := hosttest.Must(f.Stat())(t).Size()
	hosttest.Must(f.WriteAt([]byte{0x55}, size-1))(t) // of the last norms or logits
	hosttest.Check(t, f.Close())
	heard(t, said, "the ordered copy of "+found.Name+" is made again: "+ordered+" is damaged in its "+
		"bytes")
	// a turn that begins before the model is loaded again still has the damaged ones
	hosttest.Until(t, "turns are as before", func() bool {
		return slices.Equal(answered(t, m), want)
	})
	if found.Ordered() != "" {
		t.Errorf("%q is there", found.Ordered())
	}
}

// A finished import that the disk has changed is named, its part put aside, the model not used
// without it, and the same import writes it again.
func TestADamagedImportIsNotUsed(t *testing.T) {
	before := checkInterval
	checkInterval = 50 * time.Millisecond
	defer func() { checkInterval = before }()
	golden := hosttest.Must(denseModel(t).Open())(t)
	var config map[string]any
	text := hosttest.Must(os.ReadFile(filepath.Join(golden.Path, "config.json")))(t)
	hosttest.Check(t, json.Unmarshal(text, &config))
	merged, out := filepath.Join(t.TempDir(), "merged"), filepath.Join(t.TempDir(), "out")
	hosttest.Check(t, hosttest.Must(modeltest.Merged(golden, config, 1))(t).Write(merged))
	hosttest.Check(t, golden.Close())
	imports := func() {
		t.Helper()
		hosttest.Must(convert.Run(t.Context(), merged, convert.Options{Out: out}))(t)
	}
	imports()
	found := hosttest.Must(checkpoint.Resolve(out))(t)
	m, said := denseModels(t, found, engine.DenseBF16, t.TempDir())
	want := answered(t, m)
	part := hosttest.Must(filepath.Glob(filepath.Join(out, "model-00002-*")))(t)[0]
	f := hosttest.Must(os.OpenFile(part, os.O_WRONLY, 0))(t)
	size := hosttest.Must(f.Stat())(t).Size()
	other := filepath.Join(part+".damaged", "other") // so that it cannot be put aside
	hosttest.Check(t, os.MkdirAll(other, 0o755))
	hosttest.Must(f.WriteAt([]byte{0x55, 0xaa}, size-2))(t)
	hosttest.Check(t, f.Close())
	heard(t, said, "answers of "+found.Name+" may be wrong: "+part+" is damaged in its bytes")
	hosttest.Check(t, os.RemoveAll(part+".damaged"))
	m, said = denseModels(t, found, engine.DenseBF16, t.TempDir())
	answered(t, m)
	heard(t, said, "a part of the import "+found.Name+" is put aside: "+part+" is damaged in its "+
		"bytes")
	heard(t, said, "repeat its ossrun import, which writes that file again")
	if _, err := os.Stat(part + ".damaged"); err != nil {
		t.Error(err)
	}
	imports()
	if got := answered(t, m); !slices.Equal(got, want) {
		t.Error("a turn after the repair is another")
	}
}

// The default type: 8 bits for the released models on a CPU; the released weights if a copy saves
// little, for exact products, and on a GPU. A requested type always wins. If only the copy has
// room, it is made before the first answer.
func TestDenseFor(t *testing.T) {
	b, _, err := Open(t.Context(), engine.Settings{Device: "cpu"}, func(string) {})
	hosttest.Check(t, err)
	defer b.Close()
	gpu := b.Caps()
	gpu.Discrete = true
	big, small := models.Spec20B(), modeltest.Tiny()
	for _, x := range []struct {
		spec models.Spec
		s    engine.Settings
		caps engine.Caps
		want string
	}{
		{big, engine.Settings{Compute: engine.Int8}, b.Caps(), engine.DenseQ8},
		{models.Spec120B(), engine.Settings{Compute: engine.Int8}, b.Caps(), engine.DenseQ8},
		{big, engine.Settings{Compute: engine.Int8}, gpu, engine.DenseBF16},
		{big, engine.Settings{Compute: engine.Exact}, b.Caps(), engine.DenseBF16},
		{big, engine.Settings{Compute: engine.Exact, Dense: engine.DenseQ8}, gpu, engine.DenseQ8},
		{big, engine.Settings{Dense: engine.DenseBF16}, b.Caps(), engine.DenseBF16},
		{small, engine.Settings{Compute: engine.Int8}, b.Caps(), engine.DenseBF16},
	} {
		if got := DenseFor(x.spec, x.s, x.caps); got != x.want {
			t.Errorf("%s, %+v, discrete %v: %s, not %s", x.spec.Name, x.s, x.caps.Discrete, got,
				x.want)
		}
	}
	found := checkpoint.Model{Name: "20b", Path: filepath.Join(t.TempDir(), "none")}
	s := modelSettings(b, found, big, SettingsFor(b, DefaultOptions()))
	s.MaxModelLen = 8192
	for gib, want := range map[int64]string{32: engine.DenseBF16, 14: engine.DenseQ8} {
		r := hosttest.Must(b.Room(big, s))(t)
		r.Free = gib << 30
		list := []copySource{{found, &checkpoint.Checkpoint{Spec: big}}}
		got, _, copyable := initialDense(b, list, engine.Settings{}, s, r)
		if got.Dense != want || copyable {
			t.Errorf("%d GiB free: %s, %v", gib, got.Dense, copyable)
		}
	}
}

// A model is loaded again between turns only, once it may be, and requests wait for it as for any
// load; one that leaves by itself is left alone.
func TestRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, room: 4, slow: time.Second}
		s := newLoadedSet(m.load, -1)
		turn := start(t, s, "aa")
		told := make(chan error, 1)
		renew := func(light bool) {
			go s.reload(t.Context(), "aa", s.stateOf("aa").model, func() bool { return light },
				time.Hour, func(err error) { told <- err })
		}
		renew(true)
		m.after(t, 1000*time.Hour, "load aa")
		turn.Next()
		synctest.Wait() // else the next turn may come first
		next := start(t, s, "aa")
		if err := <-told; err != nil {
			t.Error(err)
		}
		m.want(t, "load aa", "close aa", "load aa")
		next.Next()
		began := time.Now()
		renew(false)
		if err := <-told; err != nil || time.Since(began) < time.Hour ||
			time.Since(began) > 2*time.Hour {
			t.Errorf("loaded again after %v: %v", time.Since(began), err)
		}
		m.want(t, "load aa", "close aa", "load aa", "close aa", "load aa")
		renew(false)
		s.mu.Lock()
		s.unloadAfterTurns(s.entries["aa"])
		s.mu.Unlock()
		m.after(t, 1000*time.Hour, "load aa", "close aa", "load aa", "close aa", "load aa", "close aa")
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
}
