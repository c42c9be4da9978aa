// ossrun bench: tokens a second of prefill, decode, batches and long contexts, beside what the machine can read and multiply.
//
// --synthetic makes random weights of a model's size in memory, so speed can be known before 13 GB are downloaded. Progress goes to
// stderr; stdout holds the table or the JSON alone.

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/bench"
	"github.com/ossrun/ossrun/runtime/engine"
)

func benchCommand() *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "synthetic", Usage: "random weights of this `SHAPE`: 20b, 120b, or layers x hidden x intermediate x experts, as 2x2880x2880x32"},
		&cli.IntFlag{Name: "layers", Usage: "with --synthetic: only so many `LAYERS`, for less memory; the result says so"},
		&cli.StringFlag{Name: "compute", Value: engine.Int8, Usage: "activations into the experts: exact or int8"},
		&cli.StringFlag{Name: "dense", Value: engine.DenseBF16, Usage: "attention and unembedding weights: bf16, or q8, a copy in 8 bits (of a real model: made once, kept in the cache folder; 1.3 GB for 20b)"},
		&cli.StringFlag{Name: "isa", Usage: "instruction set (default: the best there is)"},
		&cli.StringFlag{Name: "prefill", Value: "512,2048", Usage: "prompt lengths"},
		&cli.StringFlag{Name: "batch", Value: "8", Usage: "numbers of sequences decoded together"},
		&cli.StringFlag{Name: "context", Usage: "also decode behind so many tokens, as 4096,16384"},
		&cli.IntFlag{Name: "rounds", Value: 5, Usage: "rounds of each measurement; medians count"},
		&cli.IntFlag{Name: "steps", Value: 16, Usage: "decode steps of a round"},
		&cli.BoolFlag{Name: "plain", Usage: "without the profiles of where a step's time goes, which take three steps of each kind"},
		&cli.BoolFlag{Name: "json", Usage: "as one JSON object"},
	}
	for _, f := range engineFlags() {
		if name := f.Names()[0]; name != "max-model-len" {
			flags = append(flags, f)
		}
	}
	return &cli.Command{
		Name:  "bench",
		Usage: "measure tokens per second, and how near they are to what the machine can do",
		Description: "Example: ossrun bench --synthetic 20b --layers 4 --json\n\n" +
			"Bandwidth and multiplications are measured between the rounds, since other work on the machine changes\n" +
			"both. Without --synthetic the model of --model, or the best one that is here, is measured.\n\n" + exitCodes,
		Flags: flags,
		Action: func(c *cli.Context) error {
			return runBench(c, Terminal{In: c.App.Reader, Out: c.App.Writer, Err: c.App.ErrWriter})
		},
	}
}

func runBench(c *cli.Context, t Terminal) (err error) {
	if c.NArg() > 0 {
		return fail(exitUsage, "bench takes no arguments, but got %q; see ossrun bench --help", c.Args().First())
	}
	o, err := benchOptions(c)
	if err != nil {
		return err
	}
	dev, err := openDevice(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	ckpt, err := benchModel(c, t, dev)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ckpt.Close()) }()
	if ckpt.Path != "" {
		o.Engine.DenseCache = denseCache()
	}
	o.Progress = func(line string) { fmt.Fprintln(t.Err, line) }
	report, err := bench.Run(c.Context, dev, ckpt, o)
	if err != nil {
		return fail(exitFailure, "%s", err)
	}
	if c.Bool("json") {
		encoder := json.NewEncoder(c.App.Writer)
		encoder.SetIndent("", "  ")
		return encoder.Encode(report.Flat())
	}
	return printBench(c.App.Writer, report)
}

func benchOptions(c *cli.Context) (o bench.Options, err error) {
	o = bench.Options{Engine: engine.Settings{Compute: c.String("compute"), ISA: c.String("isa"), Dense: c.String("dense")}, Rounds: c.Int("rounds"), Steps: c.Int("steps"), Plain: c.Bool("plain")}
	if o.Rounds < 1 || o.Steps < 1 {
		return o, fail(exitUsage, "--rounds and --steps must be at least 1")
	}
	for name, to := range map[string]*[]int{"prefill": &o.Prefill, "batch": &o.Batches, "context": &o.Contexts} {
		if *to, err = numbers(name, c.String(name)); err != nil {
			return o, err
		}
	}
	return o, nil
}

// numbers reads a list such as 512,2048; nothing gives an empty list.
func numbers(flag, text string) ([]int, error) {
	list := []int{}
	for _, f := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < 1 {
			return nil, fail(exitUsage, "--%s wants numbers such as 512,2048, not %q", flag, text)
		}
		list = append(list, n)
	}
	return list, nil
}

func benchModel(c *cli.Context, t Terminal, dev engine.Device) (*checkpoint.Checkpoint, error) {
	shape := c.String("synthetic")
	if shape == "" {
		if c.Int("layers") != 0 {
			return nil, fail(exitUsage, "--layers goes with --synthetic")
		}
		found, err := chooseModel(c, t, dev, false)
		if err != nil {
			return nil, err
		}
		ckpt, err := found.Open()
		if err != nil {
			return nil, &exitError{exitModel, err.Error()}
		}
		if dev.Caps().Discrete {
			return ckpt, nil
		}
		if err := fill(c.Context, t, dev, replaced(found, c.String("dense")))(ckpt); err != nil {
			return nil, errors.Join(err, ckpt.Close())
		}
		return ckpt, nil
	}
	spec, err := syntheticSpec(shape, c.Int("layers"))
	if err != nil {
		return nil, err
	}
	if _, free := dev.Memory(); spec.WeightBytes() > free {
		return nil, fail(exitModel, "random weights of %s need %s, %s are free: take fewer with --layers", shape, gigabytes(spec.WeightBytes()), gigabytes(free))
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
		if n, err := fmt.Sscanf(shape, "%dx%dx%dx%d", &s.Layers, &s.Hidden, &s.Intermediate, &s.Experts); n != 4 || err != nil ||
			fmt.Sprintf("%dx%dx%dx%d", s.Layers, s.Hidden, s.Intermediate, s.Experts) != shape {
			return s, fail(exitUsage, "--synthetic must be 20b, 120b or layers x hidden x intermediate x experts, as 2x2880x2880x32, not %q", shape)
		}
	}
	if layers < 0 || layers > s.Layers {
		return s, fail(exitUsage, "--layers must lie between 1 and %d, not %d", s.Layers, layers)
	}
	if s.Layers < 1 || s.Hidden < 32 || s.Intermediate < 32 || s.Experts < s.ExpertsPerToken || s.Layers > 1024 || s.Hidden > 1<<16 || s.Intermediate > 1<<16 || s.Experts > 1<<12 {
		return s, fail(exitUsage, "--synthetic %s is no shape that a gpt-oss could have", shape)
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
	fmt.Fprintf(w, "limits\t%.1f GB/s of plain reads, %.3f TOPS of %s\n", r.ReadGBs, r.PeakTOPS, r.PeakUnit)
	if r.DenseBytes > 0 {
		fmt.Fprintf(w, "8-bit copy\t%s, in place of the dense weights\n", gigabytes(r.DenseBytes))
	}
	for _, p := range r.Prefill {
		fmt.Fprintf(w, "prefill %d\t%.1f tok/s (%.1f to %.1f), %.0f %% of the multiplications\n", p.Tokens, p.TokensPerS, p.Least, p.Most, 100*p.OfMultiply)
	}
	for _, d := range r.Decode {
		fmt.Fprintf(w, "decode %d at %d\t%.2f tok/s (%.2f to %.2f), %.0f %% of the reads, %s a step\n", d.Tokens, d.Context, d.TokensPerS, d.Least, d.Most,
			100*d.OfRead, gigabytes(d.BytesPerStep))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, p := range []struct {
		name string
		list []bench.Operation
	}{{"a step of the prompt", r.PrefillProfile}, {"a decode step", r.DecodeProfile}, {"a step of a batch", r.BatchProfile}} {
		if p.list == nil {
			continue
		}
		fmt.Fprintf(w, "\n%s\tms\t%%\tGB/s\tof reads\tTOPS\tof multiplications\n", p.name)
		for _, o := range p.list {
			fmt.Fprintf(w, "%s\t%.2f\t%.1f\t%.1f\t%.0f %%\t%.3f\t%.0f %%\n", o.Name, o.Milliseconds, o.Percent, o.GBPerS, 100*o.OfRead, o.TOPS, 100*o.OfMultiply)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}
