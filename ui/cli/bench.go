// ossrun bench: tokens a second of prefill, decode, batches and long contexts, beside what the
// machine can read and multiply.
//
// --synthetic makes random weights of a model's size in memory, so speed can be known before 13 GB
// are downloaded. Progress goes to stderr; stdout holds the table or the JSON alone.

package cli

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/bench"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/serve"
)

// benchVerb is what the flags of ossrun bench say.
type benchVerb struct {
	options   serve.Options
	bench     bench.Options
	synthetic string
	layers    int
}

func benchCommand() *cli.Command {
	v := &benchVerb{options: serve.DefaultOptions(), bench: bench.Options{Rounds: 5, Steps: 16,
		Prefill: []int{512, 2048}, Batches: []int{8}}}
	s, o := &v.options.Settings, &v.bench
	s.Compute = engine.Int8
	list := func(to *[]int, name, standard, usage string) cli.Flag {
		return parsed(name, standard, "", usage, func(v string) error {
			return readNumbers(to, name, v, 1, "512,2048")
		})
	}
	flags := []cli.Flag{
		text(&v.synthetic, "synthetic", "", "random weights of this `SHAPE`: 20b, 120b, or "+
			"layers x hidden x intermediate x experts, as 2x2880x2880x32"),
		&cli.IntFlag{Name: "layers", Destination: &v.layers,
			Usage: "with --synthetic: make only so many `LAYERS`, to take less memory; the " +
				"report says so"},
		computeFlag(s, engine.Int8, "", "activations into the experts: exact or int8"),
		oneOf(&s.Dense, "dense", "", "attention and unembedding weights: bf16, or q8, an 8-bit "+
			"copy (of a real model it is made once and kept in the cache folder; 1.3 GB for 20b)",
			engine.DenseBF16, engine.DenseQ8),
		text(&s.ISA, "isa", "", "instruction set (default: the best there is)"),
		list(&o.Prefill, "prefill", "512,2048", "prompt lengths"),
		list(&o.Batches, "batch", "8", "numbers of sequences decoded together"),
		list(&o.Contexts, "context", "", "also measure decoding after contexts of so many "+
			"tokens, as 4096,16384"),
		atLeast(&o.Rounds, "rounds", 1, "", "rounds of each measurement; the median is reported"),
		atLeast(&o.Steps, "steps", 1, "", "decode steps of a round"),
		toggle(&o.Plain, "plain", "", "leave out the profiles of where a step's time goes, which "+
			"take three steps of each kind"),
		&cli.BoolFlag{Name: "json", Usage: "as one JSON object"},
	}
	return &cli.Command{
		Name:  "bench",
		Usage: "measure tokens per second, and how near they are to what the machine can do",
		Description: "Example: ossrun bench --synthetic 20b --layers 4 --json\n\n" +
			"Bandwidth and multiplications are measured between the rounds, since other work on " +
			"the machine changes\n" +
			"both. Without --synthetic the model of --model, or the best one that is here, is " +
			"measured.",
		Flags:       append(flags, engineFlags(&v.options)...),
		Subcommands: []*cli.Command{benchServeCommand()},
		Action: func(c *cli.Context) error {
			return v.run(c, Terminal{In: c.App.Reader, Out: c.App.Writer, Err: c.App.ErrWriter})
		},
	}
}

func (v *benchVerb) run(c *cli.Context, t Terminal) (err error) {
	if err := noArguments(c); err != nil {
		return err
	}
	m, err := openModels(c.Context, c, t, &v.options)
	if err != nil {
		return err
	}
	defer func() {
		failed, _ := m.Close()
		err = errors.Join(err, failed)
	}()
	ckpt, err := v.checkpoint(c, t, m)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ckpt.Close()) }()
	v.bench.Settings = v.options.Settings
	if ckpt.Path != "" {
		v.bench.Settings.DenseCache = m.Settled().Settings.DenseCache
	}
	v.bench.Progress = func(line string) { fmt.Fprintln(t.Err, line) }
	dev := serve.HostDevice(m.Backend())
	if dev == nil {
		return fail(exitFailure, "%s cannot measure its own limits", m.Backend().Name())
	}
	report, err := bench.Run(c.Context, dev, ckpt, v.bench)
	if err != nil {
		return fail(exitFailure, "%s", err)
	}
	if c.Bool("json") {
		return writeJSON(c.App.Writer, report.Flat())
	}
	return printBench(c.App.Writer, report)
}

// checkpoint opens the model, or makes one of random weights.
func (v *benchVerb) checkpoint(c *cli.Context, t Terminal, m *serve.Models) (*checkpoint.Checkpoint,
	error) {
	shape := v.synthetic
	if shape == "" {
		if v.layers != 0 {
			return nil, fail(exitUsage, "--layers goes with --synthetic")
		}
		found, err := m.Find(absentModel(c, t, m, false))
		if err != nil {
			return nil, err
		}
		return m.Open(found)
	}
	spec, err := syntheticSpec(shape, v.layers)
	if err != nil {
		return nil, err
	}
	if _, free := m.Backend().Memory(); spec.WeightBytes() > free {
		return nil, fail(exitModel,
			"random weights of %s need %s, %s are free: take fewer with --layers",
			shape, gigabytes(spec.WeightBytes()), gigabytes(free))
	}
	fmt.Fprintf(t.Err, "making %s of random weights\n", gigabytes(spec.WeightBytes()))
	ckpt, err := checkpoint.Synthetic(spec, 1)
	if err != nil {
		return nil, fail(exitModel, "%s", err)
	}
	return ckpt, nil
}

// syntheticSpec reads --synthetic and --layers.
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

func printBench(out io.Writer, r *bench.Report) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "model\t%s, %d layers, %s of weights\n", r.Model, r.Layers, gigabytes(r.Weights))
	fmt.Fprintf(w, "device\t%s; compute %s, dense %s, kv %s\n", r.Device, r.Compute, r.Dense, r.KV)
	fmt.Fprintf(w,
		"limits\t%.1f GB/s of plain reads, %.3f TOPS of %s\n", r.ReadGBs, r.PeakTOPS, r.PeakUnit)
	if r.DenseBytes > 0 {
		fmt.Fprintf(w, "8-bit copy\t%s, in place of the dense weights\n", gigabytes(r.DenseBytes))
	}
	for _, p := range r.Prefill {
		fmt.Fprintf(w,
			"prefill %d\t%.1f tok/s (%.1f to %.1f), %.0f %% of the multiplications\n",
			p.Tokens, p.TokensPerS, p.Least, p.Most, 100*p.OfMultiply)
	}
	for _, d := range r.Decode {
		fmt.Fprintf(w,
			"decode %d at %d\t%.2f tok/s (%.2f to %.2f), %.0f %% of the reads, %s a step\n",
			d.Tokens, d.Context, d.TokensPerS, d.Least, d.Most,
			100*d.OfRead, gigabytes(d.BytesPerStep))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, p := range []struct {
		name string
		list []bench.Operation
	}{
		{"a step of the prompt", r.PrefillProfile},
		{"a decode step", r.DecodeProfile},
		{"a step of a batch", r.BatchProfile},
	} {
		if p.list == nil {
			continue
		}
		fmt.Fprintf(w, "\n%s\tms\t%%\tGB/s\tof reads\tTOPS\tof multiplications\n", p.name)
		for _, o := range p.list {
			fmt.Fprintf(w,
				"%s\t%.2f\t%.1f\t%.1f\t%.0f %%\t%.3f\t%.0f %%\n",
				o.Name, o.Milliseconds, o.Percent, o.GBPerS, 100*o.OfRead, o.TOPS,
				100*o.OfMultiply)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}
