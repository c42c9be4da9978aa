// Package cli is the command line: one file per verb, each a function that returns its
// *cli.Command.
//
// What must stay true: stdout holds only what was asked for, everything else goes to stderr; every
// error is one line that says what happened and what to do; the exit code is one of those in
// errors.go; nothing here calls os.Exit, so the tests run verbs in process.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/runtime/serve"
)

// Terminal is where a run reads and writes. In and Out may be files, so that a verb can tell
// whether a person is there.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
}

// Run runs one command line (args[0] is the program's name) and returns the exit code.
func Run(ctx context.Context, args []string, t Terminal) int {
	app := newApp(t)
	args = otherSpellings(app, args)
	if completeValue(app, args) {
		return exitOK
	}
	err := app.RunContext(ctx, flagsFirst(app, args))
	if err == nil {
		return exitOK
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	if text := err.Error(); text != "" {
		fmt.Fprintf(t.Err, "ossrun: %s\n", text)
	}
	return exitCode(err)
}

func newApp(t Terminal) *cli.App {
	app := &cli.App{DisableSliceFlagSeparator: true, // a value may be JSON

		Name:  "ossrun",
		Usage: "run OpenAI's gpt-oss models on this machine",
		Description: strings.TrimSpace(`
One program for gpt-oss-20b and gpt-oss-120b: it finds the GPU or uses the CPU, keeps the
weights in the Hugging Face cache, chats in the terminal and serves an OpenAI-compatible port.

  ossrun chat                          talk to the best model that is here and fits
  ossrun chat "Why is the sky blue?"   answer once and exit
  ossrun serve --port 8000             an OpenAI port at http://127.0.0.1:8000/v1`),
		HideVersion:            true,
		HideHelpCommand:        true,
		EnableBashCompletion:   true,
		UseShortOptionHandling: false,
		CustomAppHelpTemplate:  appHelp,
		Reader:                 t.In,
		Writer:                 t.Out,
		ErrWriter:              t.Err,
		ExitErrHandler:         func(*cli.Context, error) {},
		OnUsageError:           usageError,
		Commands: []*cli.Command{
			chatCommand(t), runCommand(t), serveCommand(t), launchCommand(t), psCommand(),
			stopCommand(t),
			pullCommand(t), listCommand(), showCommand(), rmCommand(t), benchCommand(),
			evalCommand(), batchCommand(t), serviceCommand(),
			doctorCommand(), mcpCommand(t), harmonyCommand(), versionCommand(), completionCommand(),
			{Name: serve.WorkerVerb, Hidden: true, Description: "Example: ossrun serve --isolate",
				Usage:  "hold a GPU for another ossrun, which starts this",
				Action: func(*cli.Context) error { return serve.RunWorker() }},
		},
	}
	var verbs []string
	for _, cmd := range app.Commands {
		verbs = append(verbs, cmd.Name)
		cmd.Before = func(c *cli.Context) error { return applyConfig(app, c) }
		for _, each := range append(cmd.Subcommands, cmd) { // errors and help in our form
			each.OnUsageError, each.HideHelpCommand = usageError, true
			each.CustomHelpTemplate = helpTemplate(each.Flags)
		}
	}
	app.Action = func(c *cli.Context) error {
		if name := c.Args().First(); name != "" {
			return fail(exitUsage, "%s; see ossrun --help", unknownName("command", name, verbs))
		}
		return cli.ShowAppHelp(c)
	}
	return app
}

// isTerminal tells whether a person is at the other end of f.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}
