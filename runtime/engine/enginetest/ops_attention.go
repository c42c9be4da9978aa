package enginetest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ossrun/ossrun/runtime/engine"
)

// write_kv and attend, which only make sense together: keys and values of several sequences go into
// pages in random order, in steps of random size; every page that is not theirs, and every position
// not written yet, is NaN.

// newShuffled are the pages of a pool in random order.
func newShuffled(n int, random *rand.Rand) *Pages {
	pages := NewPages(n)
	random.Shuffle(n, func(i, j int) {
		pages.Free[i], pages.Free[j] = pages.Free[j],
			pages.Free[i]
	})
	return pages
}

// history is a sequence whose keys and values the test remembers.
type history struct {
	*Sequence
	keys, values [][]float64 // [position][kv heads * dim]
}

func testAttend(r *rig, layer int) (float64, error) {
	s := r.p.Spec
	width := (s.Heads + 2*s.KVHeads) * s.HeadDim
	qkv := r.p.Scratch("qkv", engine.F32, engine.PerRow, width)
	o := r.p.Scratch("o", engine.F32, engine.PerRow, s.Heads*s.HeadDim)
	sinks, sinkTensor := r.weight("sinks", 1, s.Heads)
	r.p.WriteKV("kv", layer, qkv)
	r.p.Attend("attend", layer, o, qkv, sinks)
	if err := r.prepare(); err != nil {
		return 0, err
	}
	pages := newShuffled(r.p.Settings.Pages, r.rand).WithTwins(r.p.Settings.KVCacheDtype)
	sequences := []*history{{Sequence: pages.NewSequence(s)}, {Sequence: pages.NewSequence(s)}}
	var e worst
	for step := 0; ; step++ {
		b, rows, err := r.attendBatch(sequences, step)
		if err != nil {
			return 0, err
		}
		if b == nil {
			return float64(e), nil
		}
		in := r.normal(rows * width)
		err = errors.Join(
			Poison(o.Region, 0, o.Region.Bytes()), // o and qkv lie in one arena
			qkv.Region.Write(qkv.Offset, encodeFloats(in)),
			r.poisonFree(pages))
		if err != nil {
			return 0, err
		}
		got, err := r.after(b, o, rows)
		if err != nil {
			return 0, err
		}
		row := 0
		for i, q := range b.Seqs {
			for range q.Rows {
				if err := r.compareHeads(&e, sequences[i], wide(in[row*width:][:width]),
					got[row*s.Heads*s.HeadDim:], slidesHere(s, layer),
					sinkTensor.row(0)); err != nil {
					return 0, err
				}
				row++
			}
		}
	}
}

// attendBatch takes each sequence a few rows further: to the middle of pages, over their edges and
// past the window. Nil when they are full.
func (r *rig) attendBatch(sequences []*history, step int) (*engine.Batch, int, error) {
	b := &engine.Batch{}
	left := r.rows
	for i, q := range sequences {
		n := left
		if i == 0 && r.rows > 1 {
			n = 1 + r.rand.IntN(r.rows-1)
		}
		if i > 0 && step == 0 && r.rows > 2 {
			n = left/2 + 1 // the step is not always full
		}
		if n == 0 {
			continue // a step of one row: the second sequence stays empty
		}
		if q.Length+n > min(r.p.Spec.MaxPosition, 200) {
			return nil, 0, nil
		}
		rows, err := q.Extend(n)
		if err != nil {
			return nil, 0, err
		}
		// copies, since timing runs the step again after the pages have moved on
		rows.Full, rows.Window = slices.Clone(rows.Full), slices.Clone(rows.Window)
		b.Seqs = append(b.Seqs, rows)
		left -= n
	}
	b.Tokens, b.Twins = make([]int32, r.rows-left), slices.Clone(sequences[0].Twins())
	return b, r.rows - left, nil
}

// poisonFree fills the pages that no sequence holds with NaN: those given back, too. At the start
// all are.
func (r *rig) poisonFree(pages *Pages) error {
	kv := r.p.KV()
	bytes := engine.PageBytes(r.p.Spec, r.p.Settings.KVCacheDtype)
	clean := map[int32]bool{}
	for _, page := range pages.Free {
		if r.clean != nil && !r.clean[page] {
			if err := Poison(kv.Region, int64(page)*bytes, bytes); err != nil {
				return err
			}
		}
		clean[page] = true
	}
	r.clean = clean
	return nil
}

// compareHeads adds the row's key and value to what the test remembers and compares every head.
func (r *rig) compareHeads(e *worst, q *history, qkv []float64, got []float32, window int,
	sinks []float64) error {
	s := r.p.Spec
	d := s.HeadDim
	kv := qkv[s.Heads*d:]
	for i, v := range kv {
		switch {
		case r.p.Settings.KVCacheDtype == engine.KVFP8 && window == 0:
			kv[i] = roundE4M3(v)
		case r.p.Settings.KVCacheDtype != "f32":
			kv[i] = fromBF16(toBF16(float32(v)))
		}
	}
	q.keys = append(q.keys, kv[:s.KVHeads*d])
	q.values = append(q.values, kv[s.KVHeads*d:])
	from := 0
	if window > 0 {
		from = engine.FirstVisible(len(q.keys)-1, window)
	}
	for head := range s.Heads {
		at := head / (s.Heads / s.KVHeads) * d
		var keys, values [][]float64
		for p := from; p < len(q.keys); p++ {
			keys, values = append(keys, q.keys[p][at:at+d]), append(values, q.values[p][at:at+d])
		}
		for i, v := range attention(qkv[head*d:(head+1)*d], keys, values, sinks[head]) {
			if math.IsNaN(float64(got[head*d+i])) {
				return fmt.Errorf("position %d, head %d: NaN: a page or position that is not "+
					"visible was read", len(q.keys)-1, head)
			}
			e.add(got[head*d+i], v, 1)
		}
	}
	return nil
}
