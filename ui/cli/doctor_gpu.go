// What ossrun doctor does on a GPU: choosing it, holding every operation to plain float64 loops on
// it, and timing whole models of random weights. Speeds stand beside the bandwidth that was
// measured on the same card just before.

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/ossrun/ossrun/gpu"
	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
)

// wholeReport is the part of --selftest that runs whole models.
type wholeReport struct {
	Model     string         `json:"model"`
	Bandwidth float64        `json:"measured_gb_per_s"`
	Points    []device.Speed `json:"points"`
}

// gpuSelftest is the self-test's extent on a GPU.
type gpuSelftest struct {
	shapes, timed []enginetest.Shape
	whole         models.Spec
	points        []device.Point
	rounds        int
}

// What a whole model needs beside its weights: on the card for steps of 2,048 tokens and the cache
// of eight sequences of 4,096, on the host, where the weights are made, for the program.
const (
	besideOnCard = 2 << 30
	besideOnHost = 1 << 30
)

// memoryAndCaps is a device or a backend.
type memoryAndCaps interface {
	Memory() (total, free int64)
	Caps() engine.Caps
}

// fullGPUSelftest is what --selftest does: small shapes for correctness, the published width for
// speed, and the 20b's shape with as many layers as fit on the card and, while they are made, in
// the host's memory; with none where two do not fit.
func fullGPUSelftest(dev, host memoryAndCaps) gpuSelftest {
	spec := models.Spec20B()
	_, free := dev.Memory()
	_, hostFree := host.Memory()
	room := min(free-besideOnCard, hostFree-besideOnHost)
	if dev.Caps().Integrated { // both copies lie in the same memory
		room = min(room, (hostFree-besideOnCard-besideOnHost)/2)
	}
	for spec.Layers > 0 && spec.WeightBytes() > room {
		spec.Layers -= 2
	}
	return gpuSelftest{enginetest.Small(), []enginetest.Shape{enginetest.Published(1),
		enginetest.Published(64)}, spec, device.Points(), 5}
}

// selftestGPU runs the self-test on a card and reports as it goes.
func (r *doctorReport) selftestGPU(ctx context.Context, out io.Writer, dev *gpu.Backend,
	t gpuSelftest) error {
	fmt.Fprintf(out, "\nselftest on %s\n", dev.Name())
	rate, err := dev.Bandwidth(ctx)
	if err != nil {
		return fail(exitFailure, "%s", err)
	}
	gbs := rate / 1e9
	fmt.Fprintf(out, "memory: %.0f GB/s in a copy, each byte read and written\n", gbs)
	peak, err := r.matrixRates(ctx, out, dev)
	if err != nil {
		return fail(exitFailure, "%s", err)
	}
	proofs, err := dev.Prove(ctx)
	if err != nil {
		return fail(exitFailure, "%s", err)
	}
	ok := r.proved(out, proofs)
	fmt.Fprintf(out, "%-22s %8s %8s %9s %9s %8s %9s\n", "operation", "error", "allowed", "GB/s",
		"of memory", "TFLOP/s", "of matrix")
	rows, err := testOps(ctx, dev.Ops, dev.Caps().Arch, t.shapes, t.timed)
	if err != nil {
		return err
	}
	right := true // the operations, by whatever kernels are left
	for _, row := range rows {
		row.Device, row.Percent = dev.Name(), 100*row.GBs/gbs
		if peak > 0 {
			row.PercentOfMatrix = 100 * row.TFLOPs / peak
		}
		r.Selftest = append(r.Selftest, *row)
		fmt.Fprintf(out, "%-22s %8s %8.1e %9.2f %8.1f%%", row.Op, row.error(), row.Bound, row.GBs,
			row.Percent)
		if row.TFLOPs > 0 {
			fmt.Fprintf(out, " %8.3f %8.1f%%", row.TFLOPs, row.PercentOfMatrix)
		}
		fmt.Fprintln(out, row.verdict())
		right = right && row.OK
	}
	ok = ok && right
	switch {
	case !right: // the speed of wrong results is nothing to know
	case t.whole.Layers == 0:
		fmt.Fprintf(out,
			"whole models: not timed, there is no room for two layers of %s\n", t.whole.Name)
	default:
		if err := r.wholeModels(ctx, out, dev, t, gbs); err != nil {
			return fail(exitFailure, "whole models: %s", err)
		}
	}
	fmt.Fprintf(out, "selftest: %s\n", verdict(ok))
	r.pass(ok)
	return nil
}

// matrixRates times the card's units, each in a bare loop, and the kernels' products beside them.
// peak is the bare rate of the unit that the operations are computed by; they keep all of float32
// in three terms, so a third of it is the most that they can reach.
func (r *doctorReport) matrixRates(ctx context.Context, out io.Writer,
	dev *gpu.Backend) (peak float64, err error) {
	if r.Matrix, err = dev.MatrixRates(ctx); err != nil {
		return 0, err
	}
	fmt.Fprintf(out, "%-27s %8s %8s  %s\n", "product of matrices", "TFLOP/s", "of unit",
		"unit, TFLOP/s in a bare loop")
	for i, x := range r.Matrix {
		if i == 0 {
			peak = x.UnitTFLOPs
		}
		fmt.Fprintf(out, "%-27s %8.1f %7.1f%%  %s, %.1f\n", x.Product, x.TFLOPs, x.Percent, x.Unit,
			x.UnitTFLOPs)
	}
	return peak, nil
}

// proved shows how the faster kernels were found on this card, and tells whether all are right.
// Those that are not are out of use: what runs from here on has the reference kernels in their
// place.
func (r *doctorReport) proved(out io.Writer, proofs []device.Proof) (ok bool) {
	r.Kernels, ok = proofs, true
	fmt.Fprintf(out, "%-22s %8s %8s %9s  against the reference\n", "kernel", "error",
		"allowed",
		"fragments")
	for _, p := range proofs {
		fmt.Fprintf(out, "%-22s %8.1e %8.1e", p.Variant, p.Error, p.Bound)
		if p.Fragments != "" {
			fmt.Fprintf(out, " %9s", p.Fragments)
		}
		if !p.OK {
			fmt.Fprintf(out, "  FAILED, the reference kernels take its place: %s", p.Why)
			ok = false
		}
		fmt.Fprintln(out)
	}
	return ok
}

// wholeModels times prefill and decode of a model of random weights, and one stream of it by each
// decode kernel: which is faster on a card is known only where both have run.
func (r *doctorReport) wholeModels(ctx context.Context, out io.Writer, dev *gpu.Backend,
	t gpuSelftest, gbs float64) error {
	r.Whole = &wholeReport{
		Model:     fmt.Sprintf("%s, %d layers, random weights", t.whole.Name, t.whole.Layers),
		Bandwidth: gbs,
	}
	fmt.Fprintf(out, "%s\n%9s %9s %9s %12s %9s %9s %9s\n", r.Whole.Model, "sequences", "rows",
		"context", "tokens/s", "GB/s", "of memory", "TFLOP/s")
	err := dev.Whole(ctx, t.whole, t.points, t.rounds, true, func(s gpu.WholeSpeed) {
		if s.Decode != "" {
			r.decodeKernel(out, s)
			return
		}
		r.Whole.Points = append(r.Whole.Points, s.Speed)
		fmt.Fprintf(out, "%9d %9d %9d ", s.Sequences, s.Rows, s.Context)
		if s.Skipped != "" {
			fmt.Fprintf(out, "skipped: %s\n", s.Skipped)
			return
		}
		fmt.Fprintf(out, "%12.1f %9.1f %8.1f%% %9.2f\n", s.TokensPerSecond, s.GBs, 100*s.GBs/gbs,
			s.TFLOPs)
	})
	if err != nil || len(r.Decode) == 0 {
		return err
	}
	faster := slices.MaxFunc(r.Decode, func(a, b decodeReport) int {
		return cmp.Compare(a.TokensPerSecond, b.TokensPerSecond)
	})
	fmt.Fprintf(out, "the faster here: OSSRUN_DECODE_KERNEL=%s\n", faster.Kernel)
	return nil
}

// decodeReport is one stream by one decode kernel. The graph is the default whatever is measured:
// no card has told yet.
type decodeReport struct {
	Kernel          device.DecodeKernel `json:"kernel"`
	TokensPerSecond float64             `json:"tokens_per_s"`
	GBs             float64             `json:"gb_per_s"`
}

func (r *doctorReport) decodeKernel(out io.Writer, s gpu.WholeSpeed) {
	if s.Wrong {
		fmt.Fprintf(out, "one stream, decode kernel %s: not timed, it was found wrong\n", s.Decode)
		return
	}
	r.Decode = append(r.Decode, decodeReport{s.Decode, s.TokensPerSecond, s.GBs})
	fmt.Fprintf(out,
		"one stream, decode kernel %-10s %9.1f tokens/s %9.1f GB/s\n",
		s.Decode, s.TokensPerSecond, s.GBs)
}
