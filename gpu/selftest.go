package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
)

// The measurements of a hardware check, in the process that has the card, which may be the worker:
// a check is requested as JSON and reports its results one by one as JSON.

type check struct {
	What string // one of those below

	Shapes, Timed []enginetest.Shape `json:",omitempty"` // checkOps

	Spec   models.Spec    // checkWhole
	Points []device.Point `json:",omitempty"` // checkWhole
	Rounds int            `json:",omitempty"` // checkWhole, checkWidth
	Rows   []int          `json:",omitempty"` // checkWidth
}

const (
	checkBandwidth = "bandwidth"
	checkRates     = "matrix rates"
	checkTimings   = "timings"
	checkProofs    = "proofs"
	checkWidth     = "proofs at a model's width"
	checkSampling  = "choices of tokens"
	checkOps       = "operations"
	checkWhole     = "whole models"
)

// ask runs a check and passes on its results, which are all of one type.
func ask[T any](ctx context.Context, b *Backend, c check, take func(T)) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return b.Test(ctx, text, func(result json.RawMessage) error {
		var v T
		if err := json.Unmarshal(result, &v); err != nil {
			return fmt.Errorf("a result of %s cannot be read: %w", c.What, err)
		}
		take(v)
		return nil
	})
}

func oneResult[T any](ctx context.Context, b *Backend, what string) (result T, err error) {
	err = ask(ctx, b, check{What: what}, func(v T) { result = v })
	return result, err
}

func (b *Backend) Bandwidth(ctx context.Context) (float64, error) {
	return oneResult[float64](ctx, b, checkBandwidth)
}

func (b *Backend) MatrixRates(ctx context.Context) ([]device.Rate, error) {
	return oneResult[[]device.Rate](ctx, b, checkRates)
}

// Timings are the times by which the card's kernels were chosen.
func (b *Backend) Timings(ctx context.Context) ([]device.Timing, error) {
	return oneResult[[]device.Timing](ctx, b, checkTimings)
}

// Prove compares the fast kernels with the reference kernels again, and disables wrong ones. report
// gets each trial when it has run.
func (b *Backend) Prove(ctx context.Context, report func(device.Trial)) (list []device.Proof,
	err error) {
	err = ask(ctx, b, check{What: checkProofs}, func(p progress) {
		if p.Trial != nil {
			report(*p.Trial)
		}
		list = append(list, p.All...)
	})
	return list, err
}

// progress is a trial or, last, the results of all.
type progress struct {
	Trial *device.Trial  `json:",omitempty"`
	All   []device.Proof `json:",omitempty"`
}

// ProveWidth compares them at a model's width, in steps of so many rows, each run rounds times.
func (b *Backend) ProveWidth(ctx context.Context, s models.Spec, rows []int, rounds int,
	report func(device.Trial)) error {
	return ask(ctx, b, check{What: checkWidth, Spec: s, Rows: rows, Rounds: rounds}, report)
}

// ProveSampling compares choices of a vocabulary on the card with the host's, at 1 to 64 rows.
func (b *Backend) ProveSampling(ctx context.Context, vocab int) (p device.Proof, err error) {
	err = ask(ctx, b, check{What: checkSampling, Spec: models.Spec{Vocab: vocab}},
		func(v device.Proof) { p = v })
	return p, err
}

// Ops compares every operation with plain loops on all shapes; see enginetest.Ops.
func (b *Backend) Ops(ctx context.Context, shapes, timed []enginetest.Shape,
	report func(enginetest.OpResult)) error {
	return ask(ctx, b, check{What: checkOps, Shapes: shapes, Timed: timed},
		func(v opText) { report(v.result()) })
}

// opText is an enginetest.OpResult in a form that JSON can hold.
type opText struct {
	enginetest.OpResult
	Error   uint64 // as bits: JSON has no NaN or infinity
	Failure string
}

func opTextOf(r enginetest.OpResult) opText {
	t := opText{OpResult: r, Error: math.Float64bits(r.Error)}
	if r.Failure != nil {
		t.Failure = r.Failure.Error()
	}
	return t
}

func (t opText) result() enginetest.OpResult {
	r := t.OpResult
	r.Error, r.Failure = math.Float64frombits(t.Error), nil
	if t.Failure != "" {
		r.Failure = errors.New(t.Failure)
	}
	return r
}

// TimeModel times a model of random weights.
func (b *Backend) TimeModel(ctx context.Context, spec models.Spec, points []device.Point,
	rounds int, report func(device.Speed)) error {
	return ask(ctx, b, check{What: checkWhole, Spec: spec, Points: points, Rounds: rounds}, report)
}

func (l *local) Test(ctx context.Context, request json.RawMessage,
	emit func(json.RawMessage) error) error {
	var c check
	if err := json.Unmarshal(request, &c); err != nil {
		return fmt.Errorf("a check of the GPU: %w", err)
	}
	if l.card == nil {
		return errors.New("checks are of one GPU at a time")
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	report := func(v any) {
		text, err := json.Marshal(v)
		if err == nil {
			err = emit(text)
		}
		if err != nil {
			stop(err)
		}
	}
	err := l.run(ctx, c, report)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func (l *local) run(ctx context.Context, c check, report func(any)) (err error) {
	var result any
	switch c.What {
	case checkBandwidth:
		result, err = l.card.Bandwidth()
	case checkRates:
		result, err = l.card.MatrixRates()
	case checkTimings:
		result = l.card.Timings()
	case checkProofs:
		var all []device.Proof
		all, err = l.card.Prove(ctx, func(t device.Trial) { report(progress{Trial: &t}) })
		result = progress{All: all}
	case checkWidth:
		for _, rows := range c.Rows {
			t, err := l.card.ProveWidth(ctx, c.Spec, rows, c.Rounds)
			if err != nil {
				return err
			}
			report(t)
		}
		return nil
	case checkSampling:
		result, err = l.card.ProveSampling(ctx, c.Spec.Vocab)
	case checkOps:
		// Failures of operations are in their results.
		_ = enginetest.Ops(ctx, l.card, engine.Settings{}, c.Shapes, c.Timed,
			func(r enginetest.OpResult) { report(opTextOf(r)) })
		return ctx.Err()
	case checkWhole:
		return l.timeModel(ctx, c, report)
	default:
		return fmt.Errorf("there is no check %q of a GPU", c.What)
	}
	if err == nil {
		report(result)
	}
	return err
}

func (l *local) timeModel(ctx context.Context, c check, notify func(any)) (err error) {
	ckpt, err := checkpoint.SyntheticUploaded(c.Spec, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ckpt.Close()) }()
	// as serve runs on a GPU
	s := engine.Settings{Compute: engine.Rounded, KVCacheDtype: "bf16"}
	return device.MeasureModel(ctx, l.card, ckpt, s, c.Points, c.Rounds,
		func(v device.Speed) { notify(v) })
}
