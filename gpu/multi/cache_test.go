package multi_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// The pool over several cards is one pool to its readers and writers.

// TestPoolBytes: written bytes are read back, in pieces of any size, across any cut of the slots.
func TestPoolBytes(t *testing.T) {
	for _, ends := range [][]int{{4}, {1, 4}, {2, 4}, {3, 4}, {1, 2, 3, 4}, {1, 3, 4}} {
		t.Run(fmt.Sprint(ends), func(t *testing.T) { poolBytes(t, ends, "f32") })
		t.Run(fmt.Sprint(ends, " fp8"), func(t *testing.T) { poolBytes(t, ends, engine.KVFP8) })
	}
}

func poolBytes(t *testing.T, ends []int, kv string) {
	eng := hosttest.Must(engine.New(hosts(t, nil, ends), opened(t, testdata+"T1/checkpoint"),
		engine.Settings{Pages: 5, MaxNumBatchedTokens: 1, KVCacheDtype: kv}))(t)
	r := rand.New(rand.NewPCG(3, uint64(len(ends))))
	pool := eng.Cache()
	want := make([]byte, pool.Bytes())
	for range 60 {
		at := r.IntN(len(want))
		part := make([]byte, 1+r.IntN(len(want)-at))
		for i := range part {
			part[i] = byte(r.Uint32())
		}
		hosttest.Check(t, pool.Write(int64(at), part))
		copy(want[at:], part)
	}
	got := make([]byte, len(want))
	if err := pool.Read(0, got); err != nil || !bytes.Equal(want, got) {
		t.Errorf("other bytes, %v", err)
	}
	if pool.Read(1, got) == nil || pool.Write(-1, got[:1]) == nil {
		t.Error("outside the pool: accepted")
	}
	if err := eng.Close(); err != nil {
		t.Error(err)
	}
	if pool.Read(0, got[:1]) == nil {
		t.Error("a freed pool is read")
	}
}

// TestSwappedPages: a sequence's pages are read, the pool is overwritten, and they are written back
// as other pages. The sequence continues unchanged. Pages of full and of window layers change
// places.
func TestSwappedPages(t *testing.T) {
	for _, ends := range [][]int{{1, 4}, {2, 4}, {1, 2, 3, 4}} {
		for _, kv := range []string{"f32", engine.KVFP8} {
			t.Run(fmt.Sprint(ends, kv), func(t *testing.T) { swappedPages(t, ends, kv) })
		}
	}
}

func swappedPages(t *testing.T, ends []int, kv string) {
	eng := hosttest.Must(engine.New(hosts(t, nil, ends, 2), opened(t, testdata+"T1/checkpoint"),
		engine.Settings{Pages: 8, MaxNumBatchedTokens: 64, KVCacheDtype: kv}))(t)
	full, window := []int32{1, 3}, []int32{2, 4}
	var twins []int32
	pair := func(of ...int32) { // the twins of pages 1 to 4
		if kv == engine.KVFP8 {
			twins = append(append([]int32{-1}, of...), -1, -1, -1)
		}
	}
	pair(-1, 5, -1, 6)
	step := func(start int32, rows int) []float32 {
		b := &engine.Batch{Seqs: []engine.SeqRows{{Start: start, Rows: int32(rows), Full: full,
			Window: window}}, LogitRows: []int32{int32(rows - 1)}, Twins: twins}
		for i := range rows {
			b.Tokens = append(b.Tokens, (start+int32(i)*5)%900)
		}
		logits := make([]float32, eng.Spec().Vocab)
		hosttest.Check(t, eng.Step(t.Context(), b, logits))
		return logits
	}
	step(0, 40)
	want := step(40, 3)

	step(0, 40)
	page := eng.Plan().PageBytes
	kept := map[int32][]byte{}
	for id := int32(1); id <= 6; id++ {
		kept[id] = make([]byte, page)
		hosttest.Check(t, eng.Cache().Read(int64(id)*page, kept[id]))
	}
	nan := bytes.Repeat([]byte{0xff}, int(eng.Cache().Bytes()))
	if err := eng.Cache().Write(0, nan); err != nil {
		t.Fatal(err)
	}
	// full pages 2 and 7, window pages 1 and 3, their twins 0 and 4
	for from, to := range map[int32]int32{1: 2, 2: 1, 3: 7, 4: 3, 5: 0, 6: 4} {
		hosttest.Check(t, eng.Cache().Write(int64(to)*page, kept[from]))
		again := make([]byte, page)
		if err := eng.Cache().Read(int64(to)*page, again); err != nil ||
			!bytes.Equal(again, kept[from]) {
			t.Errorf("page %d came back as %d with other bytes, %v", from, to, err)
		}
	}
	full, window = []int32{2, 7}, []int32{1, 3}
	pair(0, -1, 4, -1)
	if got := step(40, 3); !slices.Equal(want, got) {
		t.Error("other logits after the pages were swapped")
	}
	if err := eng.Close(); err != nil {
		t.Error(err)
	}
}
