// What people type out of habit with other programs: help, --version, run.

package cli

import (
	"fmt"

	"github.com/urfave/cli/v2"
)

// otherSpellings puts a command line into our own words: `help VERB` is `VERB --help`, `--version`
// is `version`.
func otherSpellings(app *cli.App, args []string) []string {
	if len(args) < 2 {
		return args
	}
	switch args[1] {
	case "--version", "-v", "-version":
		return append([]string{args[0], "version"}, args[2:]...)
	case "help":
		if len(args) > 2 {
			return []string{args[0], args[2], "--help"}
		}
		return []string{args[0], "--help"}
	}
	return args
}

// runCommand is chat with the model as its first argument, as ollama spells it.
func runCommand(t Terminal) *cli.Command {
	cmd := chatCommand(t)
	cmd.Name, cmd.Usage = "run", "chat with MODEL: ossrun run 20b is ossrun chat --model 20b"
	cmd.ArgsUsage = "[flags] MODEL [PROMPT...]"
	cmd.Description = "Example: ossrun run 20b\n         ossrun run 20b \"Is 2027 prime?\""
	chat := cmd.Action
	cmd.Action = func(c *cli.Context) error {
		if c.NArg() == 0 {
			return fail(exitUsage, "run needs a MODEL, such as 20b; see ossrun run --help")
		}
		if err := c.Set("model", c.Args().First()); err != nil {
			return fmt.Errorf("taking the model: %w", err)
		}
		return chat(c)
	}
	return cmd
}

// spokenWords are the arguments of chat that make the prompt; the first of run is its model.
func spokenWords(c *cli.Context) []string {
	words := c.Args().Slice()
	if c.Command.Name == "run" {
		words = words[1:]
	}
	return words
}
