// ossrun chat --endpoint URL: the chat over the OpenAI port of any server.

package cli

import (
	"cmp"
	"context"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/remote"
	"github.com/ossrun/ossrun/runtime/session"
)

// distant is a model of a port for one chat.
type distant struct {
	session.Runner
	port *remote.Port
}

func (d distant) Close() error {
	d.port.Close()
	return nil
}

// openEndpoint asks the port at url for its models and takes the one that is wanted.
func openEndpoint(c *cli.Context, url string, tell func(string)) (*distant, error) {
	for _, name := range ownEngine {
		if typed(c, name) {
			return nil, fail(exitUsage, "--endpoint has its model and its settings: leave --%s out",
				name)
		}
	}
	key := cmp.Or(os.Getenv("OSSRUN_API_KEY"), os.Getenv("VLLM_API_KEY"),
		os.Getenv("OPENAI_API_KEY"))
	port, err := remote.Open(c.Context, url, key, tell)
	if err != nil {
		return nil, fail(exitFailure, "%s", err)
	}
	model, err := port.Get(c.Context, c.String("model"))
	if err != nil {
		port.Close()
		return nil, fail(exitUsage, "%s", err)
	}
	return &distant{model, port}, nil
}

func (d distant) models(context.Context) []session.ModelInfo { return d.port.List() }

func (d distant) to(ctx context.Context, name string) (session.Runner, error) {
	return d.port.Get(ctx, name)
}
