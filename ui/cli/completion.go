// ossrun completion: scripts that teach a shell our verbs and flags. Bash and zsh ask the program
// itself, so they never go stale; fish gets its whole list, and asks for the models.

package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
)

const bashCompletion = `# ossrun completion for bash.
# Put  source <(ossrun completion bash)  into ~/.bashrc
_ossrun() {
  local word="${COMP_WORDS[COMP_CWORD]}" found
  local words=("${COMP_WORDS[@]:0:COMP_CWORD}")
  if [[ "$word" == -* ]]; then words+=("$word"); fi
  found=$("${words[@]}" --generate-bash-completion 2>/dev/null | sed 's/:.*//')
  mapfile -t COMPREPLY < <(compgen -W "$found" -- "$word")
}
complete -o bashdefault -o default -F _ossrun ossrun
`

const zshCompletion = `#compdef ossrun
# ossrun completion for zsh: put  source <(ossrun completion zsh)  into ~/.zshrc after compinit
_ossrun() {
  local -a found words_before
  words_before=("${(@)words[1,CURRENT-1]}")
  if [[ "${words[CURRENT]}" == -* ]]; then words_before+=("${words[CURRENT]}"); fi
  found=("${(@f)$(_CLI_ZSH_AUTOCOMPLETE_HACK=1 \
    "${words_before[@]}" --generate-bash-completion 2>/dev/null)}")
  if [[ -n "${found[1]}" ]]; then _describe 'ossrun' found; else _files; fi
}
compdef _ossrun ossrun
`

func completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for bash, zsh or fish, or the manual page",
		ArgsUsage: "bash|zsh|fish|man",
		Description: "Example: source <(ossrun completion bash)\n" +
			"         ossrun completion fish > ~/.config/fish/completions/ossrun.fish\n" +
			"         ossrun completion man | man -l -",
		BashComplete: func(c *cli.Context) {
			_, _ = io.WriteString(c.App.Writer, "bash\nzsh\nfish\nman\n")
		},
		Action: func(c *cli.Context) error {
			var script string
			var err error
			switch shell := c.Args().First(); shell {
			case "bash":
				script = bashCompletion
			case "zsh":
				script = zshCompletion
			case "fish":
				if script, err = c.App.ToFishCompletion(); err == nil {
					script += fishValues(c.App)
				}
			case "man":
				script, err = manual(c.App)
			default:
				return fail(exitUsage, "completion needs bash, zsh, fish or man, not %q; "+
					"see ossrun completion --help", shell)
			}
			if err != nil {
				return fail(exitFailure, "completion %s: %s", c.Args().First(), err)
			}
			_, err = io.WriteString(c.App.Writer, script)
			return err
		},
	}
}

// completeValue prints what a flag can be, or a verb's models, where a shell asks for that.
func completeValue(app *cli.App, args []string) bool {
	last := len(args) - 1
	if last < 2 || args[last] != "--generate-bash-completion" {
		return false
	}
	cmd := app.Command(args[1])
	if cmd == nil {
		return false
	}
	var words []string
	name, dashed := strings.CutPrefix(args[last-1], "--")
	switch {
	case dashed && flagNames(cmd)[name]:
		words = valuesOf(name)
	case !dashed && last == 2 && takesModel(cmd):
		words = modelNames()
	}
	for _, w := range words {
		fmt.Fprintln(app.Writer, w)
	}
	return len(words) > 0
}

func takesModel(cmd *cli.Command) bool { return strings.Contains(cmd.ArgsUsage, "MODEL") }

// valuesOf are the words that a flag can be; nil where it can be anything.
func valuesOf(flag string) []string {
	if flag == "model" {
		return modelNames()
	}
	words, _ := offered.Load(flag)
	list, _ := words.([]string)
	return list
}

func modelNames() []string {
	var names []string
	for _, e := range models.Catalogue() {
		names = append(names, e.ID)
	}
	cached, err := checkpoint.Inventory()
	if err != nil {
		return names // completion has no place for errors
	}
	for _, s := range cached {
		if s.ID == "" {
			names = append(names, s.Repo)
		}
	}
	return names
}

// fishValues completes flags' values for fish, which asks the program only for the models.
func fishValues(app *cli.App) string {
	var b strings.Builder
	names := "(ossrun show --generate-bash-completion)"
	for _, cmd := range app.Commands {
		at := fmt.Sprintf("complete -c ossrun -n '__fish_seen_subcommand_from %s'", cmd.Name)
		if takesModel(cmd) {
			fmt.Fprintf(&b, "%s -f -a '%s'\n", at, names)
		}
		for _, f := range cmd.Flags {
			name := f.Names()[0]
			values := strings.Join(valuesOf(name), " ")
			if name == "model" {
				values = names
			}
			if values != "" {
				fmt.Fprintf(&b, "%s -l %s -x -a '%s'\n", at, name, values)
			}
		}
	}
	return b.String()
}

// manual is ossrun(1), made from the same commands and flags as --help.
func manual(app *cli.App) (string, error) {
	describe(app.Commands)
	page, err := app.ToManWithSection(1)
	return page + ".SH FILES\n.TP\n~/.config/ossrun/config.yaml\ndefaults of flags\n" +
		".TP\n~/.cache/huggingface/hub\nmodels, shared with Hugging Face's own tools\n" +
		".SH SEE ALSO\nhttps://github.com/ossrun/ossrun\n", err
}

// describe puts the descriptions where the library's manual looks for them.
func describe(commands []*cli.Command) {
	for _, c := range commands {
		c.UsageText = c.Description
		describe(c.Subcommands)
	}
}
