// Further output of ossrun doctor --verbose: devices, plans and speeds in rows; and the self-test
// in tables, row by row as measured.

package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/serve/doctor"
	"github.com/ossrun/ossrun/ui/chat/term"
)

func printReport(out io.Writer, r *doctor.Report) error {
	w := columns(out)
	to := &report{Writer: w}
	to.row("cpu", "instruction sets %s", strings.Join(r.Machine.ISAs, ", "))
	to.row("serving", "%s", r.Requests)
	printGPUs(to, r.GPUs)
	to.row("device", "%s: %s", r.Device.Name, shortWhy(r.Device.Why, r.GPUs.Problems))
	if r.Device.Kernels != "" {
		to.row("kernels", "%s", r.Device.Kernels)
		for _, t := range r.Device.Timings {
			to.row("kernels", "  %s: %s by %s %.0f µs a layer, %.0f GB/s%s",
				term.Count(t.Rows, "row"), t.Part, t.Kernels, t.Micros, t.Rate,
				map[bool]string{true: ", used"}[t.Chosen])
		}
	}
	for _, x := range r.Models {
		printModel(to, x)
	}
	for _, x := range r.OtherModels {
		to.row("models", "%s: %s", x.Name, x.About)
	}
	to.row("cache", "%s in it", gigabytes(r.Cache.Used))
	users, config := "only programs of this user are served", "not found, defaults are used"
	if r.Port.OtherUsers != "" {
		users = "programs of every user are served: " + r.Port.OtherUsers
	}
	if r.Config.Exists {
		config = "read"
	}
	to.row("port", "without a key, %s", users)
	to.row("config", "%s (%s)", r.Config.Path, config)
	return w.Flush()
}

// printModel prints whether a model is cached and fits, and its plan.
func printModel(to *report, x doctor.Model) {
	verdict := "does not fit"
	switch {
	case x.Fits:
		verdict = "fits"
	case x.Plan.OnDisk > 0:
		verdict += " into memory: experts would be read from the disk, slowly"
	case x.OnGPUs.Fits: // the plan below has room
		verdict += " on this device alone"
	}
	state, plan := strings.TrimSpace(x.State+" "+x.Path), x.Plan.Lines()
	if x.State != "complete" && x.State != "built in" {
		state += fmt.Sprintf("; needs %s with %d tokens of context, %s", gigabytes(x.Needs),
			doctor.UsableContext, verdict)
		plan = nil
		if x.Fits && x.ReadBound > 0 {
			plan = []string{speedOf(x)}
		}
	} else { // the plan says how much memory, for several sequences
		state += "; " + verdict
		if x.ReadBound > 0 && x.State == "complete" {
			plan = append(plan, speedOf(x), copyLine(x))
		}
	}
	to.row("models", "%s: %s", x.Name, state)
	if x.Weights != "" {
		to.row("models", "  %s", x.Weights.Sentence())
	}
	if x.About != "" {
		plan = append([]string{x.About}, plan...)
	}
	for _, line := range plan {
		to.row("models", "  %s", line)
	}
	printGPUPlan(to, x.OnGPUs)
}

func printGPUPlan(to *report, plan doctor.Placement) {
	label := "GPUs: "
	for _, line := range plan.Lines {
		to.row("models", "  %s%s", label, line)
		label = "      "
	}
}

// memoryLine is the machine's memory, and on a Mac each device's share. The GPU's share is Metal's
// recommendedMaxWorkingSetSize as seen on Macs: two thirds, above 32 GiB three quarters.
func memoryLine(system string, total, free int64) string {
	line := fmt.Sprintf("%s, %s free", gigabytes(total), gigabytes(free))
	if system != "darwin" {
		return line
	}
	wired := total / 3 * 2
	if total > 32<<30 {
		wired = total / 4 * 3
	}
	return line + fmt.Sprintf("; the CPU can use all of it, a GPU about %s", gigabytes(wired))
}

// shortWhy is why a device is used, without the problem printed above it.
func shortWhy(why string, problems []detect.Problem) string {
	for _, p := range problems {
		if prefix, suffix, ok := strings.Cut(why, ": "+p.Sentence()); ok {
			return prefix + ", " + seeProblems + suffix
		}
	}
	return why
}

// speedOf is the expected speed, and the memory's bound in each mode with its KL to exact.
func speedOf(x doctor.Model) string {
	var speeds []string
	for i, m := range x.Modes {
		flags := "--dense " + m.Dense
		if m.Compute == engine.Exact {
			flags = "--compute " + m.Compute
		}
		if i == 0 {
			flags += ", the default"
		}
		speeds = append(speeds, fmt.Sprintf("%.1f tokens a second (%s, KL "+
			"%.1e)", m.ReadBound, flags,
			m.KL))
	}
	most := "at most " + strings.Join(speeds, ", ") + ", by how fast this memory reads now"
	if x.Expected == 0 {
		return "speed: " + most
	}
	return fmt.Sprintf("speed: about %.1f tokens a second, by how fast two layers of this width "+
		"are computed now; %s", x.Expected, most)
}

func copyLine(m doctor.Model) string {
	switch {
	case m.Modes[0].Dense != engine.DenseQ8:
		return "dense weights: as released"
	case m.Copy == "":
		return "dense weights: no 8-bit copy yet; it is made behind the first answers"
	}
	return "dense weights: in 8 bits, " + m.Copy
}

// seeProblems refers to a problem printed above.
const seeProblems = "see problems"

func printGPUs(to *report, r detect.Result) {
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
		to.label = "" // both drivers get a label
		to.row("driver", "amdgpu %s", r.AMDDriver)
	}
	for _, p := range r.Problems {
		to.row("problems", "%s", p.Sentence())
	}
}

func factsOf(g detect.GPU, r detect.Result) (facts []string) {
	add := func(format string, v any, ok bool) {
		if ok {
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
	isListed := slices.ContainsFunc(r.Problems,
		func(p detect.Problem) bool { return p.Vendor == g.Vendor && p.Text == g.Reason })
	switch {
	case g.Usable:
	case isListed:
		add("not used, %s", seeProblems, true)
	default:
		add("not used: %s", g.Reason, true)
	}
	return facts
}

// selftestNames are the JSON keys of the self-test's results, by type.
var selftestNames = map[string]string{"doctor.Starting": "selftest_on",
	"doctor.Bandwidth": "copy_gb_per_s", "[]device.Rate": "matrix_rates", "device.Trial": "trial",
	"doctor.Proofs": "kernels", "doctor.SelftestRow": "operation", "doctor.Models": "whole_models",
	"device.Speed": "speed", "doctor.Verdict": "selftest_passed"}

// selftestLines writes each self-test result as a JSON object with one key, one a line.
func selftestLines(out io.Writer) func(any) {
	return func(what any) {
		// the later report gets the same write error
		_ = writeJSONLine(out, map[string]any{selftestNames[fmt.Sprintf("%T", what)]: what})
	}
}

type selftestScreen struct {
	out          io.Writer
	gpu          bool    // bandwidth and proofs have arrived: GPU columns
	gbs          float64 // of a GPU
	rows, points int     // operations and whole models so far
}

func (s *selftestScreen) show(what any) {
	print := func(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }
	switch x := what.(type) {
	case doctor.Starting:
		print("\nselftest on %s\n", x)
	case doctor.Bandwidth:
		s.gpu, s.gbs = true, float64(x)
		print("memory: %.0f GB/s in a copy, each byte read and written\n", x)
	case doctor.Rates: // each unit in a bare loop, and the kernels' products
		print("%-27s %8s %8s  %s\n", "product of matrices", "TFLOP/s", "of unit",
			"unit, TFLOP/s in a bare loop")
		for _, r := range x {
			print("%-27s %8.1f %7.1f%%  %s, %.1f\n", r.Product, r.TFLOPs, r.Percent, r.Unit,
				r.UnitTFLOPs)
		}
	case doctor.Trial:
		s.trial(x)
	case doctor.Proofs:
		print("%-22s %8s %8s %9s  against the reference\n", "kernel", "error", "allowed",
			"fragments")
		for _, p := range x {
			print("%-22s %8.1e %8.1e", p.Variant, p.Error, p.Bound)
			if p.Fragments != "" {
				print(" %9s", p.Fragments)
			}
			if !p.OK {
				print("  FAILED, the reference kernels take its place: %s", p.Why)
			}
			print("\n")
		}
	case doctor.SelftestRow:
		s.row(x)
	case doctor.Models:
		print("%s\n", x)
	case doctor.Speed:
		s.speed(x)
	case doctor.Verdict:
		print("selftest: %s\n", verdicts[bool(x)])
	}
}

// trial prints a line, and one for each wrong kernel.
func (s *selftestScreen) trial(t doctor.Trial) {
	if len(t.Proofs) == 0 { // all others were found wrong earlier
		return
	}
	worst := t.Proofs[0]
	fmt.Fprintf(s.out, "%s: %s, %.1e of %.1e\n", t.Name, term.Count(len(t.Proofs), "kernel"),
		worst.Error, worst.Bound)
	for _, p := range t.Proofs {
		if !p.OK {
			fmt.Fprintf(s.out, "%-22s FAILED, the reference kernels take its place: %s\n",
				p.Variant, p.Why)
		}
	}
}

func (s *selftestScreen) row(r doctor.SelftestRow) {
	if s.rows++; s.rows == 1 {
		if s.gpu {
			fmt.Fprintf(s.out, "%-22s %8s %8s %9s %9s %8s %9s\n", "operation", "error", "allowed",
				"GB/s", "of memory", "TFLOP/s", "of matrix")
		} else {
			fmt.Fprintf(s.out, "%-7s %-22s %9s %9s %8s  at the width of the published models\n",
				"isa", "operation", "error", "allowed", "GB/s")
		}
	}
	worst := "NaN"
	if r.Error != nil {
		worst = fmt.Sprintf("%.1e", *r.Error)
	}
	if s.gpu {
		fmt.Fprintf(s.out, "%-22s %8s %8.1e %9.2f %8.1f%%", r.Op, worst, r.Bound, r.GBs, r.Percent)
		if r.TFLOPs > 0 {
			fmt.Fprintf(s.out, " %8.3f %8.1f%%", r.TFLOPs, r.PercentOfMatrix)
		}
	} else {
		fmt.Fprintf(s.out, "%-7s %-22s %9s %9.1e %8.2f", r.ISA, r.Op, worst, r.Bound, r.GBs)
	}
	if !r.OK {
		fmt.Fprintf(s.out, "  FAILED: %s", r.Why)
	}
	if r.Skipped != "" {
		fmt.Fprintf(s.out, "  skipped: %s", r.Skipped)
	}
	fmt.Fprintln(s.out)
}

func (s *selftestScreen) speed(x doctor.Speed) {
	if s.points++; s.points == 1 {
		fmt.Fprintf(s.out, "%9s %9s %9s %12s %9s %9s %9s\n", "sequences", "rows", "context",
			"tokens/s", "GB/s", "of memory", "TFLOP/s")
	}
	fmt.Fprintf(s.out, "%9d %9d %9d ", x.Sequences, x.Rows, x.Context)
	if x.Skipped != "" {
		fmt.Fprintf(s.out, "skipped: %s\n", x.Skipped)
		return
	}
	fmt.Fprintf(s.out, "%12.1f %9.1f %8.1f%% %9.2f\n", x.TokensPerSecond, x.GBs,
		100*x.GBs/s.gbs, x.TFLOPs)
}
