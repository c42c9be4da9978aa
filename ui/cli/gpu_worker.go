// ossrun gpu-worker: the process that has the GPU engine of another ossrun, which starts it. Nobody
// types this verb.

package cli

import (
	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/serve"
)

func workerCommand() *cli.Command {
	return &cli.Command{
		Name:        serve.WorkerVerb,
		Hidden:      true,
		Usage:       "hold a GPU for another ossrun, which starts this",
		Description: "Example: ossrun serve --isolate",
		Action:      func(*cli.Context) error { return serve.RunWorker() },
	}
}
