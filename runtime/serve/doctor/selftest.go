// The self-test: every operation of a device against plain float64 loops. A GPU's kernels are
// proved too, and whole models of random weights are timed. Speeds are compared with the bandwidth
// measured on the same card just before.

package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/gpu"
	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
	"github.com/ossrun/ossrun/runtime/serve"
)

// SelftestRow is one operation on one instruction set: the largest error over all shapes, and the
// speed at the published width.
type SelftestRow struct {
	Device  string   `json:"device"`
	ISA     string   `json:"isa"`
	Op      string   `json:"op"`
	Error   *float64 `json:"error"` // relative to the size of the terms; null: not a number
	Bound   float64  `json:"bound"`
	GBs     float64  `json:"gb_per_s"`
	Percent float64  `json:"percent_of_bandwidth,omitempty"` // of a GPU's, as measured on it
	// of matrix operations, at the most rows timed
	TFLOPs float64 `json:"tflop_per_s,omitempty"`

	// of the matrix unit's rate in a bare loop, as measured just before
	PercentOfMatrix float64 `json:"percent_of_matrix_rate,omitempty"`

	OK      bool   `json:"ok"`
	Why     string `json:"why,omitempty"`
	Skipped string `json:"skipped,omitempty"` // the device reports no such operation
}

// WholeModels is the part of the self-test that times a whole model.
type WholeModels struct {
	Model     string         `json:"model"`
	Bandwidth float64        `json:"measured_gb_per_s"`
	Points    []device.Speed `json:"points"`
}

// Values that the self-test shows as it runs, so that a hanging step loses no earlier result. The
// order: Starting; on a GPU Bandwidth, Rates, the kernels' Trials and Proofs; a SelftestRow for
// each operation; on a GPU Trials at the published width, Models, Speeds; last Verdict.
type (
	Starting  string  // the device's name
	Bandwidth float64 // of a GPU, GB/s in a copy
	Rates     = []device.Rate
	Trial     = device.Trial
	Proofs    []device.Proof
	Models    string // the timed model, or that none is
	Speed     = device.Speed
	Verdict   bool
)

// OK reports whether all kernels are right. A wrong one is disabled, and its reference kernel runs
// instead.
func (p Proofs) OK() bool {
	return !slices.ContainsFunc(p, func(p device.Proof) bool { return !p.OK })
}

// Extent is how much the self-test runs.
type Extent struct {
	Shapes, Timed []enginetest.Shape
	WholeModel    models.Spec    // GPU: the model that is timed; no layers: none
	Points        []device.Point // and at which points
	Rounds        int
	// GPU: the row counts proved at that model's width, each so many times
	WidthRows []int
	Times     int
}

// RunSelftest runs the self-test of the device and shows it as it goes.
func (d *Doctor) RunSelftest(ctx context.Context, show func(any)) error {
	if g, ok := d.dev.(*gpu.Backend); ok {
		return d.SelftestGPU(ctx, g, FullExtent(g, d.host), show)
	}
	return d.SelftestCPU(ctx, serve.HostDevice(d.dev), Extent{Shapes: enginetest.Small(),
		Timed: []enginetest.Shape{enginetest.Published(1)}}, show)
}

// AddTraffic puts the worker's message counts into the report.
func (d *Doctor) AddTraffic() {
	if g, ok := d.dev.(*gpu.Backend); ok {
		d.Worker = g.Traffic()
	}
}

// Memory of a whole model besides its weights. On the card: steps of 2,048 tokens and the cache of
// eight sequences of 4,096. On the host, where the weights are made: the program.
const (
	cardReserve = 2 << 30
	hostReserve = 1 << 30
)

// FullExtent is the self-test of a GPU: small shapes for correctness, the published width for
// speed, and a 20b with as many layers as fit on the card. It has no layers if two do not fit, or
// if the host has no memory for the one layer that all copy.
func FullExtent(dev, host interface {
	Memory() (total, free int64)
	Caps() engine.Caps
}) Extent {
	spec := models.Spec20B()
	_, free := dev.Memory()
	_, hostFree := host.Memory()
	hostBytes := checkpoint.SyntheticBytes(spec) + hostReserve // for any number of layers
	room := free - cardReserve
	if dev.Caps().Integrated { // both copies are in the same memory
		room = min(room, hostFree-cardReserve-hostBytes)
	}
	for spec.Layers > 0 && (spec.WeightBytes() > room || hostBytes > hostFree) {
		spec.Layers -= 2
	}
	return Extent{enginetest.Small(), []enginetest.Shape{enginetest.Published(1),
		enginetest.Published(64)}, spec, device.Points(), 5, device.WidthRows(), 20}
}

// SelftestCPU checks every operation of every instruction set against the loops.
func (r *Report) SelftestCPU(ctx context.Context, dev engine.Device, e Extent,
	show func(any)) error {
	show(Starting(dev.Name()))
	ok := true
	for _, isa := range serve.ISAs() {
		err := testOps(ctx, func(ctx context.Context, shapes, timed []enginetest.Shape,
			report func(enginetest.OpResult)) error {
			_ = enginetest.Ops(ctx, dev, engine.Settings{ISA: isa}, shapes, timed, report)
			return ctx.Err() // failures are in the results
		}, isa, e, func(row SelftestRow) {
			row.Device = dev.Name()
			r.Selftest = append(r.Selftest, row)
			show(row)
			ok = ok && row.OK
		})
		if err != nil {
			return err
		}
	}
	show(Verdict(ok))
	r.pass(ok)
	return nil
}

// SelftestGPU is the self-test of a card.
func (r *Report) SelftestGPU(ctx context.Context, dev *gpu.Backend, e Extent,
	show func(any)) error {
	show(Starting(dev.Name()))
	rate, err := dev.Bandwidth(ctx)
	if err != nil {
		return err
	}
	gbs := rate / 1e9
	show(Bandwidth(gbs))
	if r.Matrix, err = dev.MatrixRates(ctx); err != nil {
		return err
	}
	show(r.Matrix)
	if r.Kernels, err = dev.Prove(ctx, func(t Trial) { show(t) }); err != nil {
		return err
	}
	sampling := slices.IndexFunc(r.Kernels,
		func(p device.Proof) bool { return p.Variant == device.Sampling })
	if sampling >= 0 && r.Kernels[sampling].OK { // with the vocabulary of a real model
		if r.Kernels[sampling], err = dev.ProveSampling(ctx, e.WholeModel.Vocab); err != nil {
			return err
		}
	}
	show(Proofs(r.Kernels))
	allOK := true // the operations, by whatever kernels are enabled
	if err := testOps(ctx, dev.Ops, dev.Caps().Arch, e, func(row SelftestRow) {
		row.Device, row.Percent = dev.Name(), 100*row.GBs/gbs
		// The operations keep all of float32 in three terms, so they can reach at most a third of
		// the unit's rate.
		if len(r.Matrix) > 0 && r.Matrix[0].UnitTFLOPs > 0 {
			row.PercentOfMatrix = 100 * row.TFLOPs / r.Matrix[0].UnitTFLOPs
		}
		r.Selftest = append(r.Selftest, row)
		show(row)
		allOK = allOK && row.OK
	}); err != nil {
		return err
	}
	allOK = allOK && (sampling < 0 || r.Kernels[sampling].OK)
	if e.WholeModel.Layers > 0 {
		if err := dev.ProveWidth(ctx, e.WholeModel, e.WidthRows, e.Times, func(t Trial) {
			r.Width = append(r.Width, t)
			show(t)
			allOK = allOK && Proofs(t.Proofs).OK()
		}); err != nil {
			return err
		}
	}
	switch {
	case !allOK: // the speed of wrong results is worthless
	case e.WholeModel.Layers == 0:
		show(Models("whole models: not timed, no memory for two layers of " + e.WholeModel.Name))
	default:
		if err := r.wholeModels(ctx, dev, e, gbs, show); err != nil {
			return fmt.Errorf("whole models: %w", err)
		}
	}
	ok := allOK && Proofs(r.Kernels).OK()
	show(Verdict(ok))
	r.pass(ok)
	return nil
}

func (r *Report) wholeModels(ctx context.Context, dev *gpu.Backend, e Extent, gbs float64,
	show func(any)) error {
	r.WholeModels = &WholeModels{Bandwidth: gbs,
		Model: fmt.Sprintf("%s, %d layers, random weights", e.WholeModel.Name, e.WholeModel.Layers)}
	show(Models(r.WholeModels.Model))
	return dev.TimeModel(ctx, e.WholeModel, e.Points, e.Rounds, func(s Speed) {
		show(s)
		r.WholeModels.Points = append(r.WholeModels.Points, s)
	})
}

// testOps runs all shapes and merges each operation's results into one row of an instruction set,
// shown before the next operation runs. Failures of operations are in the results.
func testOps(ctx context.Context, ops func(ctx context.Context, shapes, timed []enginetest.Shape,
	report func(enginetest.OpResult)) error, isa string, e Extent, show func(SelftestRow)) error {
	var row SelftestRow
	done := func() {
		if row.Op != "" {
			show(row)
		}
	}
	err := ops(ctx, e.Shapes, e.Timed, func(o enginetest.OpResult) {
		if row.Op != o.Op {
			done()
			row = SelftestRow{ISA: isa, Op: o.Op, Bound: o.Bound, Error: finite(0), OK: true}
		}
		if row.Error != nil && !(o.Error <= *row.Error) {
			row.Error = finite(o.Error)
		}
		row.GBs, row.TFLOPs = max(row.GBs, o.GBs()), max(row.TFLOPs, o.TFLOPs())
		row.Skipped = o.Skipped
		if o.Failure != nil {
			row.OK, row.Why = false, fmt.Sprintf("%s: %s", o.Shape, o.Failure)
		}
	})
	if err == nil { // else the last one did not run to its end
		done()
	}
	return err
}
