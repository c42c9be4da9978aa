package multi

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/cpu"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Opening several cards of the fake driver. Their computations are checked by the other tests
// of this folder and gpu/worker.

// machine is a fake machine that cards are opened on.
func machine(t testing.TB, cards int, memory int64) *drivertest.Fake {
	t.Helper()
	return drivertest.Use(t, drivertest.Machine{Devices: cards, Name: "NVIDIA H200", Major: 9,
		Memory: memory})
}

// hosts counts the CPU devices that are open.
type hosts struct {
	open    int
	refused error
	rates   Rates
	asked   int // for rates
}

func (h *hosts) parts() parts {
	return parts{
		host: func(threads int) (engine.Device, error) {
			if h.refused != nil {
				return nil, h.refused
			}
			dev, err := cpu.New(threads)
			h.open++
			return &counted{dev, h, false}, err
		},
		rates: func(*device.Card, engine.Device) Rates { h.asked++; return h.rates },
	}
}

type counted struct {
	engine.Device
	of     *hosts
	closed bool
}

func (c *counted) Close() error {
	if !c.closed {
		c.of.open--
	}
	c.closed = true
	return c.Device.Close()
}

// request is a model to place, with its settings.
type request struct {
	Spec     models.Spec
	Settings engine.Settings
}

func (r request) open(t *testing.T, gpus []int, x parts) (dev engine.Device, told []string,
	err error) {
	r.Settings.GPUs = gpus
	dev, err = open(t.Context(), r.Spec, r.Settings, "",
		func(line string) { told = append(told, line) }, x)
	return dev, told, err
}

// small is a model of four layers, its experts' weights by far the most of it.
func small() request {
	s := modeltest.Tiny()
	s.Layers, s.Experts, s.Hidden, s.Intermediate = 4, 8, 1024, 1024
	return request{s, engine.Settings{MaxNumBatchedTokens: 8, MaxModelLen: 256,
		GPUMemoryUtilization: 1, Threads: 1}}
}

// TestEveryStepFails: whatever call of the driver fails while cards are opened, or whatever comes
// after, all that was opened is closed, the CPU as well. A card that was not named may be left out
// then.
func TestEveryStepFails(t *testing.T) {
	f := machine(t, 2, 1<<30)
	for _, gpus := range drivertest.Some(1, [][]int{{0, 1}, nil}) {
		h := &hosts{}
		life := func() error {
			dev, _, err := small().open(t, gpus, h.parts())
			if err != nil {
				return err
			}
			return dev.Close()
		}
		f.RestartAs(drivertest.Machine{Devices: 2, Name: "NVIDIA H200", Major: 9,
			Memory: 100 << 20})
		if err := life(); err != nil || h.open != 0 || f.Leaks() != "" {
			t.Fatalf("%v, %d hosts are open, not given back: %s", err, h.open, f.Leaks())
		}
		trace := f.Trace()
		failed := 0
		for i := range trace {
			f.RestartAs(drivertest.Machine{Devices: 2, Name: "NVIDIA H200", Major: 9,
				Memory: 100 << 20})
			f.FailCall("", i+1, 46)
			err := life()
			if err != nil {
				failed++
			}
			// a card that cannot tell its free memory has none
			if err != nil && !strings.Contains(err.Error(), trace[i]) &&
				!errors.As(err, new(*NoRoom)) {
				t.Errorf("call %d, %s: %v", i, trace[i], err)
			}
			// the card could not be made current to give something back
			before := i+1 < len(trace) && !frees(trace[i]) && frees(trace[i+1])
			if left := f.Leaks(); h.open != 0 || left != "" && !before {
				t.Errorf("call %d, %s: %v, %d hosts are open, not given back: %s", i, trace[i], err,
					h.open, left)
			}
		}
		// a card that was not named is left out, and a plan does without a card's units
		if len(trace) < 20 || failed < len(trace)/5 {
			t.Errorf("%d of %d failing calls fail", failed, len(trace))
		}
	}
	f.Restart()
}

// frees are the functions that give something back.
func frees(name string) bool {
	return slices.ContainsFunc([]string{"Free", "Destroy", "Unload", "Release"},
		func(word string) bool { return strings.Contains(name, word) })
}

// TestRefusedIsClosed: what has no room, what cannot be, and a machine without its CPU: notes, and
// nothing is left open.
func TestRefusedIsClosed(t *testing.T) {
	machine(t, 2, 1<<30)
	for what, x := range map[string]struct {
		gpus   []int
		change func(*request)
		host   error
		want   string
	}{
		"no room": {nil,
			func(r *request) { r.Spec = models.Spec120B(); r.Spec.Experts = 1 << 10 }, nil,
			"gpt-oss-120b does not fit: it needs "},
		"too long": {[]int{1, 0},
			func(r *request) { r.Settings.MaxModelLen = r.Spec.MaxPosition + 1 }, nil,
			"is longer than tiny was made for"},
		"too many": {nil, func(r *request) { r.Settings.CPUExperts = 5 }, nil,
			"the experts of 5 layers are wanted on the CPU, tiny has 4"},
		"no such GPU":    {[]int{0, 2}, func(*request) {}, nil, "there is no GPU 2"},
		"the same twice": {[]int{0, 0}, func(*request) {}, nil, ""},
		"no CPU": {nil, func(*request) {}, errors.New("no thread can be started"),
			"no thread can be started"},
	} {
		r, h := small(), &hosts{refused: x.host}
		x.change(&r)
		dev, _, err := r.open(t, x.gpus, h.parts())
		if x.want == "" { // two contexts on one card are useless and harmless
			if err = errors.Join(err, dev.Close()); err != nil || h.open != 0 {
				t.Errorf("%s: %v, %d hosts are open", what, err, h.open)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), x.want) || dev != nil || h.open != 0 {
			t.Errorf("%s: %v, %v, %d hosts are open", what, dev, err, h.open)
		}
	}
}

// TestPlanIsSaid: the line has the model, every card by the number that people know it by, the one
// with most room first, and what the CPU has.
func TestPlanIsSaid(t *testing.T) {
	machine(t, 3, 100<<20)
	h := &hosts{}
	r := small()
	taken := hosttest.Must(device.OpenCard([]int{0}))(t)
	region, err := taken.Alloc(60 << 20) // somebody else's
	hosttest.Check(t, err)
	for _, x := range []struct {
		gpus    []int
		experts int
		want    []string
	}{
		{nil, 0, []string{"tiny: layers 0-3 on GPU 1 (", "; context 256", "at most "}},
		{[]int{0, 2}, 0, []string{"tiny: layers 0-3 on GPU 2 ("}},
		{[]int{2, 1}, 3, []string{"tiny: layers 0-3 on GPU 2 (",
			", experts of 3 of them on the CPU; context 256; 0.0 GB of host memory"}},
		{[]int{0}, 4, []string{"tiny: layers 0-3 on GPU 0 (", ", experts of 4 of them on the CPU"}},
	} {
		r.Settings.CPUExperts = x.experts
		dev, notes, err := r.open(t, x.gpus, h.parts())
		hosttest.Check(t, err)
		for _, part := range x.want {
			if len(notes) != 1 || !strings.Contains(notes[0], part) {
				t.Errorf("GPUs %v, experts of %d layers: %q has no %q", x.gpus, x.experts, notes,
					part)
			}
		}
		if x.experts > 0 != strings.Contains(dev.Name(), "experts of") {
			t.Errorf("%s", dev.Name())
		}
		if err := dev.Close(); err != nil || h.open != 0 {
			t.Errorf("%v, %d hosts are open", err, h.open)
		}
	}
	hosttest.Check(t, errors.Join(region.Free(), taken.Close()))
}

// TestStreaming: experts of the CPU's are streamed to the card from the step on for which that is
// faster, where the card has room for two layers of them; else never. Without experts on the CPU
// nothing is measured.
func TestStreaming(t *testing.T) {
	fast := Rates{Link: 1e12, Bandwidth: 1e9, Multiply: 1e9}
	for _, x := range []struct {
		what    string
		memory  int64
		experts int
		rates   Rates
		asked   int
		streams bool
	}{
		{"a fast bus", 1 << 30, 4, fast, 1, true},
		{"a fast CPU", 1 << 30, 4, Rates{Link: 1e6, Bandwidth: 1e12, Multiply: 1e15}, 1, false},
		{"rates that are not known", 1 << 30, 4, Rates{}, 1, false},
		{"no memory for two layers", 24 << 20, 4, fast, 1, false},
		{"no experts on the CPU", 1 << 30, 0, fast, 0, false},
	} {
		t.Run(x.what, func(t *testing.T) {
			machine(t, 1, x.memory)
			h, r := &hosts{rates: x.rates}, small()
			r.Settings.CPUExperts = x.experts
			dev, notes, err := r.open(t, nil, h.parts())
			hosttest.Check(t, err)
			if told := strings.Contains(notes[0], "streamed for long prompts"); told != x.streams ||
				h.asked != x.asked {
				t.Errorf("%q, measured %d times", notes, h.asked)
			}
			if err := dev.Close(); err != nil || h.open != 0 {
				t.Errorf("%v, %d hosts are open", err, h.open)
			}
		})
	}
}

// TestRates: what is measured through the fake driver is of no card, but it is there, and a bus
// that cannot be measured is not known.
func TestRates(t *testing.T) {
	f := machine(t, 1, 1<<30)
	c := hosttest.Must(device.OpenCard(nil))(t)
	host := hosttest.Must(cpu.New(1))(t)
	if r := ratesOf(c, host); r.Link <= 0 || r.Bandwidth <= 0 || r.Multiply <= 0 ||
		math.IsInf(r.Link, 0) {
		t.Errorf("%+v", r)
	}
	f.FailCall("cuMemAlloc_v2", 1, 2)
	if r := ratesOf(c, c); r != (Rates{}) {
		t.Errorf("no memory for the measurement: %+v", r)
	}
	if r := ReadRate(c); r != 0 {
		t.Errorf("the memory of a host that is none reads %v", r)
	}
	hosttest.Check(t, errors.Join(c.Close(), host.Close()))
}

type wrongCard struct{}

func (wrongCard) Name() string { return "gpu 1, H200, sm_90" }
func (wrongCard) Verified() (string, []string) {
	return "machine code", []string{"decode_down is wrong", "prefill_down is wrong"}
}

// TestWrongKernelsAreSaid, each with the card's name.
func TestWrongKernelsAreSaid(t *testing.T) {
	want := []string{"gpu 1, H200, sm_90: decode_down is wrong",
		"gpu 1, H200, sm_90: prefill_down is wrong"}
	if got := WrongOn(wrongCard{}); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// FuzzPlan: whatever is planned on two cards, planning ends, and a plan does not overrun them.
func FuzzPlan(f *testing.F) {
	f.Add(4, 8, 1024, 8, 256, 2, 0.5, int64(24<<30), int64(64<<30))
	f.Add(36, 128, 2880, 512, 131072, 36, 0.0, int64(80<<30), int64(1<<30))
	f.Fuzz(func(t *testing.T, layers, experts, width, rows, context, onCPU int, utilization float64,
		free, host int64) {
		r := small()
		for _, x := range []struct {
			to   *int
			n    int
			most int
		}{{&r.Spec.Layers, layers, 64}, {&r.Spec.Experts, experts, 256},
			{&r.Spec.Hidden, width, 1 << 14}, {&r.Settings.MaxNumBatchedTokens, rows, 1 << 14}} {
			*x.to = 1 + int(uint(x.n)%uint(x.most))
		}
		r.Spec.ExpertsPerToken = min(r.Spec.ExpertsPerToken, r.Spec.Experts)
		r.Spec.Hidden = (r.Spec.Hidden + 31) / 32 * 32
		r.Spec.MaxPosition = 131072
		r.Settings.MaxModelLen, r.Settings.CPUExperts,
			r.Settings.GPUMemoryUtilization = int(uint(context)%131073), onCPU, utilization
		cards := []CardMemory{{Number: 3, Free: free, Total: free},
			{Number: 1, Free: free / 2, Total: free}}
		plan, err := PlanFor(r.Spec, cards, Host{Free: host}, r.Settings)
		if err != nil {
			return
		}
		placed := 0
		for _, s := range plan.Shares {
			placed += s.To - s.From
			if room := Room(free, cards[s.Card].Free,
				r.Settings.GPUMemoryUtilization); s.Bytes() > room || s.Weights < 0 || s.KV < 0 ||
				s.Scratch < 0 || s.Staging < 0 {
				t.Errorf("card %d holds %d of %d: %+v", s.Card, s.Bytes(), room, s)
			}
		}
		if placed != r.Spec.Layers || plan.HostUsed > max(host, 0) {
			t.Errorf("%d of %d layers, %d of the host's %d", placed, r.Spec.Layers, plan.HostUsed,
				host)
		}
		if lines := plan.Lines(); !strings.Contains(lines[0], "layers 0-") {
			t.Error(lines)
		}
	})
}
