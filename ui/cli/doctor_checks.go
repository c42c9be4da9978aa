// The two checks of ossrun doctor, as tables.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
	"github.com/ossrun/ossrun/runtime/engine/golden"
	"github.com/ossrun/ossrun/runtime/serve"
)

// goldenRow is one case in one mode; case "all" is the mode as a whole.
type goldenRow struct {
	Mode         string   `json:"mode"`
	Case         string   `json:"case"`
	Positions    int      `json:"positions"`
	MaxAbs       *float64 `json:"max_abs"` // null: not a number
	KLMean       *float64 `json:"kl_mean"`
	KLMedian     *float64 `json:"kl_median"`
	KLMax        *float64 `json:"kl_max"`
	Agree        int      `json:"argmax_equal"`
	Of           int      `json:"argmax_of"`
	Greedy       int      `json:"greedy_equal"`
	GreedyOf     int      `json:"greedy_of"`
	GapLost      *float64 `json:"gap_lost"`
	Milliseconds int64    `json:"ms"`
	OK           bool     `json:"ok"`
	Misses       []string `json:"misses,omitempty"`
}

// golden holds the device to a golden folder.
func (r *doctorReport) golden(ctx context.Context, out io.Writer, dev engine.Backend,
	dir string) error {
	fmt.Fprintf(out, "\ngolden %s on %s\n", dir, dev.Name())
	fmt.Fprintf(out, "%-6s %-8s %9s %8s %8s %9s %8s %8s %8s\n", "mode", "case", "positions",
		"max abs", "KL mean", "KL median", "argmax =", "greedy =", "time")
	ok, err := golden.Run(ctx, dir, dev, nil, func(c golden.CaseResult) {
		r.Golden = append(r.Golden, goldenRow{
			Mode: c.Mode, Case: c.Case, Positions: c.Positions, MaxAbs: finite(c.MaxAbs),
			KLMean: finite(c.KLMean), KLMedian: finite(c.KLMedian),
			KLMax: finite(c.KLMax), Agree: c.Agree, Of: c.Of, Greedy: c.Greedy,
			GreedyOf: c.GreedyOf, GapLost: finite(c.GapLost),
			Milliseconds: c.Elapsed.Milliseconds(), OK: c.OK(), Misses: c.Misses,
		})
		fmt.Fprintf(out,
			"%-6s %-8s %9d %8.1e %8.1e %9.1e %8s %8s %6dms",
			c.Mode, c.Case, c.Positions, c.MaxAbs, c.KLMean, c.KLMedian,
			fmt.Sprintf("%d/%d", c.Agree, c.Of), fmt.Sprintf("%d/%d", c.Greedy, c.GreedyOf),
			c.Elapsed.Milliseconds())
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
	r.pass(ok)
	return nil
}

// selftestRow is one operation on one instruction set: its worst error on all shapes, its speed at
// the published width.
type selftestRow struct {
	Device  string   `json:"device"`
	ISA     string   `json:"isa"`
	Op      string   `json:"op"`
	Error   *float64 `json:"error"` // relative to the size of the terms; null: not a number
	Bound   float64  `json:"bound"`
	GBs     float64  `json:"gb_per_s"`
	Percent float64  `json:"percent_of_bandwidth,omitempty"` // of a GPU's, as measured on it
	// of its matrices, at the most rows that were timed
	TFLOPs float64 `json:"tflop_per_s,omitempty"`

	// of a GPU's matrix unit in a bare loop, as measured on it just before
	PercentOfMatrix float64 `json:"percent_of_matrix_rate,omitempty"`

	OK      bool   `json:"ok"`
	Why     string `json:"why,omitempty"`
	Skipped string `json:"skipped,omitempty"` // the device has no such operation, it says
}

// error is the worst error for people.
func (r *selftestRow) error() string {
	if r.Error == nil {
		return "NaN"
	}
	return fmt.Sprintf("%.1e", *r.Error)
}

// verdict is what ends a row: nothing where the operation is right.
func (r *selftestRow) verdict() string {
	text := ""
	if !r.OK {
		text = "  FAILED: " + r.Why
	}
	if r.Skipped != "" {
		text += "  skipped: " + r.Skipped
	}
	return text
}

// selftest holds every operation of every instruction set to the float64 loops: on all shapes,
// those of timed under the clock too.
func (r *doctorReport) selftest(ctx context.Context, out io.Writer, dev engine.Device, shapes,
	timed []enginetest.Shape) error {
	fmt.Fprintf(out,
		"\nselftest on %s; GB/s at the width of the published models, one row\n", dev.Name())
	fmt.Fprintf(out, "%-7s %-22s %9s %9s %8s\n", "isa", "operation", "error", "allowed", "GB/s")
	ok := true
	for _, isa := range serve.ISAs() {
		rows, err := testOps(ctx, onHost(dev, engine.Settings{ISA: isa}), isa, shapes, timed)
		if err != nil {
			return err
		}
		for _, row := range rows {
			row.Device = dev.Name()
			r.Selftest = append(r.Selftest, *row)
			fmt.Fprintf(out, "%-7s %-22s %9s %9.1e %8.2f%s\n", row.ISA, row.Op, row.error(),
				row.Bound, row.GBs, row.verdict())
			ok = ok && row.OK
		}
	}
	fmt.Fprintf(out, "selftest: %s\n", verdict(ok))
	r.pass(ok)
	return nil
}

// opsOf runs every operation of a device; failures of operations are in the results.
type opsOf func(ctx context.Context, shapes []enginetest.Shape, timed bool,
	report func(enginetest.OpResult)) error

// onHost is that of a device of this process.
func onHost(dev engine.Device, s engine.Settings) opsOf {
	return func(ctx context.Context, shapes []enginetest.Shape, timed bool,
		report func(enginetest.OpResult)) error {
		_ = enginetest.Ops(ctx, dev, s, shapes, timed, report)
		return ctx.Err()
	}
}

// testOps runs all shapes and puts each operation's results into one row of an instruction set.
func testOps(ctx context.Context, ops opsOf, isa string, shapes,
	timed []enginetest.Shape) (rows []*selftestRow, err error) {
	byOp := map[string]*selftestRow{}
	gather := func(o enginetest.OpResult) {
		row := byOp[o.Op]
		if row == nil {
			row = &selftestRow{ISA: isa, Op: o.Op, Bound: o.Bound, Error: finite(0), OK: true}
			byOp[o.Op] = row
			rows = append(rows, row)
		}
		if row.Error != nil && !(o.Error <= *row.Error) {
			row.Error = finite(o.Error)
		}
		row.GBs, row.TFLOPs = max(row.GBs, o.GBs()), max(row.TFLOPs, o.TFLOPs())
		row.Skipped = o.Skipped
		if o.Failure != nil {
			row.OK, row.Why = false, fmt.Sprintf("%s: %s", o.Shape, o.Failure)
		}
	}
	if err := ops(ctx, shapes, false, gather); err != nil {
		return nil, err
	}
	return rows, ops(ctx, timed, true, gather)
}
