// ossrun bench ops: each operation of a step beside what the machine can read and multiply.

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/bench"
)

func benchOpsCommand() *cli.Command {
	v := newBench()
	v.synthetic, v.layers = "20b", 2 // one of each kind of attention
	v.bench.Batches, v.bench.Prefill = []int{8, 64}, []int{512}
	return &cli.Command{
		Name:      "ops",
		Usage:     "measure each operation of a step",
		ArgsUsage: "[OPERATION ...]",
		Description: "Example: ossrun bench ops \"attend full\" gate_up --batch 8 " +
			"--context 4096\n\n" +
			"Operations are timed inside of steps, so their weights come from memory. Without " +
			"--synthetic and\n--model it measures two layers of random weights of 20b's width.",
		Flags: v.measured(),
		Action: func(c *cli.Context) error {
			t := Terminal{In: c.App.Reader, Out: c.App.Writer, Err: c.App.ErrWriter}
			switch {
			case c.IsSet("synthetic") && !c.IsSet("layers"):
				v.layers = 0
			case c.IsSet("model") && !c.IsSet("synthetic"):
				v.synthetic = ""
				if !c.IsSet("layers") {
					v.layers = 0
				}
			}
			return v.onDevice(c, t, func(x benched) error { return v.ops(c, x) })
		},
	}
}

func (v *benchVerb) ops(c *cli.Context, x benched) error {
	r, err := bench.RunOps(c.Context, x.on, x.gauge, x.ckpt, v.bench, c.Args().Slice())
	interrupted := errors.Is(err, context.Canceled)
	if err != nil && (!interrupted || r == nil) {
		if interrupted {
			return err
		}
		return fail(exitFailure, "%s", err)
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
