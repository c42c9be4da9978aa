package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/gpu/card"
	"github.com/ossrun/ossrun/gpu/spread"
	"github.com/ossrun/ossrun/gpu/worker"
	"github.com/ossrun/ossrun/runtime/engine"
)

// The GPU engine in a process of its own: where the settings ask for it in a dynamic build, always in a static one.

// WorkerVerb is how this program is told to be the worker.
const WorkerVerb = "gpu-worker"

// Work is the worker: it serves the program that started it, until that ends or says goodbye.
func Work() error {
	return worker.Serve(func(w worker.Wanted) (engine.Device, []string, error) {
		if w.Place != nil {
			return spread.OpenText(context.Background(), w.GPUs, w.Place, Records)
		}
		dev, err := openHere(context.Background(), w.GPUs)
		return dev, nil, err
	})
}

// openIsolated opens a card in a worker.
func openIsolated(list []int, tell func(string)) (engine.Device, error) {
	dev, err := startWorker(worker.Wanted{GPUs: list}, tell)
	if err != nil {
		return nil, err // never a nil *worker.Device in an interface that is not nil
	}
	return dev, nil
}

// placeIsolated opens several GPUs and the CPU in a worker, for a model.
func placeIsolated(list []int, r spread.Request, tell func(string)) (engine.Device, []string, error) {
	text, err := r.Text()
	if err != nil {
		return nil, nil, err
	}
	dev, err := startWorker(worker.Wanted{GPUs: list, Place: text}, tell)
	if err != nil {
		return nil, nil, err
	}
	placed, ok := dev.Placed()
	if !ok {
		return nil, nil, errors.Join(fmt.Errorf("%s is not made of several devices", dev.Name()), dev.Close())
	}
	return placed, dev.Said(), nil
}

// startWorker starts the embedded program as the worker, or this program once more.
func startWorker(w worker.Wanted, tell func(string)) (*worker.Device, error) {
	if !driverIsLikely() {
		return nil, card.ErrNone
	}
	o := worker.Options{Wanted: w, Log: func(line string) { tell("gpu worker: " + line) }}
	if Static {
		if len(assets.GPUWorker) == 0 {
			return nil, errors.New(NoWorker)
		}
		return worker.StartEmbedded(assets.GPUWorker, o)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program to start it as the GPU worker: %w", err)
	}
	o.Program = []string{self, WorkerVerb}
	return worker.Start(o)
}

// Traffic is what the worker's steps have cost, in messages; nil where there is no worker.
func (b *Backend) Traffic() *Traffic {
	var t worker.Traffic
	switch d := b.dev.(type) {
	case *worker.Device:
		t = d.Traffic()
	case *worker.Placed:
		t = d.Traffic()
	default:
		return nil
	}
	return &Traffic{t.Steps, t.Sent, t.Received}
}
