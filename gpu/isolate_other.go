//go:build !linux

package gpu

import (
	"context"
	"errors"

	"github.com/ossrun/ossrun/gpu/worker"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Workers are for Linux, which has the descriptors and shared memory that they need.

const WorkerVerb = "gpu-worker"

func startWorker(context.Context, engine.Settings, func(string)) (worker.Local, error) {
	return nil, errors.New("--isolate needs Linux. Remove --isolate")
}

func (b *Backend) Traffic() *Traffic { return nil }
