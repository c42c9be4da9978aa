// ossrun doctor: the machine as ossrun sees it, and whether it computes correctly.
//
// Without flags it only looks. --golden DIR holds every compute mode to golden logits, --selftest
// every operation to plain float64 loops; a miss of either ends with exit code 1. stdout holds the
// report alone, as text or as one JSON object. Package runtime/serve/doctor does the work.

package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/golden"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/serve/doctor"
	"github.com/ossrun/ossrun/runtime/tools"
)

func doctorCommand() *cli.Command {
	o := serve.DefaultOptions()
	return &cli.Command{
		Name:  "doctor",
		Usage: "show the machine, what is used and why; check that it computes correctly",
		Description: "Example: ossrun doctor --selftest\n\n" +
			"A golden folder has checkpoint/, a model in the Hugging Face layout, and golden/ " +
			"with cases.json and\n" +
			"logits.safetensors.",
		Flags: flagTable(
			&cli.StringFlag{Name: "golden", Usage: "compare every compute mode with the golden " +
				"logits in `DIR`"},
			mark("selftest", "compare every operation with plain float64 loops: on the CPU with "+
				"every instruction set, in about a minute; on a GPU, with its speeds, in less "+
				"than five"),
			mark("json", "as one JSON object"),
			&cli.StringFlag{Name: "bundle", Usage: "also write the report, the config file and " +
				"which variables are set to `FILE`.tar.gz, for a bug report: without keys, and " +
				"without names of people and machines"},
			configFlag(), deviceFlags(&o)),
		Action: func(c *cli.Context) (err error) {
			if err := noArguments(c); err != nil {
				return err
			}
			if len(o.Settings.GPUs) > 1 && o.Settings.Device != "cpu" {
				return fail(exitUsage, "doctor checks one GPU at a time: give --gpu one number")
			}
			d, err := doctor.Open(c.Context, o, cmp.Or(c.String("config"), defaultConfigPath()),
				notify(Terminal{Err: c.App.ErrWriter}))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, d.Close()) }()
			for _, found := range tools.Look() {
				d.Tools = append(d.Tools, doctor.Tool(found))
			}
			lookAround(c.Context, d)
			if err := expectSpeeds(c.Context, d); err != nil {
				return err
			}
			return examine(c, d)
		},
	}
}

// examine prints the report and runs the checks; text comes as it is known, JSON at the end.
func examine(c *cli.Context, d *doctor.Doctor) error {
	text := c.App.Writer
	if c.Bool("json") {
		text = io.Discard
	}
	var shown bytes.Buffer
	if err := printReport(&shown, &d.Report); err != nil {
		return err
	}
	lines := shown.String()
	if isTerminal(text) {
		lines = folded(lines, reportWidth)
	}
	if _, err := io.WriteString(text, lines); err != nil {
		return err
	}
	if dir := c.String("golden"); dir != "" {
		if err := runGolden(c.Context, text, d, dir); err != nil {
			return err
		}
	}
	if c.Bool("selftest") {
		if err := d.RunSelftest(c.Context, (&selftestScreen{out: text}).show); err != nil {
			return err
		}
	}
	if d.CountMessages(); d.Worker != nil {
		fmt.Fprintf(text, "\nworker: %d steps, %d messages there, %d back\n", d.Worker.Steps,
			d.Worker.Sent, d.Worker.Received)
	}
	if c.Bool("json") {
		if err := writeJSON(c.App.Writer, &d.Report); err != nil {
			return err
		}
	}
	if file := c.String("bundle"); file != "" {
		if err := writeBundle(c, d, file); err != nil {
			return err
		}
	}
	if d.Passed != nil && !*d.Passed {
		return fail(exitFailure, "a check missed: this build does not compute correctly on this "+
			"machine, or the golden is damaged")
	}
	return nil
}

func printReport(out io.Writer, r *doctor.Report) error {
	m, w := r.Machine, columns(out)
	to := &report{Writer: w}
	to.row("system", "%s", m.OS)
	to.row("cpu", "%s, %s to use, %s", m.CPU, count(m.Cores, "core"), strings.Join(m.ISAs, ", "))
	to.row("memory", "%s", memoryLine(runtime.GOOS, m.MemoryTotal, m.MemoryFree))
	to.row("serving", "%s", r.Requests)
	printGPUs(to, r.GPUs)
	to.row("device", "%s: %s", r.Device.Name, shortWhy(r.Device.Why, r.GPUs.Problems))
	if r.Device.Kernels != "" {
		to.row("kernels", "%s", r.Device.Kernels)
	}
	for _, x := range r.Models {
		printModel(to, x)
	}
	to.row("cache", "%s: %s in it, %s free", r.Cache.Path, gigabytes(r.Cache.Used),
		gigabytes(r.Cache.Free))
	for _, x := range r.Servers {
		to.row("servers", "%s (process %d): %s, %s", x.URL, x.PID, strings.Join(x.Models, ", "),
			x.State)
	}
	if r.Port.Taken != "" {
		to.row("port", "%s: %s", r.Port.Address, r.Port.Taken)
	} else {
		to.row("port", "%s is free", r.Port.Address)
	}
	for _, x := range r.Tools {
		if x.Missing != "" {
			x.What = "not here: " + x.Missing
		}
		to.row("tools", "%s: %s", x.Tool, x.What)
	}
	state := "not there, defaults are used"
	if r.Config.There {
		state = "read"
	}
	to.row("config", "%s (%s)", r.Config.Path, state)
	for _, x := range r.Troubles {
		to.row("vLLM", "would meet: %s (%s); not here: %s", x.Name, x.Place, x.NotHere)
	}
	return w.Flush()
}

// printModel says whether a model is here and fits, and what its plan would be.
func printModel(to *report, x doctor.Model) {
	verdict := "does not fit"
	switch {
	case x.Fits:
		verdict = "fits"
	case x.Plan.OnDisk > 0:
		verdict += " into memory: experts would be read from the disk, slowly"
	case x.OnGPUs.Fits: // the plan below has room for it
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
	} else { // the plan says what it takes, for several sequences at once
		state += "; " + verdict
		if x.ReadBound > 0 && x.State == "complete" {
			plan = append(plan, speedOf(x), copied(x))
		}
	}
	to.row("models", "%s: %s", x.Name, state)
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

// memoryLine says how much memory the machine has, and on a Mac how much of it each device can use.
// The GPU's part is Metal's recommendedMaxWorkingSetSize as seen on Macs: two thirds, above 32 GiB
// three quarters.
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

// shortWhy is why a device is used, without the problem that stands above it.
func shortWhy(why string, problems []detect.Problem) string {
	for _, p := range problems {
		if before, after, told := strings.Cut(why, ": "+p.Sentence()); told {
			return before + ", " + seeProblems + after
		}
	}
	return why
}

// runGolden holds the device to a golden folder.
func runGolden(ctx context.Context, out io.Writer, d *doctor.Doctor, dir string) error {
	fmt.Fprintf(out, "\ngolden %s on %s\n", dir, d.Device.Name)
	fmt.Fprintf(out, "%-26s %-8s %9s %8s %8s %9s %8s %8s %8s\n", "mode", "case", "positions",
		"max abs", "KL mean", "KL median", "argmax =", "greedy =", "time")
	ok, err := d.RunGolden(ctx, dir, func(c golden.CaseResult) {
		fmt.Fprintf(out, "%-26s %-8s %9d %8.1e %8.1e %9.1e %8s %8s %6dms", c.Mode, c.Case,
			c.Positions, c.MaxAbs, c.KLMean, c.KLMedian, fmt.Sprintf("%d/%d", c.Agree, c.Of),
			fmt.Sprintf("%d/%d", c.Greedy, c.GreedyOf), c.Elapsed.Milliseconds())
		if !c.OK() {
			fmt.Fprintf(out, "  MISS: %s", strings.Join(c.Misses, "; "))
		}
		fmt.Fprintln(out)
	})
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return err
		}
		return fail(exitFailure, "golden %s cannot be run: %s", dir, err)
	}
	fmt.Fprintf(out, "golden: %s\n", verdict(ok))
	return nil
}

// speedOf says what one answer can have: what is expected, and what the memory's speed allows in
// each mode, with how far the mode is from exact logits.
func speedOf(x doctor.Model) string {
	var each []string
	for i, m := range x.Modes {
		flags := "--dense " + m.Dense
		if m.Compute == engine.Exact {
			flags = "--compute " + m.Compute
		}
		if i == 0 {
			flags += ", the default"
		}
		each = append(each, fmt.Sprintf("%.1f tokens a second (%s, KL %.1e)", m.ReadBound, flags,
			m.KL))
	}
	most := "at most " + strings.Join(each, ", ") + ", by how fast this memory reads now"
	if x.Expected == 0 {
		return "speed: " + most
	}
	return fmt.Sprintf("speed: about %.1f tokens a second, by how fast two layers of this width "+
		"are computed now; %s", x.Expected, most)
}

// copied says where the 8-bit copy of a model's dense weights is.
func copied(m doctor.Model) string {
	switch {
	case m.Modes[0].Dense != engine.DenseQ8:
		return "dense weights: as released"
	case m.Copy == "":
		return "dense weights: no 8-bit copy yet; it is made behind the first answers"
	}
	return "dense weights: in 8 bits, " + m.Copy
}

// verdict is the line that ends a check's table.
func verdict(ok bool) string {
	if ok {
		return "passed"
	}
	return "FAILED"
}
