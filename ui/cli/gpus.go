// The GPUs of this machine as ossrun doctor prints them.

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/gpu/detect"
)

// seeProblems stands where a problem is told already.
const seeProblems = "see problems"

// printGPUs writes a row for each GPU and for each problem.
func printGPUs(to *report, r detect.Report) {
	for _, g := range r.GPUs {
		to.row("gpus", "%s: %s", g.Title(), strings.Join(factsOf(g, r), ", "))
	}
	if v := r.DriverVersion; v != "" {
		if r.OpenModule {
			v += ", open kernel module"
		}
		to.row("driver", "NVIDIA %s", v)
	}
	if r.AMDDriver != "" {
		to.label = "" // both drivers have theirs
		to.row("driver", "amdgpu %s", r.AMDDriver)
	}
	for _, p := range r.Problems {
		to.row("problems", "%s", p.Sentence())
	}
}

// factsOf is what is known of a GPU of a report, for people.
func factsOf(g detect.GPU, r detect.Report) (facts []string) {
	add := func(format string, v any, known bool) {
		if known {
			facts = append(facts, fmt.Sprintf(format, v))
		}
	}
	several := len(r.GPUs) > 1
	if g.Number != nil && several {
		add("--gpu %d", *g.Number, true)
	}
	add("%s", g.Arch, g.Arch != "")
	add("%s", gigabytes(int64(g.MemoryMiB)<<20), g.MemoryMiB > 0)
	add("%s free", gigabytes(int64(g.FreeMiB)<<20), g.FreeMiB > 0)
	add("%d units", g.Units, g.Units > 0)
	add("MEC firmware %d", g.MECFirmware, g.MECFirmware > 0)
	if f := g.Figures; f != nil {
		about := func(name, format string) string {
			if slices.Contains(f.About, name) {
				return "about " + format
			}
			return format
		}
		add(about("bandwidth_gbs", "%.0f GB/s"), f.Bandwidth, f.Bandwidth > 0)
		add(about("bf16_tflops", "%.0f bf16 TFLOP/s"), f.BF16, f.BF16 > 0)
		add("%s", f.PeerLink, several && f.PeerLink != "" && len(g.Linked) == 0)
	}
	add("xgmi to %d others", len(g.Linked), len(g.Linked) > 0)
	add("at %s", g.BDF, g.BDF != "")
	if x := g.Sensors; x != nil {
		add("%d °C", x.Celsius, x.Celsius > 0)
		add("%.0f W", x.Watts, x.Watts > 0)
		add("units at %d MHz", x.ClockMHz, x.ClockMHz > 0)
		add("memory at %d MHz", x.MemoryMHz, x.MemoryMHz > 0)
	}
	told := slices.ContainsFunc(r.Problems,
		func(p detect.Problem) bool { return p.Vendor == g.Vendor && p.Text == g.Reason })
	switch {
	case g.Usable:
	case told:
		add("not used, %s", seeProblems, true)
	default:
		add("not used: %s", g.Reason, true)
	}
	return facts
}
