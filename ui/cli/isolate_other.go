//go:build !linux

package cli

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/gpu/spread"
	"github.com/ossrun/ossrun/runtime/engine"
)

// openIsolated is for Linux: workers are started with descriptors and shared memory that other systems do not have.
func openIsolated(*cli.Context, []int) (engine.Device, error) {
	return nil, errors.New("--isolate needs Linux: leave it out")
}

func placeIsolated(*cli.Context, []int, spread.Request) (engine.Device, []string, error) {
	return nil, nil, errors.New("--isolate needs Linux: leave it out")
}

func isolated(engine.Device) bool { return false }

func trafficOf(engine.Device) *trafficRow { return nil }

// workerCommand says where workers are.
func workerCommand() *cli.Command {
	return &cli.Command{Name: "gpu-worker", Hidden: true, Usage: "hold a GPU for another ossrun (Linux only)", Description: "Example: ossrun serve\n\n" + exitCodes,
		Action: func(*cli.Context) error { return fail(exitFailure, "GPU workers need Linux") }}
}
