//go:build !linux

package gpu

import (
	"errors"

	"github.com/ossrun/ossrun/gpu/spread"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Workers are for Linux: they are started with descriptors and shared memory that other systems do not have.

// WorkerVerb is how a program is told to be the worker.
const WorkerVerb = "gpu-worker"

var errLinux = errors.New("--isolate needs Linux: leave it out")

// Work is the worker.
func Work() error { return errors.New("GPU workers need Linux") }

func openIsolated([]int, func(string)) (engine.Device, error) { return nil, errLinux }

func placeIsolated([]int, spread.Request, func(string)) (engine.Device, []string, error) {
	return nil, nil, errLinux
}

// Traffic is what a worker's steps have cost.
func (b *Backend) Traffic() *Traffic { return nil }
