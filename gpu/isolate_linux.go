package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/gpu/worker"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Runs the GPU engine in a process of its own: if settings ask for it, in a static build always.

// WorkerVerb is the argument that makes this program the worker.
const WorkerVerb = "gpu-worker"

// startWorker starts the embedded program as the worker, or this program once more.
func startWorker(_ context.Context, s engine.Settings, notify func(string)) (worker.Local, error) {
	if !driverIsLikely() {
		return nil, ErrNone
	}
	s.Isolate = false // in the worker
	o := worker.Options{Settings: s, Notify: notify,
		Log: func(line string) { notify("gpu worker: " + line) }}
	var b *worker.Backend
	var err error
	if Static {
		if len(assets.GPUWorker) == 0 {
			return nil, errors.New(NoWorker)
		}
		b, err = worker.StartEmbedded(assets.GPUWorker, assets.DemoPack, o)
	} else {
		self, failed := os.Executable()
		if failed != nil {
			return nil, fmt.Errorf("find this program to start it as the GPU worker: %w", failed)
		}
		o.Program = []string{self, WorkerVerb}
		b, err = worker.Start(o)
	}
	if err != nil {
		return nil, err // never a nil *worker.Backend in an interface that is not nil
	}
	return b, nil
}

// Traffic is the messages of the worker's steps so far; nil without a worker.
func (b *Backend) Traffic() *Traffic {
	w, ok := b.Local.(*worker.Backend)
	if !ok {
		return nil
	}
	return new(w.Traffic())
}
