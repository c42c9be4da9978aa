package golden_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/models/safetensors"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const t2 = "../../../testdata/model/T2"

func device(t *testing.T) engine.Device {
	t.Helper()
	dev := hosttest.Must(cpu.New(2))(t)
	t.Cleanup(func() { dev.Close() })
	return dev
}

// short runs the short cases, which are enough to notice anything that these tests break.
var short = golden.Options{Only: []string{"len1", "len31", "len129"}}

func run(t *testing.T, dir string, modes ...string) (ok bool, misses string) {
	t.Helper()
	ok, err := short.Run(t.Context(), dir, engine.On(device(t)), modes, func(r golden.CaseResult) {
		for _, m := range r.Misses {
			misses += r.Mode + " " + r.Case + ": " + m + "\n"
		}
	})
	hosttest.Check(t, err)
	return ok, misses
}

func TestUnchangedGoldenPasses(t *testing.T) {
	if ok, misses := run(t, t2); !ok || misses != "" {
		t.Errorf("passed: %v, misses: %s", ok, misses)
	}
}

// TestOneChangedLogit: a hundredth, in one of some fifty thousand logits, is noticed in every mode
// by itself, inexact ones too.
func TestOneChangedLogit(t *testing.T) {
	for _, mode := range []string{engine.Exact, engine.Int8} {
		for _, change := range []float32{0.01, -0.01, 5, float32(math.NaN())} {
			dir := copyGolden(t)
			alter(t, dir, "len31.logits", func(data []byte) {
				at := data[4*(17*777+402):]
				v := math.Float32frombits(binary.LittleEndian.Uint32(at))
				binary.LittleEndian.PutUint32(at, math.Float32bits(v+change))
			})
			ok, misses := run(t, dir, mode)
			if ok || !strings.Contains(misses, "len31") {
				t.Errorf("%s, changed by %v: passed: %v, misses: %s", mode, change, ok, misses)
			}
		}
	}
}

// TestOneChangedGreedyToken: exact must have all of them.
func TestOneChangedGreedyToken(t *testing.T) {
	dir := copyGolden(t)
	alter(t, dir, "len1.greedy", func(data []byte) { data[4*47]++ })
	if ok, misses := run(t, dir, engine.Exact); ok ||
		!strings.Contains(misses, "exact len1: 47 of 48 greedy tokens") {
		t.Errorf("passed: %v, misses: %s", ok, misses)
	}
}

// TestWrongWeights: a model that is not the golden's misses in every mode.
func TestWrongWeights(t *testing.T) {
	for _, mode := range []string{engine.Exact, engine.Int8} {
		dir := copyGolden(t)
		shard := filepath.Join(dir, "checkpoint", "model-00000-of-00002.safetensors")
		data := hosttest.Must(os.ReadFile(shard))(t)
		for i := len(data) - 4096; i < len(data); i++ {
			data[i] ^= 0x11
		}
		hosttest.Check(t, os.WriteFile(shard, data, 0o644))
		if ok, misses := run(t, dir, mode); ok {
			t.Errorf("%s passed: %s", mode, misses)
		}
	}
}

func TestWhatCannotRun(t *testing.T) {
	dev := device(t)
	ignore := func(golden.CaseResult) {}
	var o golden.Options
	if _, err := o.Run(t.Context(), t.TempDir(), engine.On(dev), nil, ignore); err == nil {
		t.Error("an empty folder runs")
	}
	if _, err := o.Run(t.Context(), t2, engine.On(dev), []string{"fp2"}, ignore); err == nil {
		t.Error("an unknown mode runs")
	}
	if _, err := (golden.Options{Only: []string{"len99"}}).Run(t.Context(), t2, engine.On(dev), nil,
		ignore); err == nil {
		t.Error("an unknown case runs")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (golden.Options{}).Run(ctx, t2, engine.On(dev), nil, ignore); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for _, array := range []string{"len31.logits", "len31.positions", "len31.greedy_gap"} {
		dir := copyGolden(t)
		rename(t, dir, array)
		if _, err := o.Run(t.Context(), dir, engine.On(dev), nil, ignore); err == nil ||
			!strings.Contains(err.Error(), array) {
			t.Errorf("without %s: %v", array, err)
		}
	}
	dir := copyGolden(t)
	if err := os.WriteFile(filepath.Join(dir, "golden", "cases.json"), []byte(`{"cases":[]}`),
		0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := (golden.Options{}).Run(t.Context(), dir, engine.On(dev), nil, ignore); err == nil {
		t.Error("no cases: passes")
	}
}

// copyGolden copies T2 to a folder in which it may be spoilt.
func copyGolden(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	hosttest.Check(t, os.CopyFS(dir, os.DirFS(t2)))
	return dir
}

// alter changes an array of the golden file in place.
func alter(t *testing.T, dir, array string, change func(data []byte)) {
	t.Helper()
	path := filepath.Join(dir, "golden", "logits.safetensors")
	header := hosttest.Must(safetensors.Inspect(path))(t)
	i := slices.IndexFunc(header.Tensors, func(t safetensors.Info) bool { return t.Name == array })
	if i < 0 {
		t.Fatalf("there is no %s", array)
	}
	data := hosttest.Must(os.ReadFile(path))(t)
	before := bytes.Clone(data)
	change(data[header.Tensors[i].Begin:header.Tensors[i].End])
	if bytes.Equal(before, data) {
		t.Fatal("nothing changed")
	}
	hosttest.Check(t, os.WriteFile(path, data, 0o644))
}

// rename makes an array of the golden file unknown.
func rename(t *testing.T, dir, array string) {
	t.Helper()
	path := filepath.Join(dir, "golden", "logits.safetensors")
	data := hosttest.Must(os.ReadFile(path))(t)
	quoted, _ := json.Marshal(array)
	other := bytes.Replace(quoted, []byte("len31"), []byte("len3x"), 1)
	hosttest.Check(t, os.WriteFile(path, bytes.Replace(data, quoted, other, 1), 0o644))
}
