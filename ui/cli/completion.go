// ossrun completion: scripts that teach a shell our verbs and flags. Bash and zsh ask the program
// itself, so they never go stale; fish gets its whole list.

package cli

import (
	"io"

	"github.com/urfave/cli/v2"
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
			switch shell := c.Args().First(); shell {
			case "bash":
				script = bashCompletion
			case "zsh":
				script = zshCompletion
			case "fish":
				fish, err := c.App.ToFishCompletion()
				if err != nil {
					return fail(exitFailure, "fish completion: %s", err)
				}
				script = fish
			case "man":
				script = manual(c.App)
			default:
				return fail(exitUsage, "completion needs bash, zsh, fish or man, not %q; "+
					"see ossrun completion --help", shell)
			}
			_, err := io.WriteString(c.App.Writer, script)
			return err
		},
	}
}
