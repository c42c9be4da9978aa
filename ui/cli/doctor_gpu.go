// What ossrun doctor does on a GPU: choosing it, holding every operation to plain float64 loops on it, and timing whole
// models of random weights. Speeds stand beside the bandwidth that was measured on the same card just before.

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
)

// wholeReport is the part of --selftest that runs whole models.
type wholeReport struct {
	Model     string         `json:"model"`
	Bandwidth float64        `json:"measured_gb_per_s"`
	Points    []device.Speed `json:"points"`
}

// gpuUnderTest is a GPU in this process or in one of its own.
type gpuUnderTest interface {
	engine.Device
	Bandwidth() (float64, error)
	ProofsText(context.Context) ([]byte, error) // how the fast kernels were found on this card, as JSON of []device.Proof
	RatesText() ([]byte, error)                 // what its matrix units do, as JSON of []device.Rate
}

// gpuSelftest is the self-test's extent on a GPU.
type gpuSelftest struct {
	shapes, timed []enginetest.Shape
	whole         models.Spec
	points        []device.Point
	rounds        int
}

// What a whole model needs beside its weights: on the card for steps of 2,048 tokens and the cache of eight sequences of 4,096, on the host, where the
// weights are made, for the program.
const (
	besideOnCard = 2 << 30
	besideOnHost = 1 << 30
)

// fullGPUSelftest is what --selftest does: small shapes for correctness, the published width for speed, and the 20b's
// shape with as many layers as fit on the card and, while they are made, in the host's memory; with none where two do not fit.
func fullGPUSelftest(dev, host engine.Device) gpuSelftest {
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
	return gpuSelftest{enginetest.Small(), []enginetest.Shape{enginetest.Published(1), enginetest.Published(64)}, spec, device.Points(), 5}
}

// selftestGPU runs the self-test on a card and reports as it goes.
func (r *doctorReport) selftestGPU(ctx context.Context, out io.Writer, dev gpuUnderTest, t gpuSelftest) error {
	fmt.Fprintf(out, "\nselftest on %s\n", dev.Name())
	rate, err := dev.Bandwidth()
	if err != nil {
		return fail(exitFailure, "%s", err)
	}
	gbs := rate / 1e9
	fmt.Fprintf(out, "memory: %.0f GB/s in a copy, each byte read and written\n", gbs)
	peak, err := r.matrixRates(out, dev)
	if err != nil {
		return fail(exitFailure, "%s", err)
	}
	ok, err := r.prove(ctx, out, dev)
	if err != nil {
		return fail(exitFailure, "%s", err)
	}
	fmt.Fprintf(out, "%-22s %8s %8s %9s %9s %8s %9s\n", "operation", "error", "allowed", "GB/s", "of memory", "TFLOP/s", "of matrix")
	rows, err := testOps(ctx, dev, engine.Settings{}, dev.Caps().Arch, t.shapes, t.timed)
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
		shown := "NaN"
		if row.Error != nil {
			shown = fmt.Sprintf("%.1e", *row.Error)
		}
		fmt.Fprintf(out, "%-22s %8s %8.1e %9.2f %8.1f%%", row.Op, shown, row.Bound, row.GBs, row.Percent)
		if row.TFLOPs > 0 {
			fmt.Fprintf(out, " %8.3f %8.1f%%", row.TFLOPs, row.PercentOfMatrix)
		}
		if !row.OK {
			fmt.Fprintf(out, "  FAILED: %s", row.Why)
		}
		if row.Skipped != "" {
			fmt.Fprintf(out, "  skipped: %s", row.Skipped)
		}
		fmt.Fprintln(out)
		right = right && row.OK
	}
	ok = ok && right
	switch {
	case !right: // the speed of wrong results is nothing to know
	case t.whole.Layers == 0:
		fmt.Fprintf(out, "whole models: not timed, there is no room for two layers of %s\n", t.whole.Name)
	default:
		if err := r.wholeModels(ctx, out, dev, t, gbs); err != nil {
			return fail(exitFailure, "whole models: %s", err)
		}
	}
	fmt.Fprintf(out, "selftest: %s\n", verdict(ok))
	r.pass(ok)
	return nil
}

// prove holds the faster kernels to the plain ones, whatever was found when the card was opened.
func (r *doctorReport) prove(ctx context.Context, out io.Writer, dev gpuUnderTest) (ok bool, err error) {
	if card, here := dev.(choosesDecodeKernel); here { // a step in one launch is timed as well: no speed of what is wrong
		defer card.UseDecodeKernel(card.DecodeKernel())
		card.UseDecodeKernel(device.DecodePersistent)
	}
	text, err := dev.ProofsText(ctx)
	if err != nil {
		return false, err
	}
	var proofs []device.Proof
	if err := json.Unmarshal(text, &proofs); err != nil {
		return false, fmt.Errorf("the proofs cannot be read: %w", err)
	}
	return r.proved(out, proofs), nil
}

// proved shows how the faster kernels were found on this card, and tells whether all are right. Those that are not are out of use: what runs from
// here on has the plain kernels in their place.
func (r *doctorReport) proved(out io.Writer, proofs []device.Proof) (ok bool) {
	r.Kernels, ok = proofs, true
	fmt.Fprintf(out, "%-22s %8s %8s %9s  against the plain kernels\n", "kernel", "error", "allowed", "fragments")
	for _, p := range proofs {
		fmt.Fprintf(out, "%-22s %8.1e %8.1e", p.Form, p.Error, p.Bound)
		if p.Fragments != "" {
			fmt.Fprintf(out, " %9s", p.Fragments)
		}
		if !p.OK {
			fmt.Fprintf(out, "  FAILED, the plain kernels take its place: %s", p.Why)
			ok = false
		}
		fmt.Fprintln(out)
	}
	return ok
}

// wholeModels times a model of random weights, which is made once: it is the most of the self-test's time.
func (r *doctorReport) wholeModels(ctx context.Context, out io.Writer, dev gpuUnderTest, t gpuSelftest, gbs float64) (err error) {
	ckpt, err := checkpoint.Synthetic(t.whole, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ckpt.Close()) }()
	if err := r.wholeModel(ctx, out, dev, ckpt, t, gbs); err != nil {
		return err
	}
	return r.decodeKernels(ctx, out, dev, ckpt, t)
}

// wholeModel times prefill and decode.
func (r *doctorReport) wholeModel(ctx context.Context, out io.Writer, dev gpuUnderTest, ckpt *checkpoint.Checkpoint, t gpuSelftest, gbs float64) error {
	r.Whole = &wholeReport{Model: fmt.Sprintf("%s, %d layers, random weights", t.whole.Name, t.whole.Layers), Bandwidth: gbs}
	fmt.Fprintf(out, "%s\n%9s %9s %9s %12s %9s %9s %9s\n", r.Whole.Model, "sequences", "rows", "context", "tokens/s", "GB/s", "of memory", "TFLOP/s")
	return device.Whole(ctx, dev, ckpt, engine.Settings{KVCacheDtype: "bf16"}, t.points, t.rounds, func(s device.Speed) {
		r.Whole.Points = append(r.Whole.Points, s)
		fmt.Fprintf(out, "%9d %9d %9d ", s.Sequences, s.Rows, s.Context)
		if s.Skipped != "" {
			fmt.Fprintf(out, "skipped: %s\n", s.Skipped)
			return
		}
		fmt.Fprintf(out, "%12.1f %9.1f %8.1f%% %9.2f\n", s.TokensPerSecond, s.GBs, 100*s.GBs/gbs, s.TFLOPs)
	})
}
