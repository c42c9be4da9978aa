//go:build linux

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
)

// What the tests of this folder share: this test binary is its own worker, with one of several
// devices inside.

const (
	asWorker = "be-the-worker"
	asParent = "be-the-parent"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asWorker {
		if err := work(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 2 && os.Args[1] == asParent {
		beParent(os.Args[2])
	}
	goleak.VerifyTestMain(m)
}

// openers are the devices that a test's worker can hold.
var openers = map[string]func(gpus []int) (engine.Device, error){
	"cpu":  func([]int) (engine.Device, error) { return cpu.New(1) },
	"CUDA": func([]int) (engine.Device, error) { return openFake(driver.CUDA, "sm_90") },
	"HIP":  func([]int) (engine.Device, error) { return openFake(driver.HIP, "gfx942") },
	"none": func(gpus []int) (engine.Device, error) {
		return nil, fmt.Errorf("no GPU among %v: %w", gpus, &driver.Error{Call: "cuInit", Code: 2,
			Name: "CUDA_ERROR_OUT_OF_MEMORY", Text: "out of memory"})
	},
	"faulty": func([]int) (engine.Device, error) {
		d, err := cpu.New(1)
		return faulty{d}, err
	},
	"mute": func([]int) (engine.Device, error) {
		fmt.Fprintln(os.Stderr, "worker", os.Getpid())
		select {}
	},
	"proven": func([]int) (engine.Device, error) {
		d, err := cpu.New(1)
		return proven{d}, err
	},
}

// opener is one of them, or, after "placed:", several of them as one.
func opener(kind string) Opener {
	return func(s engine.Settings, notify func(string)) (Local, error) {
		if where, several := strings.CutPrefix(kind, "placed:"); several {
			dev, said, err := openPlaced(where)
			if err != nil {
				return nil, err
			}
			notify(said)
			return inside{engine.On(dev), dev}, nil
		}
		dev, err := openers[kind](s.GPUs)
		if err != nil {
			return nil, err
		}
		return inside{engine.On(dev), dev}, nil
	}
}

// inside is a device as a worker has it.
type inside struct {
	engine.Backend
	dev engine.Device
}

func (l inside) RoomHere(spec models.Spec, s engine.Settings) (engine.Room, error) {
	return l.Room(spec, s)
}

func (l inside) Several() bool {
	_, several := l.dev.(engine.Placer)
	return several
}

func (l inside) Kernels() (string, []string) {
	if _, ok := l.dev.(proven); ok {
		return "machine code; 1 of 2 fast ones right", []string{"decode_down is wrong"}
	}
	return "", nil
}

// Test counts to what it is asked for, and goes wrong at 7.
func (l inside) Test(_ context.Context, ask json.RawMessage,
	emit func(json.RawMessage) error) error {
	var n int
	if err := json.Unmarshal(ask, &n); err != nil {
		return err
	}
	for i := range n {
		if i == 7 {
			return errors.New("it cannot count so far")
		}
		if err := emit(fmt.Appendf(nil, "%d", i)); err != nil {
			return err
		}
	}
	return nil
}

// proven is a CPU of which something is known as of a card's kernels.
type proven struct{ engine.Device }

// fakeDevice is a GPU of the fake driver's.
type fakeDevice struct {
	*device.Device
	f *drivertest.Fake
}

func openFake(api driver.API, arch string) (engine.Device, error) {
	f, err := drivertest.Open(api, drivertest.Machine{})
	if err != nil {
		return nil, err
	}
	d, err := device.Open(f.Driver, device.Options{Arch: arch})
	return &fakeDevice{d, f}, err
}

func (d *fakeDevice) Close() error {
	if err := d.Device.Close(); err != nil {
		return err
	}
	if left := d.f.Leaks(); left != "" {
		return errors.New("not given back: " + left)
	}
	return d.f.Close()
}

// faulty is a CPU whose steps do what the first token of their batch says: 1 ends the process, 2
// reads where nothing is, 3 never ends, 4 panics, 5 is an error of a driver.
type faulty struct{ engine.Device }

func (f faulty) Compile(p *engine.Program) (engine.Step, error) {
	s, err := f.Device.Compile(p)
	return faultyStep{s}, err
}

type faultyStep struct{ engine.Step }

func (s faultyStep) Forward(b *engine.Batch, logits []float32, times []int64) error {
	switch b.Tokens[0] {
	case 1:
		os.Exit(3)
	case 2:
		crash()
	case 3:
		select {}
	case 4:
		panic("the engine has lost count")
	case 5:
		return fmt.Errorf("run the step: %w", &driver.Error{Call: "cuGraphLaunch", Code: 700,
			Name: "CUDA_ERROR_ILLEGAL_ADDRESS", Text: "an illegal memory access"})
	}
	return s.Step.Forward(b, logits, times)
}

// said collects a worker's lines.
type said struct {
	mu    sync.Mutex
	lines []string
}

func (s *said) log(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// program is this binary as a worker with a device.
func program(t testing.TB, kind string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, asWorker, kind}
}

// opened starts a worker that the test closes.
func opened(t testing.TB, kind string, o Options) *Backend {
	t.Helper()
	words := &said{}
	o.Program, o.Log = program(t, kind), words.log
	d, err := Start(o)
	if err != nil {
		t.Fatalf("%v\n%s", err, words)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("%v\n%s", err, words)
		}
	})
	return d
}
