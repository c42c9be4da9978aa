package engine

import (
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/models"
)

// A rebuild step (Batch.Rebuild) computes the window layers' keys and values alone. Its program is
// the model's own without what must not or need not run, so every device can run it.

// RecordRebuild is Record without full layers' writes and what follows the last window layer's.
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
func (e *InProcess) rebuildBucket(like *bucket) (*bucket, error) {
	for i := range e.rebuild {
		if e.rebuild[i].program.Rows == like.program.Rows {
			return &e.rebuild[i], nil
		}
	}
	p, err := RecordRebuild(e.spec, e.settings, like.program.Rows)
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
