// The models of one verb: opened with what the flags say, with what they have to say on
// stderr.

package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/serve"
)

// openModels opens the device that the flags ask for.
// ctx ends what it loads later, too.
func openModels(ctx context.Context, c *cli.Context, t Terminal, o *serve.Options) (*serve.Models,
	error) {
	o.Notify = notify(t)
	if o.Progress == nil {
		o.Progress = showProgress(t)
	}
	m, err := serve.New(ctx, *o)
	unwanted := c.IsSet("deterministic") && !o.Settings.Deterministic && !c.Bool("print-config")
	if err == nil && unwanted && !m.OnGPU() {
		o.Notify(
			"--deterministic=false: the CPU engine always gives the same tokens for the same seed")
	}
	return m, err
}

// printSettled is --print-config: the settings as they are on the device.
func printSettled(out io.Writer, c *cli.Context, o *serve.Options, m *serve.Models) error {
	settled := m.Settled()
	*o = settled.Options // the flags are bound to it
	device := "CPU"
	if m.OnGPU() {
		device = "GPU"
	}
	return printConfig(out, c, settled, device)
}

// notify tells the user what runtime/serve has to say.
func notify(t Terminal) func(string) {
	return func(line string) { fmt.Fprintf(t.Err, "ossrun: %s\n", line) }
}

// absentModel is what happens when no model is named and none is here: a person is asked where ask
// is set, anybody else gets the demo and one line that says so.
func absentModel(c *cli.Context, t Terminal, m *serve.Models, ask bool) func() (checkpoint.Found,
	error) {
	return func() (checkpoint.Found, error) {
		demo, err := checkpoint.Resolve("demo")
		if err != nil {
			return demo, err
		}
		if ask && isTerminal(t.In) && isTerminal(t.Out) {
			return offer(c.Context, t, m, demo)
		}
		fmt.Fprintln(t.Err, "ossrun: no gpt-oss model is on this machine yet, so the tiny "+
			"built-in demo answers; `ossrun pull 20b` gets a real one")
		return demo, nil
	}
}
