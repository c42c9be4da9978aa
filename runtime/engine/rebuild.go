package engine

import (
	"fmt"
	"slices"

	"github.com/ossrun/ossrun/models"
)

// A rebuild step computes the window layers' keys and values of rows whose full layers' are in the
// cache already (Batch.Rebuild). It is the model's own program with what must not or need not
// happen taken out, so a device that runs the one runs the other, with nothing new to know.

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

// rebuildBucket gives the step for rebuilding as many rows as the bucket like has. It is compiled
// when it is first needed, which is seldom: a rebuild follows a hit whose window pages are gone.
// Its buffers lie where those of like lie, so it needs no memory of its own.
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
