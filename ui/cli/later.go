// Verbs whose work is not in this version yet. They stand here so that their names, their help and
// the way around are known; each fails plainly instead of pretending.

package cli

import "github.com/urfave/cli/v2"

func later(name, usage, argsUsage, instead string) *cli.Command {
	return &cli.Command{
		Name:      name,
		Usage:     usage + " (not in this version yet)",
		ArgsUsage: argsUsage,
		Description: "This version cannot do it yet: " + instead + ".\n\n" +
			"Example: ossrun " + name + " --help\n\n" + exitCodes,
		Action: func(*cli.Context) error {
			return fail(exitFailure, "%s is not in this version yet: %s", name, instead)
		},
	}
}

func evalCommand() *cli.Command {
	return later("eval", "grade a model on questions with known answers", "",
		"any evaluation tool that speaks the OpenAI API can use `ossrun serve`")
}
