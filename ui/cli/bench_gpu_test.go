package cli

import (
	"testing"

	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/measure/bench"
	"github.com/ossrun/ossrun/runtime/serve"
)

// TestBenchOnAGPU: the engine's bench goes to its end on a GPU, by emulation, with the share of
// what its memory copies and with a prediction. Its figures are those of the emulation.
func TestBenchOnAGPU(t *testing.T) {
	drivertest.Long(t)
	drivertest.Use(t, drivertest.Machine{Devices: 1, Name: "Fake H100", Major: 9,
		Memory: 16 << 30})
	on, _, err := serve.Open(t.Context(), engine.Settings{Device: "gpu"}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer on.Close()
	gauge, err := serve.GaugeOf(t.Context(), on)
	if err != nil {
		t.Fatal(err)
	}
	host, _, err := serve.HostMemory()
	if about, failed := aboutBench(on); err != nil || failed != nil || about.Memory != host {
		t.Errorf("%d bytes of memory, the host has %d: %v, %v", about.Memory, host, err, failed)
	}
	s := models.Spec20B()
	s.Layers, s.Hidden, s.Intermediate, s.Vocab, s.Experts = 2, 64, 64, 4096, 8
	ckpt, err := checkpoint.Synthetic(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer ckpt.Close()
	r, err := bench.Run(t.Context(), on, gauge, ckpt, bench.Options{Prefill: []int{3},
		Batches: []int{2}, Contexts: []int{128}, Rounds: 1, Steps: 1, Progress: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Prefill) != 1 || len(r.Decode) != 3 || r.ReadGBs <= 0 || len(r.DecodeProfile) < 10 {
		t.Fatalf("%+v", r)
	}
	for _, x := range append(r.Prefill, r.Decode...) {
		if x.TokensPerS <= 0 || x.GBPerS <= 0 || x.OfRead <= 0 || x.PredictedPerS <= 0 ||
			x.Experts < 1 || x.OfMultiply != 0 {
			t.Errorf("%+v", x)
		}
	}
	ops, err := bench.RunOps(t.Context(), on, gauge, ckpt, bench.Options{Rounds: 1,
		Progress: func(string) {}}, []string{"gate_up"})
	if err != nil || len(ops.Steps) != 1 || ops.Steps[0].Operations[0].OfRead <= 0 {
		t.Errorf("%+v, %v", ops, err)
	}
	copied, err := bench.Copy(t.Context(), on, ckpt, bench.Options{Prefill: []int{40}, Rounds: 1,
		Steps: 4, Settings: engine.Settings{Drafts: 8}, Progress: func(string) {}})
	if err != nil || len(copied.Texts) != 2 || copied.Texts[0].With <= 0 ||
		copied.Texts[0].Without <= 0 {
		t.Errorf("%+v, %v", copied, err)
	}
}
