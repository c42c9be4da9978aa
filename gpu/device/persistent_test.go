package device

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// The decode step in one launch, beside the graph that it stands for.

// graphLaunch is the call that a graph costs, and the one that its place is taken by.
var graphLaunch = map[driver.API]string{driver.CUDA: "cuGraphLaunch", driver.HIP: "hipGraphLaunch"}
var wholeLaunch = map[driver.API]string{driver.CUDA: "cuLaunchCooperativeKernel",
	driver.HIP: "hipModuleLaunchKernel"}

// steps are a prompt of two rows, the token behind it, and then two sequences at once, one of them
// new.
func steps() []*engine.Batch {
	both := &engine.Batch{Tokens: []int32{9, 8}, LogitRows: []int32{0, 1}, Seqs: []engine.SeqRows{
		{Start: 3, Rows: 1, Full: []int32{1}, Window: []int32{2}}, {Rows: 1, Full: []int32{3},
			Window: []int32{0}}}}
	return []*engine.Batch{prompt(), next(), both}
}

// logitsOf runs steps on an engine of its own and gives all their logits.
func logitsOf(t *testing.T, dev *Device, ckpt *checkpoint.Checkpoint, o engine.Settings,
	batches []*engine.Batch) (all []float32) {
	t.Helper()
	o.Pages, o.MaxNumBatchedTokens = 4, 2
	eng := hosttest.Must(engine.New(dev, ckpt, o))(t)
	for _, b := range batches {
		logits := make([]float32, len(b.LogitRows)*ckpt.Spec.Vocab)
		hosttest.Check(t, eng.Step(t.Context(), b, logits))
		all = append(all, logits...)
	}
	if err := eng.Close(); err != nil {
		t.Error(err)
	}
	return all
}

// same wants equal bits.
func same(t *testing.T, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Errorf("logit %d is %v, not %v", i, got[i], want[i])
			return
		}
	}
}

// TestPersistentIsTheGraph: on models with goldens, in both types of cache, the same logits bit for
// bit, by other launches; on a card of few blocks and on one that has room for all, threads and
// blocks in order and in reverse.
func TestPersistentIsTheGraph(t *testing.T) {
	for _, x := range drivertest.Some(1, []struct {
		api   driver.API
		model string
		kv    string
		units int
	}{{driver.HIP, "T2", "bf16", 1}, {driver.CUDA, "T2", "f32", 132},
		{driver.CUDA, "T1", "bf16", 1}, {driver.HIP, "T1", "f32", 3}}) {
		t.Run(string(x.api)+"/"+x.model+"/"+x.kv, func(t *testing.T) {
			dev, f := open(t, x.api)
			f.Multiprocessors(x.units)
			ckpt, err := checkpoint.Open(filepath.Join(testdata, x.model, "checkpoint"))
			hosttest.Check(t, err)
			defer ckpt.Close()
			o := engine.Settings{KVCacheDtype: x.kv}
			want := logitsOf(t, dev, ckpt, o, steps())
			graphs, kernels := f.Calls(graphLaunch[x.api]), f.Calls(wholeLaunch[x.api])
			if graphs != len(steps()) {
				t.Errorf("%d steps launched %d graphs", len(steps()), graphs)
			}
			dev.UseDecodeKernel(DecodePersistent)
			same(t, logitsOf(t, dev, ckpt, o, steps()), want)
			if n := f.Calls(graphLaunch[x.api]) - graphs; n != 0 {
				t.Errorf("%d graphs were launched", n)
			}
			if n := f.Calls(wholeLaunch[x.api]) - kernels; n < len(steps()) {
				t.Errorf("%d launches of whole steps", n)
			}
			if x.units < 132 {
				f.Reverse(true)
				same(t, logitsOf(t, dev, ckpt, o, steps()[:2]), want[:2*ckpt.Spec.Vocab])
			}
		})
	}
}

// TestPersistentWhereItCan: steps of more rows and modes without phases keep their graphs, and so
// does everything unless it is asked for.
func TestPersistentWhereItCan(t *testing.T) {
	dev, _ := openWith(t, driver.CUDA, Options{DecodeKernel: DecodePersistent})
	for _, x := range []struct {
		name  string
		o     engine.Settings
		rows  int
		whole bool
	}{
		{"a row", engine.Settings{}, 1, true}, {"four rows", engine.Settings{KVCacheDtype: "bf16"},
			4, true},
		{"a cache of 8 bits", engine.Settings{KVCacheDtype: engine.KVFP8}, 4, false},
		{"five rows", engine.Settings{}, 5, false},
		{"8 bits", engine.Settings{Compute: engine.Int8}, 1, false},
		{"a tap", engine.Settings{Taps: []string{"layer0.router_logits"}}, 1, false},
		{"deterministic", engine.Settings{Deterministic: true}, 1, false},
	} {
		x.o.Pages = 4
		s := compiled(t, dev, x.o, x.rows)
		if (s.whole != nil) != x.whole || s.graph == nil {
			t.Errorf("%s: in one launch: %v", x.name, s.whole != nil)
		}
	}
	dev.UseDecodeKernel(DecodeGraph)
	if compiled(t, dev, engine.Settings{Pages: 4}, 1).whole != nil {
		t.Error("one launch without being asked for")
	}
}

// TestNotPersistentIsTold: a choice that a model's steps cannot have is told once, whatever the
// number of steps, and one that they have is not.
func TestNotPersistentIsTold(t *testing.T) {
	for _, x := range []struct {
		name, why string
		o         engine.Settings
	}{
		{"can", "", engine.Settings{}},
		{"a cache of 8 bits", "is no phase of a step", engine.Settings{KVCacheDtype: engine.KVFP8}},
		{"a tap", "is no phase of a step", engine.Settings{Taps: []string{"layer0.router_logits"}}},
		{"weights of 8 bits", "is no phase of a step", engine.Settings{Dense: engine.DenseQ8}},
	} {
		t.Run(x.name, func(t *testing.T) {
			dev, _ := openWith(t, driver.CUDA, Options{DecodeKernel: DecodePersistent})
			var told []string
			dev.Notify(func(line string) { told = append(told, line) })
			x.o.Pages = 4
			for range 2 {
				compiled(t, dev, x.o, 1).report()
			}
			if want := min(1, len(x.why)); len(told) != want || want == 1 &&
				(!strings.HasPrefix(told[0], "OSSRUN_DECODE_KERNEL=persistent: ") ||
					!strings.Contains(told[0], x.why)) {
				t.Errorf("%q", told)
			}
		})
	}
}

// TestPersistentProof: a launch that leaves other bits than its phases, or none, is found and out
// of use, and so is one whose phases are.
func TestPersistentProof(t *testing.T) {
	for name, x := range map[string]struct {
		breaks func(*Device, *drivertest.Fake) error
		why    string
	}{
		"right": {func(*Device, *drivertest.Fake) error { return nil }, ""},
		"wrong": {func(d *Device, _ *drivertest.Fake) (err error) {
			// of the same arguments, and within the same memory: a smaller cache
			d.kernels.functions["decode_step_f32"], err = d.function("decode_step_bf16")
			return err
		}, "differ"},
		"refused": {func(_ *Device,
			f *drivertest.Fake) error {
			f.FailCall("cuLaunchCooperativeKernel", 1, 1)
			return nil
		}, "cuLaunchCooperativeKernel"},
		"without": {func(d *Device, _ *drivertest.Fake) error { d.Disable(DecodeDown); return nil },
			"out of use"},
	} {
		t.Run(name, func(t *testing.T) {
			dev, f := openWith(t, driver.CUDA, Options{DecodeKernel: DecodePersistent})
			f.Multiprocessors(3)
			hosttest.Check(t, x.breaks(dev, f))
			p := hosttest.Must(dev.proveStep(t.Context()))(t)
			if p.Variant != DecodeStep || p.OK != (x.why == "") || !strings.Contains(p.Why, x.why) {
				t.Errorf("%+v", p)
			}
		})
	}
	dev, _ := openWith(t, driver.CUDA, Options{DecodeKernel: DecodePersistent})
	dev.Disable(DecodeStep)
	if s := compiled(t, dev, engine.Settings{Pages: 4}, 1); s.whole != nil || s.graph == nil {
		t.Error("what is out of use is launched")
	}
}

// TestPersistentFailures: every call that it adds may fail; the error says so, and nothing is left.
func TestPersistentFailures(t *testing.T) {
	ckpt := tiny(t)
	for _, call := range []string{"cuOccupancyMaxActiveBlocksPerMultiprocessor",
		"cuLaunchCooperativeKernel"} {
		t.Log(call)
		f := hosttest.Must(drivertest.Open(driver.CUDA, drivertest.Machine{}))(t)
		dev := hosttest.Must(Open(f.Driver, Options{DecodeKernel: DecodePersistent}))(t)
		f.FailCall(call, 1, 2)
		eng, err := engine.New(dev, ckpt, engine.Settings{Pages: 4, MaxNumBatchedTokens: 2})
		if err == nil {
			err = eng.Step(t.Context(), prompt(), make([]float32, ckpt.Spec.Vocab))
			if err := eng.Close(); err != nil {
				t.Error(err)
			}
		}
		if err == nil || !strings.Contains(err.Error(), call) {
			t.Errorf("%s fails: %v", call, err)
		}
		closeAll(t, dev, f)
	}
}

func TestParseDecodeKernel(t *testing.T) {
	for s, want := range map[string]DecodeKernel{"": DecodeGraph, "graph": DecodeGraph,
		"persistent": DecodePersistent} {
		if k, err := ParseDecodeKernel(s); err != nil || k != want {
			t.Errorf("%q: %q, %v", s, k, err)
		}
	}
	if _, err := ParseDecodeKernel("fast"); err == nil ||
		!slices.Contains(strings.Fields(err.Error()), "persistent") {
		t.Errorf("%v", err)
	}
}
