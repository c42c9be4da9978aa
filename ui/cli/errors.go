// Exit codes, and the form every error takes on its way out.

package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/serve"
)

const (
	exitOK          = 0
	exitFailure     = 1   // something went wrong, or a check missed
	exitUsage       = 2   // unknown flag or command, bad value
	exitModel       = 3   // the model is unknown, not here, damaged, or does not fit
	exitPort        = 4   // the port cannot be listened on
	exitInterrupted = 130 // Ctrl-C
)

// exitCodes is the text that ends the --help of every verb.
const exitCodes = "Exit codes: 0 done; 1 failure; 2 wrong usage; 3 model unknown, missing, " +
	"damaged or too large;\n" +
	"4 port cannot be used; 130 interrupted."

// exitError is an error that knows its exit code.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }
func (e *exitError) ExitCode() int { return e.code }

func fail(code int, format string, args ...any) error {
	return &exitError{code, fmt.Sprintf(format, args...)}
}

func exitCode(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	_, unknown := errors.AsType[*models.UnknownModelError](err)
	_, missing := errors.AsType[*checkpoint.NotCachedError](err)
	_, unfit := errors.AsType[*serve.ModelError](err)
	if unknown || missing || unfit {
		return exitModel
	}
	return exitFailure
}

// noArguments refuses arguments of a verb that takes flags only.
func noArguments(c *cli.Context) error {
	if c.NArg() == 0 {
		return nil
	}
	return fail(exitUsage, "%s takes no arguments, but got %q; see %s --help", c.Command.Name,
		c.Args().First(), c.Command.HelpName)
}

var undefinedFlag = regexp.MustCompile(`^flag provided but not defined: -(.*)$`)

// usageError says in one line what is wrong with the flags.
func usageError(c *cli.Context, err error, _ bool) error {
	see := "; see ossrun --help"
	if c.Command != nil && c.Command.HelpName != "" { // ossrun eval compat
		see = "; see " + c.Command.HelpName + " --help"
	}
	if m := undefinedFlag.FindStringSubmatch(err.Error()); m != nil {
		var known []string
		if c.Command != nil {
			for _, f := range c.Command.Flags {
				known = append(known, "--"+f.Names()[0])
			}
		}
		return fail(exitUsage, "%s%s", unknownName("flag", "--"+strings.TrimLeft(m[1], "-"), known),
			see)
	}
	return fail(exitUsage, "%s%s", err, see)
}

// unknownName says that name is none of known, with the nearest one if it is near.
func unknownName(kind, name string, known []string) string {
	if near := models.Nearest(name, known); near != "" {
		return fmt.Sprintf("unknown %s %s; did you mean %s", kind, name, near)
	}
	return fmt.Sprintf("unknown %s %s", kind, name)
}
