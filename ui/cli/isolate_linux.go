package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/gpu/card"
	"github.com/ossrun/ossrun/gpu/spread"
	"github.com/ossrun/ossrun/gpu/worker"
	"github.com/ossrun/ossrun/runtime/engine"
)

// workerVerb is how this program is told to be the worker.
const workerVerb = "gpu-worker"

// openIsolated opens a GPU in a worker.
func openIsolated(c *cli.Context, list []int) (engine.Device, error) {
	dev, err := startWorker(c, worker.Wanted{GPUs: list})
	if err != nil {
		return nil, err
	}
	return dev, nil
}

// placeIsolated opens several GPUs and the CPU in a worker, for a model.
func placeIsolated(c *cli.Context, list []int, r spread.Request) (engine.Device, []string, error) {
	text, err := r.Text()
	if err != nil {
		return nil, nil, err
	}
	dev, err := startWorker(c, worker.Wanted{GPUs: list, Place: text})
	if err != nil {
		return nil, nil, err
	}
	placed, ok := dev.Placed()
	if !ok {
		return nil, nil, errors.Join(fmt.Errorf("%s is not made of several devices", dev.Name()), dev.Close())
	}
	return placed, dev.Said(), nil
}

// startWorker starts the embedded program as the worker, or this one once more.
func startWorker(c *cli.Context, w worker.Wanted) (*worker.Device, error) {
	if !driverIsLikely() {
		return nil, card.ErrNone
	}
	o := worker.Options{Wanted: w, Log: func(line string) { fmt.Fprintf(c.App.ErrWriter, "ossrun: gpu worker: %s\n", line) }}
	if linkedStatically {
		if len(assets.GPUWorker) == 0 {
			return nil, errors.New(noWorker)
		}
		return worker.StartEmbedded(assets.GPUWorker, o)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program to start it as the GPU worker: %w", err)
	}
	o.Program = []string{self, workerVerb}
	return worker.Start(o)
}

// openInWorker is the worker's side of both.
func openInWorker(w worker.Wanted) (engine.Device, []string, error) {
	if w.Place != nil {
		return spread.OpenText(context.Background(), w.GPUs, w.Place, gpuRecords)
	}
	dev, err := openGPU(w.GPUs)
	return dev, nil, err
}

// driverIsLikely tells whether a machine has signs of a driver, so that one without a GPU starts no process to find that out.
func driverIsLikely() bool {
	for _, l := range card.Libraries {
		if os.Getenv(l.Variable) != "" {
			return true
		}
	}
	return anyExists(nvidiaSigns) || anyExists(amdSigns)
}

// workerOf is the worker that a device is in; nil where it is in this process.
func workerOf(dev engine.Device) *worker.Device {
	switch d := dev.(type) {
	case *worker.Device:
		return d
	case *worker.Placed:
		return d.Device
	}
	return nil
}

// isolated tells whether a device is in a worker.
func isolated(dev engine.Device) bool { return workerOf(dev) != nil }

func trafficOf(dev engine.Device) *trafficRow {
	d := workerOf(dev)
	if d == nil {
		return nil
	}
	t := d.Traffic()
	return &trafficRow{t.Steps, t.Sent, t.Received}
}

// workerCommand is the worker's side, for this program alone.
func workerCommand() *cli.Command {
	return &cli.Command{
		Name:        workerVerb,
		Hidden:      true,
		Usage:       "hold a GPU for another ossrun, which starts this",
		Description: "Example: ossrun serve --isolate\n\n" + exitCodes,
		Action: func(c *cli.Context) error {
			if err := worker.Serve(openInWorker); err != nil {
				return fail(exitFailure, "%s", err)
			}
			return nil
		},
	}
}
