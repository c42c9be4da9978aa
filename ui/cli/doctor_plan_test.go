package cli

import (
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu"
	"github.com/ossrun/ossrun/gpu/multi"
)

// A card a line, and one for what they have together; a sentence stays one.
func TestPrintedPlan(t *testing.T) {
	cards := multi.Plan{Context: 9, HostUsed: 2 << 30,
		Shares: []multi.Share{{From: 0, To: 2, Weights: 1 << 30, CPUExperts: []int{1}},
			{Card: 1, Number: 1, From: 2, To: 4, Weights: 1 << 30}}}
	for name, x := range map[string]struct {
		plan       gpu.Placement
		want, line string
	}{
		"no GPUs": {gpu.Placement{}, "", ""},
		"two cards": {gpu.Placement{Lines: cards.Lines(), Fits: true},
			"\t  GPUs: layers 0-1 on GPU 0 (1.1 GB), experts of 1 of them on the CPU\n" +
				"\t        layers 2-3 on GPU 1 (1.1 GB)\n\t        context 9; 2.1 GB of host " +
				"memory\n",
			`layers 0-1 on GPU 0 (1.1 GB), experts of 1 of them on the CPU; layers 2-3 on GPU 1 (1.1 GB); context 9; 2.1 GB of host memory`},
		"no room": {gpu.Placement{Lines: []string{"x does not fit: a; context b"}},
			"\t  GPUs: x does not fit: a; context b\n", `x does not fit: a; context b`},
	} {
		var b strings.Builder
		if printGPUPlan(&report{Writer: &b, label: "models"}, x.plan); b.String() != x.want {
			t.Errorf("%s: %q, not %q", name, b.String(), x.want)
		}
		if got := x.plan.String(); got != x.line {
			t.Errorf("%s: %q, not %q", name, got, x.line)
		}
	}
}

func TestMemoryLine(t *testing.T) {
	for _, c := range []struct {
		system string
		total  int64
		want   string
	}{
		{"linux", 16 << 30, "17.2 GB, 1.1 GB free"},
		{"darwin", 16 << 30, "17.2 GB, 1.1 GB free; the CPU can use all of it, a GPU about " +
			"11.5 GB"},
		{"darwin", 64 << 30, "68.7 GB, 1.1 GB free; the CPU can use all of it, a GPU about " +
			"51.5 GB"},
	} {
		if got := memoryLine(c.system, c.total, 1<<30); got != c.want {
			t.Errorf("%s: %q, not %q", c.system, got, c.want)
		}
	}
}
