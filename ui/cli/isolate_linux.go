package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/gpu/card"
	"github.com/ossrun/ossrun/gpu/worker"
	"github.com/ossrun/ossrun/runtime/engine"
)

// workerVerb is how this program is told to be the worker.
const workerVerb = "gpu-worker"

// openIsolated opens a GPU in a worker: the embedded program, or this one once more.
func openIsolated(c *cli.Context, list []int) (engine.Device, error) {
	if !driverIsLikely() {
		return nil, card.ErrNone
	}
	o := worker.Options{GPUs: list, Log: func(line string) { fmt.Fprintf(c.App.ErrWriter, "ossrun: gpu worker: %s\n", line) }}
	var dev *worker.Device
	var err error
	if linkedStatically {
		if len(assets.GPUWorker) == 0 {
			return nil, errors.New(noWorker)
		}
		dev, err = worker.StartEmbedded(assets.GPUWorker, o)
	} else {
		self, failed := os.Executable()
		if failed != nil {
			return nil, fmt.Errorf("find this program to start it as the GPU worker: %w", failed)
		}
		o.Program = []string{self, workerVerb}
		dev, err = worker.Start(o)
	}
	if err != nil {
		return nil, err
	}
	return dev, nil
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

// isolated tells whether a device is in a worker.
func isolated(dev engine.Device) bool {
	_, ok := dev.(*worker.Device)
	return ok
}

func trafficOf(dev engine.Device) *trafficRow {
	d, ok := dev.(*worker.Device)
	if !ok {
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
			if err := worker.Serve(openGPU); err != nil {
				return fail(exitFailure, "%s", err)
			}
			return nil
		},
	}
}
