// ossrun doctor: the machine as ossrun sees it, and whether it computes correctly.
//
// Without flags it only inspects. --golden DIR compares every compute mode with golden logits,
// --selftest every operation with plain float64 loops, --sandbox attacks python's sandboxes; any
// failure gives exit code 1. stdout has only the report, as text or one JSON object; with
// --selftest, JSON lines of results precede it. Package runtime/serve/doctor does the work.

package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine/golden"
	"github.com/ossrun/ossrun/runtime/measure/bench"
	"github.com/ossrun/ossrun/runtime/process"
	"github.com/ossrun/ossrun/runtime/remote/local"
	"github.com/ossrun/ossrun/runtime/remote/vllm"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/runtime/serve/doctor"
	"github.com/ossrun/ossrun/runtime/tools"
	"github.com/ossrun/ossrun/runtime/tools/python"
)

func doctorCommand() *cli.Command {
	o, bundle := serve.DefaultOptions(), ""
	return &cli.Command{
		Name: "doctor",
		Flags: flagTable(
			funcFlag("golden", "", func(dir string) error {
				return checkExists("golden", filepath.Join(dir, "golden", "cases.json"))
			}),
			boolFlag("selftest"),
			boolFlag("verbose"),
			boolFlag("sandbox"),
			boolFlag("json"),
			outputFlag(&bundle, "bundle"),
			configFlag(), deviceFlags(&o)),
		Action: func(c *cli.Context) (err error) {
			if len(o.Settings.GPUs) > 1 && o.Settings.Device != "cpu" {
				return fail(exitUsage, "doctor checks one GPU at a time. Give --gpu one number")
			}
			if isTerminal(c.App.ErrWriter) { // the first line of the report takes its place
				fmt.Fprint(c.App.ErrWriter, "Measuring\r")
			}
			detected := tools.Detect()
			for _, one := range detected {
				o.ToolMemory += one.Memory
			}
			d, err := doctor.Open(c.Context, o, cmp.Or(c.String("config"), defaultConfigPath()),
				notify(Terminal{Err: c.App.ErrWriter}))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, d.Close()) }()
			for _, one := range detected {
				d.Tools = append(d.Tools, doctor.Tool(one))
			}
			addSurroundings(c.Context, d)
			if err := expectSpeeds(c.Context, d); err != nil {
				return err
			}
			return examine(c, d, bundle)
		},
	}
}

// examine prints the report and runs the checks. Text and JSON lines of the self-test are printed
// as results arrive, other JSON at the end.
func examine(c *cli.Context, d *doctor.Doctor, bundle string) error {
	text := textOutput(c)
	var out bytes.Buffer
	err := printSummary(&out, &d.Report)
	if c.Bool("verbose") {
		fmt.Fprintln(&out)
		err = errors.Join(err, printReport(&out, &d.Report))
	}
	if err != nil {
		return err
	}
	lines := out.String()
	if isTerminal(text) {
		lines = styled(text, foldLines(lines, widthOf(text)))
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
		show := (&selftestScreen{out: text}).show
		if c.Bool("json") {
			show = selftestLines(c.App.Writer)
		}
		if err := d.RunSelftest(c.Context, show); err != nil {
			return err
		}
	}
	if c.Bool("sandbox") {
		if err := attackSandboxes(c.Context, text, d); err != nil {
			return err
		}
	}
	if d.AddTraffic(); d.Worker != nil {
		fmt.Fprintf(text, "\nworker: %d steps, %d messages there, %d back\n", d.Worker.Steps,
			d.Worker.Sent, d.Worker.Received)
	}
	if c.Bool("json") {
		write := writeJSON
		if c.Bool("selftest") {
			write = writeJSONLine
		}
		if err := write(c.App.Writer, &d.Report); err != nil {
			return err
		}
	}
	if bundle != "" {
		if err := writeBundle(c, d, bundle); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(d.Attacks, func(a doctor.Attack) bool { return !a.Blocked }) {
		return fail(exitFailure, "a sandbox can be escaped. Set --python-tool to another one, or "+
			"remove python from --tools")
	}
	if d.Passed != nil && !*d.Passed {
		return fail(exitFailure, "a check failed: this build does not compute correctly on this "+
			"machine, or the golden is damaged")
	}
	return nil
}

func attackSandboxes(ctx context.Context, out io.Writer, d *doctor.Doctor) error {
	fmt.Fprintln(out)
	attacked := 0
	for _, name := range python.Sandboxes() {
		n, blocked, ways := len(d.Attacks), 0, 0
		err := python.AttackSandbox(ctx, name, func(v python.Verdict) {
			d.AddAttack(doctor.Attack(v))
			if v.Blocked {
				blocked, ways = blocked+1, ways+v.Ways
				fmt.Fprintf(out, "%-7s %-9s %s (%d)\n", name, "held", v.Attack, v.Ways)
			} else {
				fmt.Fprintf(out, "%-7s %-9s %s: %s\n", name, "NOT HELD", v.Attack, v.Detail)
			}
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && len(d.Attacks) > n:
			return fail(exitFailure, "the attacks on %s ended early: %s", name, err)
		case err != nil:
			why, _, _ := strings.Cut(err.Error(), "\n")
			fmt.Fprintf(out, "%-7s not used: %s\n", name, why)
		default:
			attacked++
			fmt.Fprintf(out, "%-7s held %d of %d attacks (%d ways); it tried no others\n", name,
				blocked, len(d.Attacks)-n, ways)
		}
	}
	if attacked == 0 {
		return fail(exitFailure, "no sandbox for python works here. Install bubblewrap or podman")
	}
	return nil
}

func runGolden(ctx context.Context, out io.Writer, d *doctor.Doctor, dir string) error {
	fmt.Fprintf(out, "\ngolden %s on %s\n", dir, d.Device.Name)
	fmt.Fprintf(out, "%-29s %-8s %9s %8s %8s %9s %8s %8s %8s\n", "mode", "case", "positions",
		"max abs", "KL mean", "KL median", "argmax =", "greedy =", "time")
	ok, err := d.RunGolden(ctx, dir, func(c golden.CaseResult) {
		fmt.Fprintf(out, "%-29s %-8s %9d %8.1e %8.1e %9.1e %8s %8s %6dms", c.Mode, c.Case,
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
	fmt.Fprintf(out, "golden: %s\n", verdicts[ok])
	return nil
}

var expectedRates = bench.Expect // takes a second; tests replace it

func expectSpeeds(ctx context.Context, d *doctor.Doctor) error {
	var list []*doctor.Model
	var specs []models.Spec
	for i := range d.Models {
		if m := &d.Models[i]; m.Fits && m.Name != models.Demo {
			list, specs = append(list, m), append(specs, m.Spec)
		}
	}
	if d.Backend().Caps().Discrete || len(list) == 0 {
		return nil
	}
	rates, err := expectedRates(ctx, d.Backend(), specs,
		serve.DefaultsFor(d.Backend(), checkpoint.Model{}, specs[0]))
	if err != nil {
		return fmt.Errorf("the speed to expect: %w", err)
	}
	for i, m := range list {
		m.Expect(rates[i])
	}
	d.Busy = serve.IsBusy()
	return nil
}

// addSurroundings adds facts outside the engine: running servers, and vLLM's problems here.
func addSurroundings(ctx context.Context, d *doctor.Doctor) {
	list, _ := local.Running(ctx) // an unreadable folder has no servers of ours
	d.Servers = mapSlice(list, func(s local.Server) doctor.Server {
		return doctor.Server{PID: s.PID, URL: s.URL, State: string(s.State),
			Models: mapSlice(s.Models, func(m local.Model) string { return m.Name })}
	})
	d.Port = portFor(defaultAddress, d.Servers)
	names := mapSlice(d.GPUs.GPUs, func(g detect.GPU) string { return g.Name })
	d.Troubles = vllm.TroublesOn(names...)
}

const defaultAddress = "127.0.0.1:8000"

// portFor reports whether a server could listen at an address now.
func portFor(address string, running []doctor.Server) doctor.Port {
	p := doctor.Port{Address: address}
	l, err := net.Listen("tcp", address)
	if err == nil {
		err = l.Close()
	}
	switch isHere := func(s doctor.Server) bool { return s.URL == "http://"+address }; {
	case slices.ContainsFunc(running, isHere):
		p.Unavailable = "one of the servers above has it"
	case errors.Is(err, syscall.EADDRINUSE):
		p.Unavailable = "another program has it; ossrun serve --port takes another, 0 any " +
			"that is free"
	case err != nil:
		p.Unavailable = err.Error()
	}
	if err := process.OwnersAreKnown(); err != nil {
		p.OtherUsers = err.Error()
	}
	return p
}

func writeBundle(c *cli.Context, d *doctor.Doctor, file string) error {
	config, _ := os.ReadFile(d.Config.Path) // may be missing
	info, err := fullBuild()
	if err != nil {
		return err
	}
	b := doctor.Bundle{Version: info.String(), Report: &d.Report, Config: config, Time: time.Now()}
	for _, v := range variables() {
		b.Names = append(b.Names, v.names...)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fail(exitUsage, "--bundle: %s", err)
	}
	if err := errors.Join(b.Write(f), f.Close()); err != nil {
		return fail(exitFailure, "--bundle: %s", err)
	}
	fmt.Fprintf(c.App.ErrWriter, "%s has the report; look at it before you send it\n", file)
	return nil
}
