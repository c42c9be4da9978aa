// The GPU engine in a process of its own (gpu/worker): --isolate in a dynamic build, always in a static one.

package cli

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/engine"
)

func isolateFlag() cli.Flag {
	return &cli.BoolFlag{Name: "isolate", Category: groupModel, Usage: "run the GPU engine in a process of its own, so that a driver that crashes or hangs ends the running requests only"}
}

// trafficRow is what the steps of a device in a process of its own have cost, in messages.
type trafficRow struct {
	Steps    int64 `json:"steps"`
	Sent     int64 `json:"messages_there"`
	Received int64 `json:"messages_back"`
}

// workerTraffic reports the messages of the checks; nil where the device is in this process.
func workerTraffic(out io.Writer, dev engine.Device) *trafficRow {
	t := trafficOf(dev)
	if t != nil {
		fmt.Fprintf(out, "\nworker: %d steps, %d messages there, %d back\n", t.Steps, t.Sent, t.Received)
	}
	return t
}
