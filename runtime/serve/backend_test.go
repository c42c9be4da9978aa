package serve

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
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

// Choosing a device, with the fake driver where a GPU is wanted.

// asked are the options of some flags of ui/cli.
func asked(t *testing.T, args ...string) Options {
	t.Helper()
	var o Options
	f, s := flag.NewFlagSet("", flag.ContinueOnError), &o.Settings
	f.StringVar(&s.Device, "device", "auto", "")
	f.BoolVar(&s.Isolate, "isolate", false, "")
	f.StringVar(&s.Dense, "dense", engine.DenseBF16, "")
	f.StringVar(&s.KVCacheDtype, "kv-cache-dtype", "", "")
	f.StringVar(&s.Compute, "compute", "", "")
	f.IntVar(&s.MaxModelLen, "max-model-len", 0, "")
	f.IntVar(&s.MaxNumBatchedTokens, "max-num-batched-tokens", 0, "")
	f.IntVar(&s.CPUExperts, "cpu-experts", 0, "")
	f.Float64Var(&s.GPUMemoryUtilization, "gpu-memory-utilization", 0, "")
	f.Func("gpu", "", func(list string) error {
		return json.Unmarshal([]byte("["+list+"]"),
			&s.GPUs)
	})
	hosttest.Check(t, f.Parse(args))
	return o
}

// openedFor opens the device for a model, or for none if found is zero, passes it on, and returns
// the notices.
func openedFor(t *testing.T, found checkpoint.Model, args []string,
	use func(engine.Backend) error) (said string, err error) {
	t.Helper()
	o := asked(t, args...)
	o.Notify = func(line string) { said += line + "\n" }
	m, err := New(t.Context(), o)
	if err != nil {
		return said, err
	}
	defer func() {
		failed, _ := m.Close()
		err = errors.Join(err, failed)
	}()
	b, err := m.takeBackend()
	if err == nil && found.Name != "" {
		ckpt, failed := found.Open()
		if failed != nil {
			return said, errors.Join(failed, b.Close())
		}
		defer ckpt.Close()
		b, _, _, err = m.fitBackend(b, found, ckpt)
	}
	if err != nil {
		return said, err
	}
	return said, errors.Join(use(b), b.Close())
}

// opened is the name of the device that flags open, and the notices.
func opened(t *testing.T, args ...string) (name, said string, err error) {
	t.Helper()
	said, err = openedFor(t, checkpoint.Model{}, args, func(b engine.Backend) error {
		name = b.Name()
		return nil
	})
	return name, said, err
}

func TestDeviceGPU(t *testing.T) {
	drivertest.Use(t, drivertest.Machine{Devices: 2, Name: "Fake H100", Major: 9, Memory: 64 << 30})
	for _, x := range []struct{ args, want string }{
		{"--device gpu", "gpu 0, Fake H100, sm_90"},
		{"--device gpu --gpu 1", "gpu 1, Fake H100, sm_90"},
		{"--gpu 1", "gpu 1, Fake H100, sm_90"},
		{"", "gpu 0, Fake H100, sm_90"},
		{"--device auto", "gpu 0, Fake H100, sm_90"},
	} {
		name, said, err := opened(t, strings.Fields(x.args)...)
		if err != nil || name != x.want || said != "" {
			t.Errorf("%q: %q, said %q, %v", x.args, name, said, err)
		}
	}
	name, _, err := opened(t, "--device", "cpu")
	if err != nil || !strings.HasPrefix(name, "cpu") {
		t.Errorf("%q, %v", name, err)
	}
	for args, want := range map[string]string{
		"--gpu 2":   "there is no GPU 2: the drivers show 2",
		"--gpu 0,7": "there is no GPU 7: the drivers show 2",
	} {
		if _, _, err := opened(t, strings.Fields(args)...); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// TestDeviceNone: without a driver auto is silent, gpu says which one is missing.
func TestDeviceNone(t *testing.T) {
	t.Setenv("OSSRUN_LIBCUDA", "")
	t.Setenv("OSSRUN_LIBAMDHIP64", "")
	if _, err := driver.Open(driver.CUDA, ""); err == nil {
		t.Skip("this machine has a driver")
	}
	name, said, err := opened(t)
	if err != nil || !strings.HasPrefix(name, "cpu") || said != "" {
		t.Errorf("%q, said %q, %v", name, said, err)
	}
	if _, _, err := opened(t, "--device", "gpu"); err == nil ||
		!strings.Contains(err.Error(), "no GPU driver is installed. Use --device cpu") {
		t.Errorf("%v", err)
	}
}

// TestDeviceRefused: a driver that is here and cannot be used is named, in one line, and the CPU
// computes.
func TestDeviceRefused(t *testing.T) {
	drivertest.Use(t, drivertest.Machine{Devices: 1, Name: "Fake T4", Major: 7, Minor: 5,
		Memory: 16 << 30})
	name, said, err := opened(t)
	want := "the CPU computes: Fake T4: its compute capability 7.5 is too old: 8.0 or newer is " +
		"needed\n"
	if err != nil || !strings.HasPrefix(name, "cpu") || said != want {
		t.Errorf("%q, said %q, %v", name, said, err)
	}
	if _, _, err := opened(t, "--device", "gpu"); err == nil ||
		!strings.Contains(err.Error(), "too old") {
		t.Errorf("%v", err)
	}
	t.Setenv("OSSRUN_LIBCUDA", "/nowhere/libcuda.so")
	if name, said, err = opened(t); err != nil || !strings.HasPrefix(name, "cpu") ||
		!strings.Contains(said, "/nowhere/libcuda.so") {
		t.Errorf("%q, said %q, %v", name, said, err)
	}
}

// TestDeviceFits: auto moves a model that the cards have no room for to the CPU and says so; with
// --device gpu that is an error.
func TestDeviceFits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tiny")
	hosttest.Check(t, modeltest.New(modeltest.Tiny(), 1).Write(dir))
	found := hosttest.Must(checkpoint.Resolve(dir))(t)
	for memory, args := range map[int64][]string{64 << 10: nil, 64 << 30: nil, 64<<10 +
		1: {"--device", "gpu"}} {
		drivertest.Use(t, drivertest.Machine{Devices: 1, Name: "Fake Card", Major: 9, Memory: memory})
		var name string
		said, err := openedFor(t, found, args, func(b engine.Backend) error {
			name = b.Name()
			return nil
		})
		small := memory == 64<<10
		if len(args) > 0 {
			if err == nil || !strings.Contains(err.Error(), "tiny does not fit: it needs ") {
				t.Errorf("%d bytes, %q: %v", memory, args, err)
			}
			continue
		}
		if err != nil || strings.HasPrefix(name, "cpu") != small ||
			strings.Contains(said, " has too little memory for tiny: tiny does not fit: it needs ") != small {
			t.Errorf("%d bytes, %q: %q, said %q, %v", memory, args, name, said, err)
		}
	}
}

// TestDeviceFitsAsLoaded: whether one GPU is enough is what the plan of loading says of the very
// settings: a card that has room for the cache in bf16 has none for it in f32, steps of more tokens
// take more, and dense weights in 8 bits less.
func TestDeviceFitsAsLoaded(t *testing.T) {
	spec := modeltest.Tiny()
	spec.Layers, spec.Hidden, spec.Vocab = 24, 512, 8192
	dir := filepath.Join(t.TempDir(), "small")
	hosttest.Check(t, modeltest.New(spec, 1).Write(dir))
	found := hosttest.Must(checkpoint.Resolve(dir))(t)
	drivertest.Use(t, drivertest.Machine{Devices: 2, Name: "Fake Card", Major: 9, Memory: 960 << 20})
	longest := 0 // context with dense weights in 8 bits
	if _, err := openedFor(t, checkpoint.Model{}, []string{"--dense", "q8"},
		func(b engine.Backend) error {
			plan, err := PlanOn(b, found, spec, SettingsFor(b, asked(t, "--dense", "q8")))
			longest = plan.Context
			return err
		}); err != nil || longest < 60000 {
		t.Fatal(longest, err)
	}
	for args, one := range map[string]bool{
		fmt.Sprintf("--max-model-len %d --dense q8", longest):  true,
		fmt.Sprintf("--max-model-len %d", longest):             false,
		"--max-model-len 60000":                                true,
		"--max-model-len 131072":                               false,
		"--max-model-len 60000 --kv-cache-dtype f32":           false,
		"--max-model-len 100000 --kv-cache-dtype fp8":          true,
		"--max-model-len 60000 --compute exact":                false,
		"--max-model-len 60000 --max-num-batched-tokens 16000": false,
		"--max-model-len 100000 --max-num-batched-tokens 8":    true,
		"--max-model-len 60000 --gpu-memory-utilization 0.2":   false,
		"--max-model-len 4096 --max-num-batched-tokens 32000":  false,
	} {
		var name string
		said, err := openedFor(t, found, strings.Fields(args), func(b engine.Backend) error {
			name = b.Name()
			return nil
		})
		if err != nil || (name == "gpu 0, Fake Card, sm_90") != one {
			t.Errorf("%s: %q, said %q, %v", args, name, said, err)
		}
	}
}

// TestDeviceSeveral: --cpu-experts moves experts off the cards, whose plan is reported; its value
// must be a valid number of layers.
func TestDeviceSeveral(t *testing.T) {
	drivertest.Use(t, drivertest.Machine{Devices: 2, Name: "Fake Card", Major: 9, Memory: 8 << 30})
	dir := filepath.Join(t.TempDir(), "tiny")
	hosttest.Check(t, modeltest.New(modeltest.Tiny(), 1).Write(dir))
	found := hosttest.Must(checkpoint.Resolve(dir))(t)
	fit := func(args ...string) (name, said string, err error) {
		said, err = openedFor(t, found, args, func(b engine.Backend) error {
			name = b.Name()
			return nil
		})
		return name, said, err
	}
	name, said, err := fit("--gpu", "0,1", "--cpu-experts", "1", "--max-model-len", "256")
	if err != nil || !strings.Contains(name, "layers 0-1") ||
		!strings.Contains(name, "experts of 1 layers") ||
		!strings.Contains(said, "experts of 1 of them on the CPU") {
		t.Errorf("%q, said %q, %v", name, said, err)
	}
	for _, n := range []string{"3"} {
		if _, _, err := fit("--cpu-experts", n); err == nil {
			t.Errorf("--cpu-experts %s: accepted", n)
		}
	}
	if _, _, err := fit("--gpu", "0,2"); err == nil ||
		!strings.Contains(err.Error(), "there is no GPU 2") {
		t.Errorf("a third GPU of two: %v", err)
	}
}

// TestDeviceComputes: what --device gpu opens gives the logits that the CPU gives.
func TestDeviceComputes(t *testing.T) {
	drivertest.Use(t, drivertest.Machine{})
	dir := filepath.Join(t.TempDir(), "tiny")
	hosttest.Check(t, modeltest.New(modeltest.Tiny(), 1).Write(dir))
	logits := func(args ...string) (all []float32) {
		hosttest.Must(openedFor(t, checkpoint.Model{}, args, func(b engine.Backend) error {
			ckpt, err := checkpoint.Open(dir)
			if err != nil {
				return err
			}
			defer ckpt.Close()
			eng, err := b.Load(t.Context(), ckpt, engine.Settings{Pages: 4, MaxNumBatchedTokens: 2},
				nil)
			if err != nil {
				return err
			}
			defer eng.Close()
			all = make([]float32, ckpt.Spec.Vocab)
			batch := &engine.Batch{Tokens: []int32{3, 4}, LogitRows: []int32{1},
				Seqs: []engine.SeqRows{{Rows: 2, Full: []int32{0}, Window: []int32{1}}}}
			return eng.Step(t.Context(), batch, all)
		}))(t)
		return all
	}
	gpu, cpu := logits("--device", "gpu"), logits("--device", "cpu")
	if slices.Equal(gpu, make([]float32, len(gpu))) {
		t.Error("nothing was computed")
	}
	for i, v := range gpu {
		if d := v - cpu[i]; d > 1e-4 || d < -1e-4 {
			t.Errorf("logit %d: %v on the GPU, %v on the CPU", i, v, cpu[i])
		}
	}
}

// stuckDevice cannot be closed, as a card that has fallen off the bus.
type stuckDevice struct{ engine.Backend }

func (stuckDevice) Close() error { return errors.New("the card is gone") }

// A failed device is replaced, and an error of closing it is reported.
func TestFailedDeviceIsSaid(t *testing.T) {
	said := ""
	o := asked(t, "--device", "cpu")
	o.Notify = func(line string) { said += line }
	m := hosttest.Must(New(t.Context(), o))(t)
	defer m.Close()
	dev := hosttest.Must(m.reopen(stuckDevice{}, modeltest.Tiny(),
		SettingsFor(m.spare, m.options)))(t)
	defer dev.Close()
	if !strings.Contains(said, "was not closed: the card is gone") {
		t.Errorf("said was %q", said)
	}
}
