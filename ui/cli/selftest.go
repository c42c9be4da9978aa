// The self-test of ossrun doctor on the screen: tables whose rows come as they are measured.

package cli

import (
	"fmt"
	"io"

	"github.com/ossrun/ossrun/runtime/serve/doctor"
)

// selftestScreen prints what the self-test shows.
type selftestScreen struct {
	out          io.Writer
	gpu          bool    // bandwidth and proofs have come: the columns are a GPU's
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
	case doctor.Rates: // each unit in a bare loop, and the kernels' products beside it
		print("%-27s %8s %8s  %s\n", "product of matrices", "TFLOP/s", "of unit",
			"unit, TFLOP/s in a bare loop")
		for _, r := range x {
			print("%-27s %8.1f %7.1f%%  %s, %.1f\n", r.Product, r.TFLOPs, r.Percent, r.Unit,
				r.UnitTFLOPs)
		}
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
	case doctor.Faster:
		print("the faster here: OSSRUN_DECODE_KERNEL=%s\n", x)
	case doctor.Verdict:
		print("selftest: %s\n", verdict(bool(x)))
	}
}

// row is one operation.
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

// speed is a whole model at one point, or one stream of it by one decode kernel.
func (s *selftestScreen) speed(x doctor.Speed) {
	switch {
	case x.Wrong:
		fmt.Fprintf(s.out, "one stream, decode kernel %s: not timed, it was found wrong\n",
			x.Decode)
	case x.Decode != "":
		fmt.Fprintf(s.out, "one stream, decode kernel %-10s %9.1f tokens/s %9.1f GB/s\n", x.Decode,
			x.TokensPerSecond, x.GBs)
	default:
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
}
