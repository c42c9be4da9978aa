package device

import (
	"bytes"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Tests of the GPU alone: regions, uploads in pieces, refusals, profiles, and what becomes of an
// engine when the driver fails.

func TestRegions(t *testing.T) {
	for _, api := range apis {
		t.Run(string(api), func(t *testing.T) {
			dev, _ := open(t, api)
			r := hosttest.Must(dev.Alloc(100))(t)
			got := bytes.Repeat([]byte{1}, 100)
			if err := r.Read(0, got); err != nil || !slices.Equal(got, make([]byte, 100)) {
				t.Errorf("new memory holds %v, %v", got, err)
			}
			if err := errors.Join(r.Write(98, []byte{8, 9}), r.Read(97, got[:3])); err != nil ||
				!slices.Equal(got[:3], []byte{0, 8, 9}) {
				t.Errorf("%v, %v", got[:3], err)
			}
			for _, bad := range []int64{-1, 99, math.MaxInt64} {
				if r.Read(bad, got[:2]) == nil || r.Write(bad, got[:2]) == nil {
					t.Errorf("two bytes at %d of 100: accepted", bad)
				}
			}
			if _, err := dev.Alloc(0); err == nil {
				t.Error("a region of nothing: accepted")
			}
			if dev.Close() == nil {
				t.Error("a device closes under its regions")
			}
			if err := errors.Join(r.Free(), r.Free()); err != nil {
				t.Error(err)
			}
			if r.Read(0, got) == nil {
				t.Error("a freed region is read")
			}
		})
	}
}

// TestUpload: more than the ring of pieces holds, from an odd address.
func TestUpload(t *testing.T) {
	f := hosttest.Must(drivertest.Open(driver.CUDA, drivertest.Machine{}))(t)
	defer f.Close()
	dev := hosttest.Must(Open(f.Driver, Options{}))(t)
	data := make([]byte, (pieces+1)*pieceBytes+12345)
	for i := 0; i < len(data); i += 997 {
		data[i] = byte(i)
	}
	r := hosttest.Must(dev.Upload(data[1:]))(t)
	got := make([]byte, len(data)-1)
	if err := r.Read(0, got); err != nil || !bytes.Equal(got, data[1:]) {
		t.Errorf("other bytes arrived, %v", err)
	}
	if err := errors.Join(r.Free(), dev.Close(), dev.Close()); err != nil {
		t.Error(err)
	}
	if _, err := dev.Alloc(1); err == nil {
		t.Error("a closed device allocates")
	}
	if left := f.Leaks(); left != "" {
		t.Error(left)
	}
}

func TestNameAndMemory(t *testing.T) {
	f := hosttest.Must(drivertest.Open(driver.CUDA, drivertest.Machine{Devices: 2, Name: "Fake RTX",
		Major: 8, Minor: 9, Memory: 24 << 30}))(t)
	defer f.Close()
	dev := hosttest.Must(Open(f.Driver, Options{Index: 1}))(t)
	if want := "gpu 1, Fake RTX, sm_89"; dev.Name() != want {
		t.Errorf("%q, not %q", dev.Name(), want)
	}
	total, free := dev.Memory()
	if total != 24<<30 || free <= total*15/16 || free >= total {
		t.Errorf("%d of %d are free", free, total)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Open(f.Driver, Options{Index: 2}); err == nil {
		t.Error("a third device of two: opened")
	}
}

// tiny is a checkpoint of 100 kB.
func tiny(t testing.TB) *checkpoint.Checkpoint {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	hosttest.Check(t, modeltest.New(modeltest.Tiny(), 1).Write(dir))
	ckpt := hosttest.Must(checkpoint.Open(dir))(t)
	t.Cleanup(func() { ckpt.Close() })
	return ckpt
}

// prompt is a step of two rows of one sequence, next the row after them.
func prompt() *engine.Batch {
	return &engine.Batch{Tokens: []int32{5, 6}, LogitRows: []int32{1},
		Seqs: []engine.SeqRows{{Rows: 2, Full: []int32{1}, Window: []int32{2}}}}
}

func next() *engine.Batch {
	return &engine.Batch{Tokens: []int32{7}, LogitRows: []int32{0},
		Seqs: []engine.SeqRows{{Start: 2, Rows: 1, Full: []int32{1}, Window: []int32{2}}}}
}

func TestRefusals(t *testing.T) {
	dev, _ := open(t, driver.CUDA)
	ckpt := tiny(t)
	wide := ckpt.Spec
	wide.HeadDim = 48
	for what, err := range map[string]error{
		"a CPU's instruction set": func() error {
			_, err := engine.New(dev, ckpt, engine.Settings{ISA: "avx2", Pages: 4,
				MaxNumBatchedTokens: 1})
			return err
		}(),
		"heads of 48":    fits(&engine.Program{Spec: wide, Rows: 1}),
		"too many slots": fits(&engine.Program{Spec: ckpt.Spec, Rows: 40000}),
	} {
		if err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

// TestBuffersOfAnotherDevice: a program with memory of another device is not compiled.
func TestBuffersOfAnotherDevice(t *testing.T) {
	dev, _ := open(t, driver.CUDA)
	p := hosttest.Must(engine.Record(modeltest.Tiny(), engine.Settings{Pages: 4}, 1))(t)
	if _, err := dev.Compile(p); err == nil ||
		!strings.Contains(err.Error(), "does not lie in the memory of this device") {
		t.Errorf("%v", err)
	}
}

// TestProfile: with clocks on, a step gives the same logits and a time for each operation; with
// clocks off again, none.
func TestProfile(t *testing.T) {
	dev, f := open(t, driver.CUDA)
	ckpt := tiny(t)
	eng := hosttest.Must(engine.New(dev, ckpt,
		engine.Settings{Pages: 4, MaxNumBatchedTokens: 2}))(t)
	whole, timed := make([]float32, ckpt.Spec.Vocab), make([]float32, ckpt.Spec.Vocab)
	hosttest.Check(t, eng.Step(t.Context(), prompt(), whole))
	times, err := eng.Measure(t.Context(), prompt(), timed)
	if err != nil || !slices.Equal(whole, timed) {
		t.Errorf("other logits under the clock, %v", err)
	}
	for _, x := range times { // a fused operation's time is that of its matrix
		if matrix := x.Kind == engine.Linear || x.Kind == engine.GateUp ||
			x.Kind == engine.Down; matrix && x.Nanoseconds <= 0 || x.Bytes <= 0 {
			t.Errorf("%s: %d ns, %d bytes", x.Label, x.Nanoseconds, x.Bytes)
		}
	}
	launches := f.Calls("cuLaunchKernel") + f.Calls("cuLaunchKernelEx")
	if err := eng.Step(t.Context(), prompt(), timed); err != nil ||
		f.Calls("cuLaunchKernel")+f.Calls("cuLaunchKernelEx") != launches {
		t.Errorf("a whole step launches kernels one by one, %v", err)
	}
	hosttest.Check(t, eng.Close())
}

// TestStepCalls: a step is a copy in, a graph and a copy out, however many operations it has.
func TestStepCalls(t *testing.T) {
	dev, f := open(t, driver.CUDA)
	eng := hosttest.Must(engine.New(dev, tiny(t),
		engine.Settings{Pages: 4, MaxNumBatchedTokens: 2}))(t)
	logits := make([]float32, eng.Spec().Vocab)
	before := len(f.Trace())
	hosttest.Check(t, eng.Step(t.Context(), prompt(), logits))
	calls := slices.DeleteFunc(f.Trace()[before:],
		func(name string) bool { return name == "cuCtxSetCurrent" })
	if want := []string{"cuEventSynchronize", "cuMemcpyHtoDAsync_v2", "cuEventRecord",
		"cuGraphLaunch", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize"}; !slices.Equal(calls,
		want) {
		t.Errorf("%v, not %v", calls, want)
	}
	hosttest.Check(t, eng.Close())
}

// TestFewLogits: a step of many rows that may ask for few logits takes room for those alone, and
// refuses more.
func TestFewLogits(t *testing.T) {
	dev, _ := open(t, driver.CUDA)
	ckpt := tiny(t)
	eng := hosttest.Must(engine.New(dev, ckpt, engine.Settings{Pages: 4, MaxNumBatchedTokens: 8,
		MaxLogits: 1}))(t)
	if got, want := dev.shared[logitsMemory].base().size, int64(4*ckpt.Spec.Vocab); got != want {
		t.Errorf("%d bytes of logits, not %d", got, want)
	}
	logits := make([]float32, 2*ckpt.Spec.Vocab)
	if err := eng.Step(t.Context(), prompt(), logits); err != nil {
		t.Error(err)
	}
	two := prompt()
	two.LogitRows = []int32{0, 1}
	if err := eng.Step(t.Context(), two, logits); err == nil {
		t.Error("two rows of logits: accepted")
	}
	if err := eng.Queue(t.Context(), two, nil); err == nil {
		t.Error("two rows of logits to sample from: accepted")
	}
	hosttest.Check(t, eng.Close())
}
