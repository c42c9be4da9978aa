package gpu

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// unasked are the settings of runtime/serve on a GPU by default.
func unasked(only []int) func(int64) engine.Settings {
	return func(memory int64) engine.Settings {
		s := engine.Settings{GPUs: only, Dense: engine.DenseBF16, Compute: engine.Rounded,
			MaxNumBatchedTokens: 8192,
			MaxNumSeqs:          256, MaxWaiting: 2048}
		switch {
		case memory >= 64<<30:
			s.MaxNumSeqs = 1024
		case memory < 23<<30:
			s.MaxNumBatchedTokens = 2048
		}
		return s
	}
}

// The plan on GPUs: one that is large enough, two that are not alone, one whose experts go to the
// CPU, and none.
func TestGPUPlan(t *testing.T) {
	h200 := detect.ChipNamed("NVIDIA H200", 143771)
	rtx := detect.ChipNamed("NVIDIA GeForce RTX 3060", 12288)
	if h200 == nil || rtx == nil {
		t.Fatal("the chips are not known by these names")
	}
	large := detect.GPU{Name: "NVIDIA H200", MemoryMiB: 143771, Usable: true,
		Figures: &detect.Figures{Bandwidth: h200.Bandwidth}}
	small := detect.GPU{Name: "NVIDIA GeForce RTX 3060", MemoryMiB: 12288, Usable: true,
		Figures: &detect.Figures{Bandwidth: rtx.Bandwidth}}
	asked := 0
	plan := func(s models.Spec, gpus ...detect.GPU) string {
		return Place(s, detect.Result{GPUs: gpus}, unasked(nil), 64<<30,
			func() float64 { asked++; return 50e9 }).String()
	}
	if got := plan(models.Spec20B()); got != "" {
		t.Errorf("without a GPU: %s", got)
	}
	if got := plan(models.Spec20B(), large); !strings.HasPrefix(got, "layers 0-23 on GPU 0 (") ||
		!strings.Contains(got, "context 131072; at most 1294 tokens/s") || asked != 0 {
		t.Errorf("H200: %s; the host's memory was measured %d times", got, asked)
	}
	if got := plan(models.Spec20B(), small, small); !strings.Contains(got, " on GPU 0 (") ||
		!strings.Contains(got, " on GPU 1 (") || strings.Contains(got, "CPU") {
		t.Errorf("two of 12 GiB: %s", got)
	}
	if got := plan(models.Spec20B(), small, large); !strings.HasPrefix(got,
		"layers 0-23 on GPU 1 (") {
		t.Errorf("the one with most room is not first: %s", got)
	}
	if got := plan(models.Spec20B(), small); !strings.Contains(got, "on the CPU") ||
		!strings.Contains(got, "tokens/s") || asked != 1 {
		t.Errorf("one of 12 GiB: %s; the host's memory was measured %d times", got, asked)
	}
	if got := Place(models.Spec120B(), detect.Result{GPUs: []detect.GPU{small}}, unasked(nil),
		8<<30, nil); got.Fits || !strings.Contains(got.String(), "does not fit") {
		t.Errorf("no room at all: %s", got)
	}
}

// The plan is that of a load: the first GPU alone if it is enough, by the numbers that --gpu
// has, of those that --gpu names; what shares the host's memory has no more than the host; and what
// nobody knows is not made up.
func TestGPUPlanIsTheLoads(t *testing.T) {
	gpu := func(name string, number, gib int) detect.GPU {
		return detect.GPU{Vendor: detect.NVIDIA, Name: name, MemoryMiB: gib << 10, Usable: true,
			Number: &number}
	}
	plan := func(s models.Spec, only []int, hostGiB int64, gpus ...detect.GPU) string {
		return Place(s, detect.Result{GPUs: gpus}, unasked(only), hostGiB<<30,
			func() float64 { return 50e9 }).String()
	}
	// in the order of their slots
	slots := []detect.GPU{gpu("RTX 4090", 1, 24), gpu("H200", 0, 140), gpu("small", 2, 6)}
	unused := append([]detect.GPU{{Vendor: detect.NVIDIA, Name: "T4", MemoryMiB: 15360,
		Reason: "too old"}}, slots...)
	shared := gpu("GB10", 0, 119)
	shared.Integrated = true
	for name, x := range map[string]struct{ got, want string }{
		"the first, not the largest": {plan(models.Spec20B(), nil, 64,
			gpu("RTX 4090", 0, 24), gpu("H200", 1, 140)), "layers 0-23 on GPU 0 ("},
		"by the driver's numbers": {plan(models.Spec20B(), nil, 64, slots...),
			"layers 0-23 on GPU 0 ("},
		"one that is named": {plan(models.Spec20B(), []int{1}, 64, slots...),
			"layers 0-23 on GPU 1 ("},
		"one that is not used": {plan(models.Spec20B(), []int{1}, 64, unused...),
			"layers 0-23 on GPU 1 ("},
		"the largest where one is not enough": {plan(models.Spec120B(), []int{1, 2}, 64, slots...),
			"layers 0-12 on GPU 1 ("},
		"the host's memory, free": {plan(models.Spec120B(), nil, 100, shared),
			"layers 0-35 on GPU 0 ("},
		"the host's memory, taken": {plan(models.Spec120B(), nil, 40, shared),
			"does not fit: it needs 6"},
		"unknown memory": {plan(models.Spec20B(), nil, 64,
			gpu("RX 9070 XT", 0, 0)), "no plan: how much memory RX 9070 XT has is not known"},
	} {
		if !strings.Contains(x.got, x.want) {
			t.Errorf("%s: %q, want %q", name, x.got, x.want)
		}
	}
}
