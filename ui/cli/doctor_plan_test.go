package cli

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/models"
)

// The plan on GPUs: one that is large enough, two that are not alone, one whose experts go to the CPU, and none.
func TestGPUPlan(t *testing.T) {
	h200 := detect.ChipNamed("NVIDIA H200", 143771)
	rtx := detect.ChipNamed("NVIDIA GeForce RTX 3060", 12288)
	if h200 == nil || rtx == nil {
		t.Fatal("the chips are not known by these names")
	}
	large := detect.GPU{Name: "NVIDIA H200", MemoryMiB: 143771, Usable: true, Chip: h200}
	small := detect.GPU{Name: "NVIDIA GeForce RTX 3060", MemoryMiB: 12288, Usable: true, Chip: rtx}
	asked := 0
	plan := func(s models.Spec, gpus ...detect.GPU) string {
		return gpuPlan(s, detect.Report{GPUs: gpus}, 64<<30, func() float64 { asked++; return 50e9 })
	}
	if got := plan(models.Spec20B()); got != "" {
		t.Errorf("without a GPU: %s", got)
	}
	if got := plan(models.Spec20B(), large); !strings.HasPrefix(got, "layers 0-23 on GPU 0 (") || !strings.Contains(got, "context 131072; at most 1294 tokens/s") || asked != 0 {
		t.Errorf("H200: %s; the host's memory was measured %d times", got, asked)
	}
	if got := plan(models.Spec20B(), small, small); !strings.Contains(got, " on GPU 0 (") || !strings.Contains(got, " on GPU 1 (") || strings.Contains(got, "CPU") {
		t.Errorf("two of 12 GiB: %s", got)
	}
	if got := plan(models.Spec20B(), small, large); !strings.HasPrefix(got, "layers 0-23 on GPU 1 (") {
		t.Errorf("the one with most room is not first: %s", got)
	}
	if got := plan(models.Spec20B(), small); !strings.Contains(got, "on the CPU") || !strings.Contains(got, "tokens/s") || asked != 1 {
		t.Errorf("one of 12 GiB: %s; the host's memory was measured %d times", got, asked)
	}
	if got := gpuPlan(models.Spec120B(), detect.Report{GPUs: []detect.GPU{small}}, 8<<30, nil); !strings.Contains(got, "does not fit") {
		t.Errorf("no room at all: %s", got)
	}
}
