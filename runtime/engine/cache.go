package engine

import (
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/models"
)

// The KV pool's layout. A page holds K and V of PageTokens positions of one sequence, for all
// layers of one kind: the windowed layers or the full ones. Both kinds use the same pool, so a page
// is as large as the larger kind needs (they are equal in the published models).
//
//	page = [layers of the kind][KV heads]{ K [PageTokens][head dim], V [PageTokens][head dim] }
//
// With KVFP8 a number takes one byte in a full layer and two in a window layer, so 32 positions of
// the window layers need two pages. The page that the block table names holds the first half of
// these layers, its twin (Batch.Twins) the others. Each entry of Window then costs two pages
// (WindowPages).
//
// A device with only some layers of a model (gpu/multi) lays out its pages as if the model had no
// others.

// CacheLayers are the layers [From, To) of a model, which one device keeps in a page.
type CacheLayers struct {
	Spec     models.Spec
	KV       string // "f32", "bf16" or KVFP8
	From, To int
}

// AllLayers are the layers of a whole model.
func AllLayers(s models.Spec, kv string) CacheLayers { return CacheLayers{s, kv, 0, s.Layers} }

// count is how many layers below `to` are full ones and how many are windowed.
func (c CacheLayers) count(to int) (full, windowed int) {
	for layer := c.From; layer < to; layer++ {
		if c.Spec.Sliding(layer) {
			windowed++
		} else {
			full++
		}
	}
	return full, windowed
}

// PageBytes is the size of a page.
func (c CacheLayers) PageBytes() int64 {
	full, windowed := c.count(c.To)
	if c.KV == KVFP8 {
		windowed = (windowed + 1) / 2
	}
	plain, sliding := PositionBytes(c.Spec, c.KV, false), PositionBytes(c.Spec, c.KV, true)
	return PageTokens * max(int64(full)*plain, int64(windowed)*sliding)
}

// Place is a layer's index among those of its kind in a page, or in the page's twin.
func (c CacheLayers) Place(layer int) (place int, twin bool) {
	place, windowed := c.count(layer)
	if !c.Spec.Sliding(layer) {
		return place, false
	}
	_, all := c.count(c.To)
	if half := (all + 1) / 2; c.KV == KVFP8 && windowed >= half {
		return windowed - half, true
	}
	return windowed, false
}

// PositionBytes is the size of K and V of one position in one layer.
func PositionBytes(s models.Spec, kv string, sliding bool) int64 {
	element := Settings{KVCacheDtype: kv}.kvType()
	if kv == KVFP8 && sliding {
		element = BF16
	}
	return 2 * int64(s.KVHeads) * int64(s.HeadDim) * element.Size()
}

// PageBytes is the size of one KV page with elements of type kv.
func PageBytes(s models.Spec, kv string) int64 { return AllLayers(s, kv).PageBytes() }

// WindowPages is how many pages of the pool the window layers take for PageTokens positions.
func WindowPages(kv string) int {
	if kv == KVFP8 {
		return 2
	}
	return 1
}

// ReceptiveField says how far before a cut a rebuild must begin. It is how many positions the
// window layers' keys and values of the last Window-1 positions before the cut depend on, if those
// of the full layers are kept: each window layer reaches Window-1 positions further back than the
// one above it. 1,524 for the 20b, 2,286 for the 120b.
//
// A rebuild begins at position cut-ReceptiveField. Window layer j (counted from 0) is exact
// j*(Window-1) positions later, so all of them are exact from cut-(Window-1) on. A query at cut
// sees no earlier position.
func ReceptiveField(s models.Spec) int {
	_, windowed := AllLayers(s, "").count(s.Layers)
	return windowed * (s.Window - 1)
}

// A rebuild step (Batch.Rebuild) computes the window layers' keys and values alone. Its program is
// a part of the model's own, so every device can run it.

// RecordRebuild is Record without full layers' writes and all after the last window layer's.
func RecordRebuild(s models.Spec, o Settings, rows int) (*Program, error) {
	p, err := Record(s, o, rows)
	if err != nil {
		return nil, err
	}
	last := 0
	for i, op := range p.Ops {
		if op.Kind == WriteKV && op.Window > 0 {
			last = i
		}
	}
	p.Ops = slices.DeleteFunc(p.Ops[:last+1], func(op *Op) bool {
		return op.Kind == Tap ||
			op.Kind == WriteKV && op.Window == 0
	})
	return p, p.Check()
}

// rebuildBucket returns a rebuild step like a bucket. It is compiled when first needed, which is
// seldom (a cache hit whose window pages are gone), and shares the bucket's buffers.
func (e *InProcess) rebuildBucket(base *bucket) (*bucket, error) {
	for i := range e.rebuild {
		if e.rebuild[i].program.Rows == base.program.Rows {
			return &e.rebuild[i], nil
		}
	}
	p, err := RecordRebuild(e.spec, e.settings, base.program.Rows)
	if err != nil {
		return nil, err
	}
	e.place(p)
	step, err := e.dev.Compile(p)
	if err != nil {
		return nil, fmt.Errorf("compile a rebuild of %d rows: %w", p.Rows, err)
	}
	e.rebuild = append(e.rebuild, bucket{p, step})
	return &e.rebuild[len(e.rebuild)-1], nil
}
