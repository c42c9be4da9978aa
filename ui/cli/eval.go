// ossrun eval: not in this version yet. The verb exists so that its name and its help are known and
// the way around it is told; it fails plainly instead of pretending.

package cli

import "github.com/urfave/cli/v2"

func evalCommand() *cli.Command {
	const instead = "any evaluation tool that speaks the OpenAI API can use `ossrun serve`"
	return &cli.Command{
		Name:  "eval",
		Usage: "grade a model on questions with known answers (not in this version yet)",
		Description: "This version cannot do it yet: " + instead + ".\n\n" +
			"Example: ossrun eval --help",
		Action: func(*cli.Context) error {
			return fail(exitFailure, "eval is not in this version yet: %s", instead)
		},
	}
}
