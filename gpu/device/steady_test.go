package device

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Steps of a deterministic program: a row has the same bits by itself and among others, at any
// place, and beside the rows before it in the same step or after steps of their own. So must it be
// in every mode, and by fast kernels.

// TestDeterministic: a row behind a context of several runs, and three of another sequence, in
// steps of all numbers of rows at which kernels, tiles or grids change.
func TestDeterministic(t *testing.T) {
	for _, x := range drivertest.Some(2, []struct {
		api  driver.API
		arch string
		o    engine.Settings
	}{
		{driver.CUDA, "sm_90", engine.Settings{Compute: engine.Rounded}},
		{driver.CUDA, "sm_90", engine.Settings{Compute: engine.Exact, KVCacheDtype: "bf16"}},
		{driver.HIP, "gfx942", engine.Settings{Compute: engine.Rounded}},
		{driver.CUDA, "sm_90", engine.Settings{Compute: engine.Rounded, Dense: engine.DenseQ8}},
		{driver.CUDA, "sm_90", engine.Settings{Compute: engine.Rounded,
			KVCacheDtype: engine.KVFP8}},
		{driver.CUDA, "sm_80", engine.Settings{Compute: engine.Rounded, KVCacheDtype: "bf16"}},
		{driver.CUDA, "sm_90", engine.Settings{Compute: engine.Exact}},
		{driver.CUDA, "sm_120", engine.Settings{Compute: engine.MX}},
		{driver.HIP, "gfx942", engine.Settings{Compute: engine.Exact,
			KVCacheDtype: engine.KVFP8}},
		{driver.HIP, "gfx942", engine.Settings{Compute: engine.Int8, Dense: engine.DenseQ8}},
		{driver.HIP, "gfx950", engine.Settings{Compute: engine.MX, Dense: engine.DenseQ8}},
	}) {
		name := fmt.Sprint(x.arch, " ", x.o.Compute, " ", x.o.Dense, " ", x.o.KVCacheDtype)
		t.Run(name, func(t *testing.T) {
			dev, _ := openWith(t, x.api, Options{Arch: x.arch})
			dev.target.Processors = 8 // few enough for pieces by the bucket to differ
			checkAlike(t, dev, x.o)
		})
	}
}

// steadyRows are numbers of rows at which a step gets other kernels, tiles or grids.
var steadyRows = []int{2, 8, 9, 16, 17, 64, 65, 129, 256, 300}

// rowsOf are some rows of a sequence.
type rowsOf struct {
	*engine.SeqRows
	start, rows int
}

func checkAlike(t *testing.T, dev *Device, o engine.Settings) {
	spec := proofSpec()
	ckpt := hosttest.Must(checkpoint.Synthetic(spec, 1))(t)
	defer ckpt.Close()
	const pages = 1000
	o.Deterministic, o.Pages, o.MaxNumBatchedTokens = true, pages, 512
	// what later rounding hides
	o.Taps = []string{"layer0.attn_heads", "layer0.out", "layer1.attn_heads", "layer1.out"}
	eng := hosttest.Must(engine.New(dev, ckpt, o))(t)
	defer func() { hosttest.Check(t, eng.Close()) }()
	used, twins := int32(0), make([]int32, pages)
	sequence := func(tokens int) *engine.SeqRows {
		q := &engine.SeqRows{}
		for range (tokens + engine.PageTokens - 1) / engine.PageTokens {
			q.Full, q.Window = append(q.Full, used), append(q.Window, used+1)
			twins[used+1], used = used+2, used+3
		}
		return q
	}
	run := func(list ...rowsOf) (logits [][]float32) {
		b := &engine.Batch{}
		if engine.WindowPages(eng.Settings().KVCacheDtype) > 1 {
			b.Twins = twins
		}
		for _, q := range list {
			q.SeqRows.Start, q.SeqRows.Rows = int32(q.start), int32(q.rows)
			b.Seqs = append(b.Seqs, *q.SeqRows)
			for i := range q.rows {
				b.Tokens = append(b.Tokens, (7*q.Full[0]+int32(3*(q.start+i)))%int32(spec.Vocab))
				b.LogitRows = append(b.LogitRows, int32(len(b.LogitRows)))
			}
		}
		rows := len(b.Tokens)
		all := make([]float32, rows*spec.Vocab)
		hosttest.Check(t, eng.Step(t.Context(), b, all))
		logits = slices.Collect(slices.Chunk(all, spec.Vocab))
		for _, tap := range o.Taps {
			all := engine.Numbers[float32](hosttest.Must(eng.Tap(tap, rows))(t))
			for row, values := range slices.Collect(slices.Chunk(all, len(all)/rows)) {
				logits[row] = append(slices.Clip(logits[row]), values...)
			}
		}
		return logits
	}
	long, short := sequence(541), sequence(6)
	run(rowsOf{long, 0, 300})
	run(rowsOf{long, 300, 240}, rowsOf{short, 0, 3})
	want := run(rowsOf{long, 540, 1})
	for i := range 3 {
		want = append(want, run(rowsOf{short, 3 + i, 1})...)
	}
	kept := used
	for _, rows := range steadyRows {
		places := []int{0, rows / 3, rows - 1}
		if rows > 17 { // which take long by emulation
			places = places[1+rows%2:][:1]
		}
		for _, place := range slices.Compact(places) {
			var list []rowsOf
			used = kept
			others := func(n int) { // half of them of one sequence
				if n > 0 {
					list = append(list, rowsOf{sequence(n), 0, (n + 1) / 2})
				}
				for range n / 2 {
					list = append(list, rowsOf{sequence(1), 0, 1})
				}
			}
			others(place)
			list = append(list, rowsOf{long, 540, 1})
			probes := 1
			if rest := rows - place - 1; rest >= 3 {
				list, probes = append(list, rowsOf{short, 3, 3}), 4
				others(rest - 3)
			} else {
				others(rest)
			}
			for i, got := range run(list...)[place:][:probes] {
				if !slices.Equal(got, want[i]) {
					t.Errorf("probe %d has other bits at row %d of %d", i, place+i, rows)
				}
			}
		}
	}
}
