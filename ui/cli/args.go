// Flags may stand anywhere after the verb, as people type them: ossrun chat "hello" --model demo.
//
// urfave/cli/v2 stops reading flags at the first argument that is none, so they are put first here. What must stay
// true: nothing behind a lone -- is moved, and an unknown flag stays where the parser will complain about it.

package cli

import (
	"strings"

	"github.com/urfave/cli/v2"
)

func flagsFirst(app *cli.App, args []string) []string {
	if len(args) < 2 {
		return args
	}
	cmd := app.Command(args[1])
	if cmd == nil {
		return args
	}
	at := 2
	if len(args) > 2 {
		for _, sub := range cmd.Subcommands {
			if sub.HasName(args[2]) {
				cmd, at = sub, 3
				break
			}
		}
	}
	takesValue := map[string]bool{}
	for _, f := range cmd.Flags {
		_, isBool := f.(*cli.BoolFlag)
		for _, n := range f.Names() {
			takesValue[n] = !isBool
		}
	}
	var flags, rest []string
	for i := at; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			rest = append(rest, args[i:]...)
			break
		}
		if !strings.HasPrefix(a, "-") || a == "-" {
			rest = append(rest, a)
			continue
		}
		flags = append(flags, a)
		name, _, inline := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if takesValue[name] && !inline && i+1 < len(args) {
			i++
			flags = append(flags, args[i])
		}
	}
	if len(flags) > 0 && len(rest) > 0 && rest[0] != "--" {
		rest = append([]string{"--"}, rest...)
	}
	return append(append(append([]string{}, args[:at]...), flags...), rest...)
}
