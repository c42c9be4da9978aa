package multi_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/gpu/multi"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/engine/enginetest"
	"github.com/ossrun/ossrun/runtime/engine/golden"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// The same device in every place computes the same bits, wherever the tape is cut.

// logitsOf runs a sequence in steps of many rows and of one: buckets of several sizes, past the
// window.
func logitsOf(t testing.TB, dev engine.Device, dir string, o engine.Settings) (all []float32) {
	t.Helper()
	ckpt := opened(t, dir+"/checkpoint")
	o.Pages, o.MaxNumBatchedTokens = 32, 64
	eng := hosttest.Must(engine.New(dev, ckpt, o))(t)
	defer func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	}()
	pages := enginetest.NewPages(32).WithTwins(o.KVCacheDtype)
	q := pages.NewSequence(eng.Spec())
	for i, rows := range []int{50, 64, 1, 1, 40, 1} {
		seq := hosttest.Must(q.Extend(rows))(t)
		b := &engine.Batch{Seqs: []engine.SeqRows{seq}, LogitRows: []int32{int32(rows - 1), 0},
			Twins: q.Twins()}
		if rows == 1 {
			b.LogitRows = b.LogitRows[:1]
		}
		for j := range rows {
			b.Tokens = append(b.Tokens, int32((7*i+13*j)%eng.Spec().Vocab))
		}
		logits := make([]float32, len(b.LogitRows)*eng.Spec().Vocab)
		hosttest.Check(t, eng.Step(t.Context(), b, logits))
		all = append(all, logits...)
	}
	return all
}

// TestEveryCut: T1 and T2 over every placement, with the experts of hosted layers computed by the
// host, streamed to the cards, and streamed for large steps alone.
func TestEveryCut(t *testing.T) {
	some := []way{{ends: []int{1, 2, 4}}, {ends: []int{1, 3, 4}},
		{ends: []int{4}, hosted: []int{0, 1, 3}}, {ends: []int{3, 4}, hosted: []int{2, 3}}}
	holdCuts(t, "T2", ways(3), engine.Settings{Compute: engine.Exact})
	holdCuts(t, "T1", some, engine.Settings{Compute: engine.Int8})
	holdCuts(t, "T1", some, engine.Settings{Compute: engine.Exact, KVCacheDtype: engine.KVFP8})
}

// TestEveryCutLong: all placements in both modes.
func TestEveryCutLong(t *testing.T) {
	drivertest.Long(t)
	for _, compute := range []string{engine.Exact, engine.Int8} {
		for _, kv := range []string{"bf16", engine.KVFP8} {
			holdCuts(t, "T2", ways(3), engine.Settings{Compute: compute, KVCacheDtype: kv})
			holdCuts(t, "T1", ways(4), engine.Settings{Compute: compute, KVCacheDtype: kv})
		}
	}
}

func holdCuts(t *testing.T, model string, list []way, how engine.Settings) {
	t.Helper()
	one := host(t)
	want := logitsOf(t, one, testdata+model, how)
	hosttest.Check(t, one.Close())
	for _, w := range list {
		for i, o := range []func(rows int) bool{nil, always,
			func(rows int) bool { return rows >= 32 }} {
			if o != nil && len(w.hosted) == 0 {
				continue
			}
			got := logitsOf(t, hosts(t, o, w.ends, w.hosted...), testdata+model, how)
			if !slices.Equal(want, got) {
				t.Fatalf("%s, %+v, %v, streaming %d: other logits", model, how, w, i)
			}
		}
	}
}

// TestConformance: the suite of every Device, with a cut between the layers of one slot of a page,
// and experts in all places.
func TestConformance(t *testing.T) {
	dev := hosts(t, func(rows int) bool { return rows > 100 }, []int{1, 3, 4}, 0, 2)
	for _, kv := range []string{"", engine.KVFP8} {
		for _, check := range enginetest.Programs(enginetest.Config{Backend: engine.On(dev),
			Dir: testdata + "T1", Options: engine.Settings{KVCacheDtype: kv}}) {
			t.Run(kv+"/"+check.Name, func(t *testing.T) {
				hosttest.Check(t, check.Run(t.Context()))
			})
		}
	}
}

// TestIntermediates: taps are read on the device that wrote them.
func TestIntermediates(t *testing.T) {
	dev := hosts(t, nil, []int{1, 3, 4}, 1, 2)
	taps := 0
	if err := enginetest.Intermediates(t.Context(), enginetest.Config{Backend: engine.On(dev),
		Dir: testdata + "T1"}, func(string, float64) { taps++ }); err != nil {
		t.Error(err)
	}
	if taps == 0 {
		t.Error("nothing was compared")
	}
}

// TestGolden: what other implementations computed.
func TestGolden(t *testing.T) {
	dev := hosts(t, func(rows int) bool { return rows > 16 }, []int{2, 3}, 1)
	ok, err := golden.Options{Only: []string{"len31"}}.Run(t.Context(), testdata+"T2",
		engine.On(dev), []string{engine.Exact}, func(r golden.CaseResult) {
			t.Logf("%-6s %-8s max abs %.1e", r.Mode, r.Case, r.MaxAbs)
		})
	if err != nil || !ok {
		t.Errorf("passed: %v, error: %v", ok, err)
	}
}

// TestOps: programs with unplaced memory are the first device's.
func TestOps(t *testing.T) {
	dev := hosts(t, nil, []int{1, 2})
	n := 0
	if err := enginetest.Ops(t.Context(), dev, engine.Settings{}, enginetest.Small()[:1], nil,
		func(enginetest.OpResult) { n++ }); err != nil || n == 0 {
		t.Errorf("%d operations, %v", n, err)
	}
}

// TestProfile: a time for each operation, wherever it ran.
func TestProfile(t *testing.T) {
	dev := hosts(t, nil, []int{1, 2}, 1)
	eng := hosttest.Must(engine.New(dev, tiny(t),
		engine.Settings{Pages: 4, MaxNumBatchedTokens: 2}))(t)
	b := &engine.Batch{Tokens: []int32{5, 6}, LogitRows: []int32{1},
		Seqs: []engine.SeqRows{{Rows: 2, Full: []int32{1}, Window: []int32{2}}}}
	times := hosttest.Must(eng.Measure(t.Context(), b, make([]float32, eng.Spec().Vocab)))(t)
	for _, x := range times {
		if x.Nanoseconds < 0 || x.Label == "" {
			t.Errorf("%+v", x)
		}
	}
	hosttest.Check(t, eng.Close())
}

// TestRefusals: plans and models that do not fit each other.
func TestRefusals(t *testing.T) {
	for what, p := range map[string]struct {
		ends   []int
		hosted []int
		cards  int
	}{
		"no layers":               {nil, nil, 1},
		"a card that is not":      {[]int{1, 2}, nil, 1},
		"an empty share":          {[]int{0, 2}, nil, 2},
		"experts without a host":  {[]int{2}, []int{1}, 1},
		"a share turned backward": {[]int{2, 1}, nil, 2},
	} {
		var cards []engine.Device
		for range p.cards {
			cards = append(cards, host(t))
		}
		if _, err := multi.New(planned(p.ends, p.hosted...), cards, nil, nil); err == nil {
			t.Errorf("%s: accepted", what)
		}
		for _, c := range cards {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	dev := hosts(t, nil, []int{1, 2, 3}) // tiny has two layers
	if _, err := engine.New(dev, tiny(t),
		engine.Settings{Pages: 4, MaxNumBatchedTokens: 2}); err == nil {
		t.Error("a model of other layers: accepted")
	}
	two := hosts(t, nil, []int{1, 2})
	r := hosttest.Must(two.Alloc(10))(t)
	hosttest.Check(t, errors.Join(r.Free(), r.Free()))
}
