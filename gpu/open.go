// Package gpu is the one door to GPUs: Open returns a backend on which models can be loaded.
// Whether that is one card or several with the CPU, in this process or in a worker, is decided here
// alone.
//
// What must stay true: a user who names GPUs gets those or an error; a failure closes everything.
package gpu

import (
	"context"

	"github.com/ossrun/ossrun/gpu/device"
	"github.com/ossrun/ossrun/gpu/worker"
	"github.com/ossrun/ossrun/runtime/engine"
)

// ErrNone is Open's error on a machine without any GPU driver.
var ErrNone = device.ErrNone

// ProofFolder is the folder of the proofs on this machine's cards; "": nothing is proved.
var ProofFolder = device.ProofFolder()

// Backend is one GPU, or, for a model that does not fit on it, several GPUs, with the CPU for
// experts. It is not safe for concurrent use, but the models loaded on it are.
//
// Room prepares the backend for a model. It takes the card alone if UsableContext fits.
// Otherwise, or if Settings.CPUExperts asks for it, it takes several GPUs and the CPU together;
// if these have no room either, it takes the card with a short context. Name, Caps and Memory may
// change. RoomHere opens nothing.
type Backend struct{ worker.Local }

// Open opens the first GPU of s.GPUs, or the first that works. notify gets lines for people:
// kernels that are wrong on a card, a model's placement, a worker's output.
func Open(ctx context.Context, s engine.Settings, notify func(line string)) (*Backend, error) {
	open := openLocal
	if Static || s.Isolate {
		open = startWorker
	}
	l, err := open(ctx, s, notify)
	if err != nil {
		return nil, err
	}
	return &Backend{l}, nil
}

// RunWorker serves the program that started this process, until it exits or ends the connection.
func RunWorker() error {
	return worker.Serve(func(s engine.Settings, notify func(string)) (worker.Local, error) {
		return openLocal(context.Background(), s, notify)
	})
}
