package engine

import (
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/models"
)

// A rebuild step (Batch.Rebuild) computes only the window layers' keys and values, for rows whose
// full-layer keys and values are in the cache already. Its program is the model's own without the
// operations that must not or need not run, so a device that runs the model can run it too.

// RecordRebuild is Record without writes for full layers, and without anything behind the last
// windowed layer's write.
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

// rebuildBucket returns a rebuild step for as many rows as the bucket like has. It is compiled when
// first needed, which is seldom: a rebuild follows a cache hit whose window pages are gone. It
// shares the buffers of like, so it needs no memory of its own.
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
