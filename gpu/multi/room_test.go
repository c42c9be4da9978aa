package multi_test

import (
	"errors"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/multi"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// TestMostPagesIsRoom: with as many pages as cards say they have room for, nothing that an engine
// does later asks a card for more than it has: all buckets, choosing tokens, and steps that
// rebuild. And the estimate is near: a twentieth more pages do not fit.
func TestMostPagesIsRoom(t *testing.T) {
	for _, x := range []struct {
		w       way
		streams bool
		o       engine.Settings
	}{
		{way{ends: []int{2, 3}}, false, engine.Settings{Compute: engine.Rounded,
			MaxNumBatchedTokens: 20, MaxLogits: 3}},
		{way{ends: []int{1, 3}, hosted: []int{1, 2}}, true, engine.Settings{Compute: engine.Rounded,
			Dense: engine.DenseQ8, MaxNumBatchedTokens: 18, MaxLogits: 18}},
	} {
		t.Run(x.w.String(), func(t *testing.T) {
			ckpt := opened(t, testdata+"T2/checkpoint")
			const memory = 32 << 20
			f := fake(t, driver.CUDA, 2, memory)
			cards := hosttest.Must(cardsOf(f, 2, false))(t)
			dev := hosttest.Must(multi.New(planned(x.w.ends, x.w.hosted...), cards, host(t),
				func(rows int) bool { return x.streams && rows > 16 }))(t)
			pages, err := dev.MostPages(ckpt.Spec, x.o, 1)
			if err != nil || pages < 100 {
				t.Fatal(pages, err)
			}
			// what cards keep for themselves is taken, so that it hides no mistake
			var kept []engine.Region
			for _, c := range cards {
				_, free := c.Memory()
				r := hosttest.Must(c.Alloc(memory - free))(t)
				kept = append(kept, r)
			}
			x.o.Pages = pages
			if err := lives(t, dev, ckpt, x.o); err != nil {
				t.Errorf("with %d pages: %v", pages, err)
			}
			x.o.Pages += pages / 20
			if err := lives(t, dev, ckpt, x.o); !errors.Is(err, driver.ErrOutOfMemory) {
				t.Errorf("with %d pages, where there was room for %d: %v", x.o.Pages, pages, err)
			}
			for _, r := range kept {
				err = errors.Join(err, r.Free())
			}
			if err = errors.Join(err, dev.Close()); err != nil || f.Leaks() != "" {
				t.Errorf("%v, not given back: %s", err, f.Leaks())
			}
		})
	}
}

// lives is an engine's life: each bucket rebuilds, a token is chosen.
func lives(t *testing.T, dev engine.Device, ckpt *checkpoint.Checkpoint,
	o engine.Settings) (err error) {
	eng, err := engine.New(dev, ckpt, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	for _, rows := range engine.Buckets(o.MaxNumBatchedTokens) {
		b := &engine.Batch{Tokens: make([]int32, rows), Rebuild: true,
			Seqs: []engine.SeqRows{{Rows: int32(rows), Full: []int32{1, 1}, Window: []int32{2, 0}}}}
		if err := eng.Step(t.Context(), b, nil); err != nil {
			return err
		}
	}
	b := &engine.Batch{Tokens: []int32{5}, LogitRows: []int32{0},
		Seqs: []engine.SeqRows{{Rows: 1, Full: []int32{1}, Window: []int32{2}}}}
	var chosen [1]engine.SampledToken
	return errors.Join(eng.Queue(t.Context(), b, nil),
		eng.Sample([]engine.SamplingParams{{Draw: engine.Draw{TopP: 1}}}), eng.Wait(chosen[:]))
}
