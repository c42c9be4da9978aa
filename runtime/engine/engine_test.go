package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What New takes from a device it gives back, wherever it fails. The arithmetic is tested in
// enginetest.

// counting is a device that computes nothing and fails at its n-th call.
type counting struct {
	failAt, calls, open int
}

var errAsked = errors.New("failing as asked")

func (d *counting) call() error {
	d.calls++
	if d.calls == d.failAt {
		return errAsked
	}
	d.open++
	return nil
}

func (d *counting) Name() string                { return "counting" }
func (d *counting) Memory() (total, free int64) { return 0, 0 }
func (d *counting) Caps() Caps                  { return Caps{Computes: []string{Exact}} }
func (d *counting) Close() error                { return nil }

func (d *counting) Upload(data []byte) (Region, error) { return d.Alloc(int64(len(data))) }

func (d *counting) Alloc(n int64) (Region, error) {
	if err := d.call(); err != nil {
		return nil, err
	}
	return &countedRegion{d, n}, nil
}

func (d *counting) Compile(*Program) (Step, error) {
	if err := d.call(); err != nil {
		return nil, err
	}
	return &countedStep{d}, nil
}

type countedRegion struct {
	d *counting
	n int64
}

func (r *countedRegion) Bytes() int64              { return r.n }
func (r *countedRegion) Read(int64, []byte) error  { return nil }
func (r *countedRegion) Write(int64, []byte) error { return nil }
func (r *countedRegion) Free() error {
	r.d.open--
	return nil
}

type countedStep struct{ d *counting }

func (s *countedStep) Forward(*Batch, []float32, []int64) error { return nil }
func (s *countedStep) Close() error {
	s.d.open--
	return nil
}

func TestNewGivesBackWhatItTook(t *testing.T) {
	ckpt := hosttest.Must(checkpoint.Open("../../testdata/model/T2/checkpoint"))(t)
	defer ckpt.Close()
	whole := &counting{}
	e := hosttest.Must(New(whole, ckpt, Settings{MaxNumBatchedTokens: 5, Pages: 3}))(t)
	if err := e.Close(); err != nil || whole.open != 0 {
		t.Errorf("after Close %d things are open: %v", whole.open, err)
	}
	for failAt := 1; failAt <= whole.calls; failAt++ {
		d := &counting{failAt: failAt}
		if _, err := New(d, ckpt, Settings{MaxNumBatchedTokens: 5, Pages: 3}); !errors.Is(err,
			errAsked) {
			t.Fatalf("failing at call %d: %v", failAt, err)
		}
		if d.open != 0 {
			t.Errorf("failing at call %d leaves %d things open", failAt, d.open)
		}
	}
}

// TestLoadTellsHowFar: once a tensor, growing, and at the end all of what the plan says; and an
// error of who is told ends it, with nothing left behind.
func TestLoadTellsHowFar(t *testing.T) {
	ckpt := hosttest.Must(checkpoint.Open("../../testdata/model/T2/checkpoint"))(t)
	defer ckpt.Close()
	var last, total int64
	calls := 0
	e, err := On(&counting{}).Load(t.Context(), ckpt, Settings{MaxNumBatchedTokens: 5, Pages: 3},
		func(done, of int64) {
			if done <= last || done > of || total != 0 && of != total {
				t.Errorf("%d of %d after %d of %d", done, of, last, total)
			}
			last, total, calls = done, of, calls+1
		})
	hosttest.Check(t, err)
	defer e.Close()
	if want := e.Plan().Weights; last != want || total != want || calls < ckpt.Spec.Layers {
		t.Errorf("%d of %d in %d calls, the weights have %d", last, total, calls, want)
	}
	dev, left := &counting{}, 3
	ctx, enough := context.WithCancel(t.Context())
	_, err = On(dev).Load(ctx, ckpt, Settings{MaxNumBatchedTokens: 5, Pages: 3},
		func(int64, int64) {
			if left--; left == 0 {
				enough()
			}
		})
	if !errors.Is(err, context.Canceled) || left != 0 || dev.open != 0 {
		t.Errorf("%v, %d tensors more, %d regions and steps are left", err, -left, dev.open)
	}
}

// TestStepChoosesItsBucket: the smallest program that has the rows, and the rows of logits, asked
// for.
func TestStepChoosesItsBucket(t *testing.T) {
	ckpt := hosttest.Must(checkpoint.Open("../../testdata/model/T2/checkpoint"))(t)
	defer ckpt.Close()
	e := hosttest.Must(New(&counting{}, ckpt, Settings{MaxNumBatchedTokens: 12, Pages: 4}))(t)
	defer e.Close()
	for _, test := range []struct{ rows, logits, want int }{{1, 1, 1}, {2, 0, 2}, {3, 1, 4},
		{8, 8, 8}, {9, 0, 12}, {1, 3, 4}} {
		t.Run(fmt.Sprint(test.rows, test.logits), func(t *testing.T) {
			b := &Batch{Tokens: make([]int32, test.rows), LogitRows: make([]int32, test.logits),
				Seqs: []SeqRows{{Rows: int32(test.rows), Full: []int32{0}, Window: []int32{1}}}}
			hosttest.Check(t, e.Step(t.Context(), b,
				make([]float32, test.logits*ckpt.Spec.Vocab)))
			if got := e.last.program.Rows; got != test.want {
				t.Errorf("ran the program of %d rows, not %d", got, test.want)
			}
		})
	}
}
