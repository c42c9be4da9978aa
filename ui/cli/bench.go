// ossrun bench: tokens a second of prefill, decode, batches and long contexts, compared with the
// machine's read and multiply rates; bench ops: the same for each operation of a step.
//
// --synthetic makes random weights of a model's size in memory, to know the speed before
// downloading 13 GB. Progress goes to stderr; stdout has only the table or the JSON.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/measure/bench"
	"github.com/ossrun/ossrun/runtime/serve"
)

type benchVerb struct {
	options    serve.Options
	bench      bench.Options
	synthetic  string
	layers     int
	suite      benchSuite
	copies     bool     // --copy
	operations []string // operations; none: all

	save                           bool
	resultDir, resultFile, compare string
}

// newBench has the default measurements, those of llama-bench.
func newBench() *benchVerb {
	v := &benchVerb{options: serve.DefaultOptions(), bench: bench.Options{Rounds: 3, Steps: 128,
		Prefill: []int{512, 2048}, Batches: []int{1, 2, 4, 8, 16, 32, 64},
		Contexts: []int{4096, 16384}}}
	v.options.Settings.Compute = engine.Int8
	return v
}

func benchCommand(t Terminal) *cli.Command {
	v := newBench()
	flags := flagTable(v.measureFlags(),
		minFlag(&v.bench.Steps, "steps", 1),
		switchFlag(&v.bench.Plain, "plain"),
		switchFlag(&v.copies, "copy"),
		groupBenchFile,
		switchFlag(&v.save, "save-result"),
		textFlag(&v.resultDir, "result-dir"),
		textFlag(&v.resultFile, "result-filename"),
		inputFlag(&v.compare, "compare"),
		v.suite.flags())
	return &cli.Command{
		Name:        "bench",
		Flags:       flags,
		Subcommands: []*cli.Command{benchServeCommand(), benchOpsCommand(t)},
		Action: func(c *cli.Context) error {
			if v.compare != "" {
				return v.comparison(c)
			}
			if name := c.Args().First(); name == "throughput" || name == "latency" {
				return fail(exitUsage, "vLLM's bench %s is ossrun bench, which measures both "+
					"without a server. Run ossrun bench --help", name)
			}
			if err := noArguments(c); err != nil {
				return err
			}
			if v.copies && (v.suite.name != "" || v.save || v.resultFile != "") {
				return fail(exitUsage, "--copy prints its own table. Remove --suite and "+
					"--save-result; --json can be saved in a file")
			}
			if v.suite.name != "" {
				return v.suite.run(c, t, v.options.Model)
			}
			return v.onDevice(c, t, func(x benchTarget) error { return v.run(c, t, x) })
		},
	}
}

func (v *benchVerb) measureFlags() []cli.Flag {
	s, o := &v.options.Settings, &v.bench
	list := func(to *[]int, name string, least int) cli.Flag {
		standard := strings.Trim(strings.ReplaceAll(fmt.Sprint(*to), " ", ","), "[]")
		return intsFlag(to, name, standard, least, "512,2048")
	}
	return flagTable(
		funcFlag("synthetic", v.synthetic, func(shape string) error {
			v.synthetic = shape
			_, err := syntheticSpec(shape, 0)
			return err
		}),
		intFlag(&v.layers, "layers"),
		computeFlag(s, engine.Int8),
		denseFlag(s),
		cacheFlag(s),
		checkedFlag("isa", "", "must be one of "+strings.Join(serve.ISAs(), ", "),
			func(v string) bool {
				s.ISA = v
				return v == "" || slices.Contains(serve.ISAs(), v)
			}),
		list(&o.Prefill, "prefill", 1),
		list(&o.Batches, "batch", 1),
		list(&o.Contexts, "context", 0),
		minFlag(&o.Rounds, "rounds", 1),
		boolFlag("json"), engineFlags(&v.options))
}

type benchTarget struct {
	backend engine.Backend
	gauge   serve.Gauge
	ckpt    *checkpoint.Checkpoint
	about   bench.About
}

func (v *benchVerb) onDevice(c *cli.Context, t Terminal,
	measure func(benchTarget) error) (err error) {
	var random models.Spec
	if v.synthetic != "" {
		if random, err = syntheticSpec(v.synthetic, v.layers); err != nil {
			return err
		}
	} else if v.layers != 0 {
		return fail(exitUsage, "--layers needs --synthetic")
	}
	m, err := serve.New(c.Context, modelOptions(c, t, &v.options))
	if err != nil {
		return err
	}
	defer func() {
		failed, _ := m.Close()
		err = errors.Join(err, failed)
	}()
	ckpt, err := v.checkpoint(c, t, m, random)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ckpt.Close()) }()
	v.bench.Settings = v.options.Settings
	if m.OnGPU() && (!c.IsSet("compute") || v.bench.Settings.Compute == "") {
		v.bench.Settings.Compute = engine.Rounded // serve's default on a GPU
	}
	if m.OnGPU() {
		v.bench.Settings.MaxNumBatchedTokens = m.Effective().Settings.MaxNumBatchedTokens
	}
	v.bench.Settings.Dense = serve.DenseFor(ckpt.Spec, v.bench.Settings, m.Backend().Caps())
	if ckpt.Path != "" {
		v.bench.Settings.DenseCache = m.Effective().Settings.DenseCache
	}
	v.bench.Progress = func(line string) { fmt.Fprintln(t.Err, line) }
	gauge, err := serve.GaugeOf(c.Context, m.Backend())
	if err != nil {
		return err
	}
	about, err := aboutBench(m.Backend())
	if err != nil {
		return err
	}
	return measure(benchTarget{m.Backend(), gauge, ckpt, about})
}

func (v *benchVerb) run(c *cli.Context, t Terminal, x benchTarget) error {
	if v.copies {
		return v.copy(c, x)
	}
	report, err := bench.Run(c.Context, x.backend, x.gauge, x.ckpt, v.bench)
	interrupted := errors.Is(err, context.Canceled)
	if err != nil && (!interrupted || report == nil) {
		return err
	}
	if interrupted {
		fmt.Fprintln(t.Err, "interrupted: what was measured before follows")
	}
	report.About = x.about
	var printed error
	if c.Bool("json") {
		printed = writeJSON(c.App.Writer, report.Flat())
	} else {
		printed = printBench(c.App.Writer, report)
	}
	if err = cmp.Or(err, printed); err != nil {
		return err
	}
	return v.write(report, t)
}

func (v *benchVerb) checkpoint(c *cli.Context, t Terminal, m *serve.Models, spec models.Spec) (
	*checkpoint.Checkpoint, error) {
	if v.synthetic == "" {
		source, err := m.Find(absentModel(c, t, false))
		if err != nil {
			return nil, err
		}
		return m.Open(source)
	}
	s := serve.DefaultsFor(m.Backend(), checkpoint.Model{}, spec)
	s.Compute = cmp.Or(v.options.Settings.Compute, s.Compute)
	s.Dense = cmp.Or(v.options.Settings.Dense, s.Dense)
	if err := bench.CheckOperations(spec, s, v.operations); err != nil { // before making weights
		return nil, fail(exitUsage, "%s", err)
	}
	_, free := m.Backend().Memory()
	short := func(need, free int64) error {
		return fail(exitModel, "random weights of %s need %s, %s are free: take fewer with "+
			"--layers", v.synthetic, gigabytes(need), gigabytes(free))
	}
	if spec.WeightBytes() > free {
		return nil, short(spec.WeightBytes(), free)
	}
	fmt.Fprintf(t.Err, "making %s of random weights\n", gigabytes(spec.WeightBytes()))
	random := checkpoint.Synthetic
	if m.OnGPU() { // one layer is made in the host's memory first
		_, free, err := serve.HostMemory()
		if need := checkpoint.SyntheticBytes(spec); err != nil || need > free {
			return nil, cmp.Or(err, short(need, free))
		}
		random = checkpoint.SyntheticUploaded
	}
	ckpt, err := random(spec, 1)
	if err != nil {
		return nil, fail(exitModel, "%s", err)
	}
	return ckpt, nil
}

func syntheticSpec(shape string, layers int) (models.Spec, error) {
	var s models.Spec
	switch shape {
	case "20b":
		s = models.Spec20B()
	case "120b":
		s = models.Spec120B()
	default:
		s = models.Spec20B()
		if n, err := fmt.Sscanf(shape, "%dx%dx%dx%d", &s.Layers, &s.Hidden, &s.Intermediate,
			&s.Experts); n != 4 || err != nil ||
			fmt.Sprintf("%dx%dx%dx%d", s.Layers, s.Hidden, s.Intermediate, s.Experts) != shape {
			return s, fail(exitUsage, "--synthetic must be 20b, 120b or layers x hidden x "+
				"intermediate x experts, as 2x2880x2880x32, not %q", shape)
		}
	}
	if layers < 0 || layers > s.Layers {
		return s, fail(exitUsage, "--layers must lie between 1 and %d, not %d", s.Layers, layers)
	}
	within := func(n, least, most int) bool { return n >= least && n <= most }
	if !within(s.Layers, 1, 1024) || !within(s.Hidden, 32, 1<<16) ||
		!within(s.Intermediate, 32, 1<<16) || !within(s.Experts, s.ExpertsPerToken, 1<<12) {
		return s, fail(exitUsage, "--synthetic %s is not a shape that a gpt-oss can have", shape)
	}
	s.Name = "synthetic " + shape
	if layers > 0 && layers < s.Layers {
		s.Name = fmt.Sprintf("synthetic %s, %d of %d layers", shape, layers, s.Layers)
		s.Layers = layers
	}
	return s, nil
}

func benchOpsCommand(t Terminal) *cli.Command {
	v := newBench()
	v.synthetic, v.layers = "20b", 2 // one of each kind of attention
	v.bench.Batches, v.bench.Prefill = []int{8, 64}, []int{512}
	return &cli.Command{
		Name:  "ops",
		Flags: v.measureFlags(),
		Action: func(c *cli.Context) error {
			switch {
			case c.IsSet("synthetic") && !c.IsSet("layers"):
				v.layers = 0
			case onCommandLine(c, "model") && !c.IsSet("synthetic"):
				v.synthetic = ""
				if !c.IsSet("layers") {
					v.layers = 0
				}
			}
			v.operations = c.Args().Slice()
			return v.onDevice(c, t, func(x benchTarget) error { return v.ops(c, x) })
		},
	}
}

func (v *benchVerb) ops(c *cli.Context, x benchTarget) error {
	r, err := bench.RunOps(c.Context, x.backend, x.gauge, x.ckpt, v.bench, v.operations)
	if err != nil && (!errors.Is(err, context.Canceled) || r == nil) {
		return err
	}
	r.About = x.about
	if c.Bool("json") {
		return errors.Join(writeJSON(c.App.Writer, map[string]any{"about": r.About,
			"model": r.Model, "layers": r.Layers, "device": r.Device, "compute": r.Compute,
			"dense": r.Dense, "kv": r.KV, "read_gb_s": r.ReadGBs, "vnni_tops": r.PeakTOPS,
			"vnni_unit": r.PeakUnit, "steps": r.Steps}), err)
	}
	w := columns(c.App.Writer)
	printHead(w, &r.Report)
	for _, s := range r.Steps {
		fmt.Fprintln(w)
		if failed := printOperations(w, fmt.Sprintf("%s, %.1f experts", s.Test, s.Experts),
			s.Operations); failed != nil {
			return failed
		}
	}
	return errors.Join(w.Flush(), err)
}
