// ossrun completion: shell scripts that complete verbs, flags and values by asking the program
// itself, so they are never outdated; and the manual page, generated from the same flags.

package cli

import (
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
)

//go:embed completion
var completions embed.FS

func completionCommand() *cli.Command {
	return &cli.Command{
		Name: "completion",
		Action: func(c *cli.Context) error {
			var script string
			name := strings.Join(c.Args().Slice(), " ")
			if text, err := completions.ReadFile("completion/ossrun." + name); err == nil {
				script = string(text)
			} else if script = manual(c.App); name != "man" {
				return fail(exitUsage, "completion needs bash, zsh, fish or man, not %q", name)
			}
			_, err := io.WriteString(c.App.Writer, script)
			return err
		},
	}
}

// asksWords is the last argument of a shell that asks for completions.
const asksWords = "--generate-bash-completion"

// complete answers a shell: a line for each word, with its meaning after a colon. It reports
// whether a shell asked.
func complete(app *cli.App, args []string) bool {
	last := len(args) - 1
	if last < 1 || args[last] != asksWords {
		return false
	}
	words, commands := args[1:last], app.Commands
	cmd := &cli.Command{}
	for len(words) > 0 {
		i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(words[0]) })
		if i < 0 {
			break
		}
		cmd, commands, words = commands[i], commands[i].Subcommands, words[1:]
	}
	if len(words) == 0 {
		for _, c := range commands {
			if !c.Hidden {
				fmt.Fprintf(app.Writer, "%s:%s\n", c.Name, c.Usage)
			}
		}
		if len(commands) == 0 {
			fmt.Fprint(app.Writer, lines(argumentsOf(cmd)))
		}
		return true
	}
	word := words[len(words)-1]
	for _, f := range cmd.Flags {
		if values := valuesOf(f); len(values) > 0 && word == "--"+f.Names()[0] {
			fmt.Fprint(app.Writer, lines(values))
			return true
		}
	}
	for _, f := range cmd.Flags {
		visible, flag := f.(shownFlag), "--"+f.Names()[0]
		if visible.IsVisible() && strings.HasPrefix(word, "-") && strings.HasPrefix(flag, word) &&
			!slices.Contains(words, flag) {
			usage, _ := usageAndDefault(visible)
			_, usage = unquote(usage)
			fmt.Fprintf(app.Writer, "%s:%s\n", flag, usage)
		}
	}
	return true
}

func lines(words []string) string { return strings.Join(append(words, ""), "\n") }

// argumentsOf are the possible arguments of a verb: those of browser|python, or models.
func argumentsOf(cmd *cli.Command) []string {
	if strings.Contains(cmd.ArgsUsage, "MODEL") {
		return modelNames()
	}
	for word := range strings.FieldsSeq(cmd.ArgsUsage) {
		if strings.Contains(word, "|") {
			return strings.Split(word, "|")
		}
	}
	return nil
}

// valuesOf are the possible values of a flag; nil if unlimited.
func valuesOf(f cli.Flag) []string {
	if f, ok := f.(*wordFlag); ok {
		return f.words
	}
	if f.Names()[0] == "model" {
		return modelNames()
	}
	return nil
}

func modelNames() []string {
	names := mapSlice(models.Catalogue(), func(e models.Entry) string { return e.ID })
	cached, err := checkpoint.Inventory()
	if err != nil {
		return names // completion cannot show errors
	}
	for _, s := range cached {
		if s.ID == "" {
			names = append(names, s.Repo)
		}
	}
	return names
}
