package cpu_test

import (
	"math"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Tests of the CPU alone: refusals, views, and steps that do not allocate.

func openT2(t testing.TB) *checkpoint.Checkpoint {
	t.Helper()
	ckpt, err := checkpoint.Open(testdata + "T2/checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ckpt.Close() })
	return ckpt
}

func TestRefusals(t *testing.T) {
	dev, ckpt := open(t, 2), openT2(t)
	for name, o := range map[string]engine.Settings{
		"unknown set":      {ISA: "sse9"},
		"too many threads": {Threads: 3},
		"unknown mode":     {Compute: "fp2"},
	} {
		if _, err := engine.New(dev, ckpt, o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, isa := range isas {
		eng, err := engine.New(dev, ckpt, engine.Settings{ISA: isa, Pages: 1,
			MaxNumBatchedTokens: 1})
		if err == nil {
			err = eng.Close()
		}
		if have := slices.Contains(cpu.ISAs(), isa); have != (err == nil) {
			t.Errorf("%s is here: %v, error: %v", isa, have, err)
		}
	}
	if _, err := cpu.New(-1); err == nil {
		t.Error("-1 threads: accepted")
	}
}

func TestRegions(t *testing.T) {
	dev, err := cpu.New(1)
	if err != nil {
		t.Fatal(err)
	}
	data := []byte{1, 2, 3}
	view, err := dev.Upload(data)
	if err != nil {
		t.Fatal(err)
	}
	data[1] = 9
	got := make([]byte, 2)
	if err := view.Read(1, got); err != nil || !slices.Equal(got, []byte{9, 3}) {
		t.Errorf("a view reads %v, %v", got, err)
	}
	if view.Write(0, got) == nil {
		t.Error("a view can be written")
	}
	own, err := dev.Alloc(100)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []int64{-1, 99, math.MaxInt64} {
		if own.Read(bad, got) == nil || own.Write(bad, got) == nil {
			t.Errorf("two bytes at %d of 100: accepted", bad)
		}
	}
	if _, err := dev.Alloc(0); err == nil {
		t.Error("a region of nothing: accepted")
	}
	if dev.Close() == nil {
		t.Error("a device closes under its regions")
	}
	for _, r := range []engine.Region{view, own, own} {
		if err := r.Free(); err != nil {
			t.Error(err)
		}
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if err := dev.Close(); err != nil {
		t.Error("a second Close:", err)
	}
	if _, err := dev.Alloc(1); err == nil {
		t.Error("a closed device allocates")
	}
}

// TestStepDoesNotAllocate: not in Go, after the first step of a size; C++ has nothing in a walk
// that could.
func TestStepDoesNotAllocate(t *testing.T) {
	dev, ckpt := open(t, 2), openT2(t)
	for _, o := range []engine.Settings{{}, {Compute: engine.Int8},
		{Compute: engine.Int8, Dense: engine.DenseQ8}} {
		o.Pages, o.MaxNumBatchedTokens = 8, 8
		stepDoesNotAllocate(t, dev, ckpt, o)
	}
}

func stepDoesNotAllocate(t *testing.T, dev engine.Device, ckpt *checkpoint.Checkpoint,
	o engine.Settings) {
	t.Helper()
	eng, err := engine.New(dev, ckpt, o)
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	b := &engine.Batch{Tokens: []int32{1, 2, 3}, LogitRows: []int32{2},
		Seqs: []engine.SeqRows{{Rows: 2, Full: []int32{0}, Window: []int32{1}},
			{Rows: 1, Full: []int32{2}, Window: []int32{3}}}}
	logits := make([]float32, ckpt.Spec.Vocab)
	if n := testing.AllocsPerRun(20, func() {
		if err := eng.Step(t.Context(), b, logits); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%+v: %v allocations a step", o, n)
	}
}

// BenchmarkDecode is one row of T2: what a step costs besides its arithmetic, which is next to
// nothing here.
func BenchmarkDecode(b *testing.B) {
	eng, err := engine.New(open(b, 0), openT2(b), engine.Settings{Pages: 8, MaxNumBatchedTokens: 8})
	if err != nil {
		b.Fatal(err)
	}
	defer eng.Close()
	x := &engine.Batch{Tokens: []int32{1}, LogitRows: []int32{0},
		Seqs: []engine.SeqRows{{Rows: 1, Full: []int32{0}, Window: []int32{1}}}}
	logits := make([]float32, eng.Spec().Vocab)
	for b.Loop() {
		if err := eng.Step(b.Context(), x, logits); err != nil {
			b.Fatal(err)
		}
	}
}
