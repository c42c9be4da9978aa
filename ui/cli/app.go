// Package cli is the command line: one file per verb, each with a function that returns its
// *cli.Command.
//
// What must stay true: stdout has only the requested output, everything else goes to stderr; every
// error is one line with cause and remedy; the exit code is one of those in manual.go; nothing here
// calls os.Exit, so the tests run verbs in process.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/runtime/remote/vllm"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// Terminal is the input and output of a run; of files a verb can tell whether a person is there.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
}

// report writes a line of this program. Parts of it have foreign origin: names of files and models,
// replies of servers, output of programs.
func (t Terminal) report(format string, args ...any) {
	fmt.Fprintf(cleanWriter{t.Err}, "ossrun: %s\n", term.PlainWords(fmt.Sprintf(format, args...)))
}

// cleanWriter removes from text what a terminal would act on or reorder. Each Write has complete
// characters.
type cleanWriter struct{ w io.Writer }

func (c cleanWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(c.w, term.Clean(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Run runs one command line (args[0] is the program's name) and returns the exit code.
func Run(ctx context.Context, args []string, t Terminal) int {
	app := newApp(t)
	args = otherSpellings(app, args)
	if complete(app, args) {
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
		t.report("%s", text)
	}
	return exitCode(err)
}

func newApp(t Terminal) *cli.App {
	app := &cli.App{DisableSliceFlagSeparator: true, // a value may be JSON

		Name:                   "ossrun",
		HideVersion:            true,
		HideHelpCommand:        true,
		UseShortOptionHandling: false,
		CustomAppHelpTemplate:  appHelp,
		Reader:                 t.In,
		Writer:                 t.Out,
		ErrWriter:              t.Err,
		ExitErrHandler:         func(*cli.Context, error) {},
		OnUsageError:           usageError,
		Commands: []*cli.Command{
			chatCommand(t), runCommand(t), serveCommand(t), vllmCommand(t), launchCommand(t),
			psCommand(),
			stopCommand(t), keysCommand(t), sessionsCommand(t),
			pullCommand(t), importCommand(t), listCommand(), showCommand(), rmCommand(t),
			benchCommand(t),
			evalCommand(t), batchCommand(t), serviceCommand(),
			doctorCommand(), mcpCommand(t), harmonyCommand(), versionCommand(), completionCommand(),
			{Name: serve.WorkerVerb, Hidden: true,
				Action: func(*cli.Context) error { return serve.RunWorker() }},
		},
	}
	app.Usage, app.Description = helpOf(app.Name).summary, helpOf(app.Name).description
	describe("", app.Commands)
	var verbs []string
	for _, cmd := range app.Commands {
		if !cmd.Hidden {
			verbs = append(verbs, cmd.Name)
		}
		for _, verb := range append(cmd.Subcommands, cmd) { // errors and help in our format
			if verb == cmd || flagNamed(verb, "config") != nil {
				verb.Before = func(c *cli.Context) error { return applyConfig(app, c) }
			}
			verb.Aliases = append(verb.Aliases, verbAliases[verb.Name]...)
			verb.OnUsageError, verb.HideHelpCommand = usageError, true
			verb.CustomHelpTemplate = helpTemplate(verb, common[cmd.Name+" "+verb.Name])
			verb.UsageText = verb.Description // the library's manual reads it
			if action := verb.Action; verb.ArgsUsage == "" && action != nil &&
				len(verb.Subcommands) == 0 {
				verb.Action = func(c *cli.Context) error {
					if err := noArguments(c); err != nil {
						return err
					}
					return action(c)
				}
			}
		}
		name := cmd.Name
		if name == "run" {
			name = "chat"
		}
		cmd.CustomHelpTemplate = helpTemplate(cmd, common[name])
	}
	app.Action = func(c *cli.Context) error {
		if name := c.Args().First(); name != "" {
			nearest := cmp.Or(suggestVerb(name), models.Nearest(name, verbs))
			return fail(exitUsage, "%s", unknown("command", name, nearest, "ossrun --help"))
		}
		if !isTerminal(t.In) || !isTerminal(t.Out) {
			return cli.ShowAppHelp(c)
		}
		words, err := chooseStart(c.Context, t)
		if err != nil || words == nil {
			return err
		}
		return app.RunContext(c.Context, append([]string{app.Name}, words...))
	}
	return app
}

// skipDefault reports that a place which no flag names cannot be used, and returns nil. It returns
// err if it has another cause.
func skipDefault(w io.Writer, err error) error {
	for _, cause := range []error{fs.ErrPermission, syscall.ENOTDIR, syscall.EROFS} {
		if errors.Is(err, cause) {
			Terminal{Err: w}.report("skipped: %s", err)
			return nil
		}
	}
	return err
}

func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

func fail(code int, format string, args ...any) error {
	return &exitError{code, fmt.Sprintf(format, args...)}
}

func exitCode(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if isError[*models.UnknownModelError](err) || isError[*checkpoint.NotCachedError](err) ||
		isError[*serve.ModelError](err) || isError[*hub.AccessError](err) ||
		isError[*hub.NotFoundError](err) || isError[*hub.OfflineError](err) {
		return exitModel
	}
	return exitFailure
}

func isError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// subcommandsOnly is the action of a verb with only subcommands, listed by words.
func subcommandsOnly(words string) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.NArg() > 0 {
			return fail(exitUsage, "%s has %s, not %q", c.Command.Name, words, c.Args().First())
		}
		return cli.ShowSubcommandHelp(c)
	}
}

func noArguments(c *cli.Context) error {
	if c.NArg() == 0 {
		return nil
	}
	return fail(exitUsage, "%s takes no arguments, not %q. Run %s --help", c.Command.Name,
		c.Args().First(), c.Command.HelpName)
}

// Errors of the flag parser.
var (
	undefinedFlag = regexp.MustCompile(`^flag provided but not defined: -(.*)$`)
	badValue      = regexp.MustCompile(`^invalid (?:boolean )?value ("(?s:.*)") for (?:flag )?-([^ :]+): `)
	noValue       = regexp.MustCompile(`^flag needs an argument: -(.*)$`)
	noFlag        = regexp.MustCompile(`^bad flag syntax: (.*)$`)
)

// usageError explains an error about flags in one line.
func usageError(c *cli.Context, err error, _ bool) error {
	helpCommand := "ossrun --help"
	if c.Command != nil && c.Command.HelpName != "" { // ossrun eval compat
		helpCommand = c.Command.HelpName + " --help"
	}
	if m := undefinedFlag.FindStringSubmatch(err.Error()); m != nil {
		var names []string
		if c.Command != nil {
			for _, f := range c.Command.Flags {
				names = append(names, "--"+f.Names()[0])
			}
		}
		name := dashed(strings.TrimLeft(m[1], "-"))
		if _, ok := vllm.FlagValues(name); ok && c.Command != nil && c.Command.Name == "serve" {
			return fail(exitUsage, "%s is a flag of vLLM, which the built-in engine lacks. "+
				"Run ossrun vllm serve, which passes it on", name)
		}
		return fail(exitUsage, "%s", unknown("flag", name, models.Nearest(name, names),
			helpCommand))
	}
	if m := badValue.FindStringSubmatch(err.Error()); m != nil && c.Command != nil {
		value, quoted := strconv.Unquote(m[1])
		if quoted == nil {
			return fail(exitUsage, "%s", invalidValue(flagNamed(c.Command, m[2]), m[2], value))
		}
	}
	if m := noValue.FindStringSubmatch(err.Error()); m != nil {
		return fail(exitUsage, "%s needs a value. Run %s", dashed(m[1]), helpCommand)
	}
	if m := noFlag.FindStringSubmatch(err.Error()); m != nil {
		return fail(exitUsage, "%q is not a flag. Run %s", m[1], helpCommand)
	}
	return fail(exitUsage, "%s. Run %s", err, helpCommand)
}

// unknown is the error for an unknown name, with the nearest one if any, else where to look.
func unknown(kind, name, nearest, helpCommand string) string {
	if nearest != "" {
		return fmt.Sprintf("unknown %s %q. Did you mean \"%s\"?", kind, name, nearest)
	}
	return fmt.Sprintf("unknown %s %q. Run %s", kind, name, helpCommand)
}
