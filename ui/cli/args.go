// Flags may stand anywhere after the verb, as people type them: ossrun chat "hello" --model demo.
// What a vLLM command line writes differently is put into our form here: underscores for dashes
// (--tensor_parallel_size 8), and settings inside a setting (-cc.pass_config.x=True,
// --compilation-config.level 3).
//
// urfave/cli/v2 stops reading flags at the first argument that is none, so they are put first here.
// What must stay true: nothing behind a lone -- is moved, nor what launch passes on, and an unknown
// flag stays where the parser will complain about it.

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
	known := flagNames(cmd)
	var flags, rest []string
	for i := at; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			rest = append(rest, args[i:]...)
			break
		}
		if !strings.HasPrefix(a, "-") || a == "-" {
			if cmd.Name == "launch" { // what follows is the agent's
				rest = append(rest, args[i:]...)
				break
			}
			rest = append(rest, a)
			continue
		}
		name, value, inline := strings.Cut(strings.TrimLeft(a, "-"), "=")
		name, inner := known.canonical(name)
		takesValue := known[name]
		if takesValue && !inline && i+1 < len(args) {
			i++
			value, inline = args[i], true
		}
		if inner != "" {
			value = inner + "=" + value
		}
		switch {
		case name == "": // not a flag of this verb: the parser says so
			flags = append(flags, a)
		case inline:
			flags = append(flags, "--"+name+"="+value)
		default:
			flags = append(flags, "--"+name)
		}
	}
	if len(flags) > 0 && len(rest) > 0 && rest[0] != "--" {
		rest = append([]string{"--"}, rest...)
	}
	return append(append(append([]string{}, args[:at]...), flags...), rest...)
}

// flagSet tells of every name of a verb's flags whether it takes a value.
type flagSet map[string]bool

func flagNames(cmd *cli.Command) flagSet {
	known := flagSet{"help": false, "h": false, "generate-bash-completion": false}
	for _, f := range cmd.Flags {
		_, isBool := f.(*cli.BoolFlag)
		for _, n := range f.Names() {
			known[n] = !isBool
		}
	}
	return known
}

// canonical is the flag that a written name means, "" if there is none, and what it names inside
// that flag's value.
func (s flagSet) canonical(written string) (name, inner string) {
	for _, n := range []string{written, strings.ReplaceAll(written, "_", "-")} {
		if _, ok := s[n]; ok {
			return n, ""
		}
	}
	outer, inner, dotted := strings.Cut(written, ".")
	outer = strings.ReplaceAll(outer, "_", "-")
	if dotted && s[outer] {
		return outer, inner
	}
	return "", ""
}
