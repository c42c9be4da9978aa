// What people type, put into the form that the parser reads.
//
// Flags may stand anywhere after the verb: ossrun chat "hello" --model demo. urfave/cli/v2 stops
// reading flags at the first argument that is none, so they are put first here. What a vLLM command
// line writes differently is put into our form: underscores for dashes (--tensor_parallel_size 8),
// and settings inside a setting (-cc.pass_config.x=True, --compilation-config.level 3). So is what
// comes out of habit with other programs: help, --version, run, ls, -m, -p.
//
// What must stay true: nothing behind a lone -- is moved, nor what launch passes on, and an unknown
// flag stays where the parser will complain about it.

package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
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
			if slices.Contains(severalValues, name) {
				n := following(args[i+1:], len(rest) > 0 || givesModel(args[at:]))
				value = strings.Join(append([]string{value}, args[i+1:i+1+n]...), ",")
				i += n
			}
		}
		if inner != "" {
			value = inner + "=" + value
		}
		noteSpelling(app, cmd, name)
		value = plain(flagNamed(cmd, name), value)
		if name == "help-all" {
			cmd.CustomHelpTemplate, name = helpTemplate(cmd, nil), "help"
		}
		if name == "help" || name == "h" { // whatever else is asked for
			return append(slices.Clone(args[:at]), "--help")
		}
		switch {
		case leftOpen(name, value):
		case name == "": // not a flag of this verb: the parser says so
			flags = append(flags, a)
		case inline:
			flags = append(flags, "--"+name+"="+value)
		default:
			flags = append(flags, "--"+name)
		}
	}
	if cmd.Name == "run" && len(rest) > 0 && rest[0] != "--" && !givesModel(args[at:]) {
		flags, rest = append(flags, "--model="+rest[0]), rest[1:]
	}
	if len(flags) > 0 && len(rest) > 0 && rest[0] != "--" {
		rest = append([]string{"--"}, rest...)
	}
	return append(append(append([]string{}, args[:at]...), flags...), rest...)
}

// noteSpelling remembers by which of its names a flag was given. Names that are one here may be two
// flags of vLLM, as --swap-space and --kv-offloading-size are.
func noteSpelling(app *cli.App, cmd *cli.Command, name string) {
	if f := flagNamed(cmd, name); f != nil {
		if app.Metadata == nil {
			app.Metadata = map[string]any{}
		}
		app.Metadata["spelling of "+f.Names()[0]] = name
	}
}

// spelling is that name, but for vLLM's short ones, which are no more than that.
func spelling(c *cli.Context, name string) string {
	if s, ok := c.App.Metadata["spelling of "+name].(string); ok && len(s) > len("-tp") {
		return s
	}
	return name
}

// leftOpen tells whether a value leaves it to the machine, in vLLM's words, which is what happens
// without the flag.
func leftOpen(name, value string) bool {
	return name == "max-model-len" && (value == "auto" || value == "-1")
}

// severalValues are the flags of vLLM that take all the words behind them.
var severalValues = []string{"served-model-name", "cuda-graph-sizes", "cudagraph-capture-sizes",
	"lora-modules"}

// following is how many words are further values of a flag. Where the model is named nowhere else,
// the last of them names it.
func following(args []string, model bool) (n int) {
	for n < len(args) && !strings.HasPrefix(args[n], "-") {
		n++
	}
	if !model && n > 0 && (n == len(args) || args[n] != "--") {
		n--
	}
	return n
}

func givesModel(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		name, _, _ := strings.Cut(a, "=")
		return slices.Contains([]string{"--model", "-model", "-m"}, name)
	})
}

// flagSet tells of every name of a verb's flags whether it takes a value.
type flagSet map[string]bool

func flagNames(cmd *cli.Command) flagSet {
	known := flagSet{"help": false, "h": false, "help-all": false}
	for _, f := range cmd.Flags {
		_, isBool := f.(*cli.BoolFlag)
		for _, n := range f.Names() {
			known[n] = !isBool
		}
	}
	return known
}

// canonical is the flag that a written name means, "" for none, and what it names inside its value.
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

// otherNames are further names of our verbs, which other programs have.
var otherNames = map[string][]string{"list": {"ls"}, "rm": {"delete", "remove"},
	"pull": {"download", "get"}}

// meant are other programs' verbs that an error names ours for.
var meant = map[string]string{
	"serve": "server start up api web", "chat": "ask complete generate talk prompt",
	"ps": "status", "stop": "kill unload shutdown", "show": "info inspect", "list": "search",
	"pull": "install fetch update upgrade", "rm": "uninstall", "batch": "run-batch",
	"import": "create convert quantize", "bench": "benchmark", "sessions": "history conversations",
	"doctor": "collect-env check diagnose", "serve --print-config": "config",
	"launch codex": "codex", "launch claude": "claude", "launch opencode": "opencode",
}

// verbMeant is the verb that an unknown one may stand for, "" for none.
func verbMeant(name string) string {
	if strings.Contains(strings.TrimSpace(name), " ") {
		return `chat "..."` // a question
	}
	if _, model := models.Lookup(name); model {
		return "run " + name
	}
	for verb, words := range meant {
		if slices.Contains(strings.Fields(words), name) {
			return verb
		}
	}
	return ""
}

// otherSpellings makes `help VERB` to `VERB --help`, `--version` to `version`, and `-p PROMPT` to
// `chat -p PROMPT`.
func otherSpellings(app *cli.App, args []string) []string {
	if len(args) < 2 {
		return args
	}
	switch args[1] {
	case "--version", "-v", "-version":
		return append([]string{args[0], "version"}, args[2:]...)
	case "help":
		if len(args) > 2 {
			return append(append([]string{args[0]}, args[2:]...), "--help")
		}
		return []string{args[0], "--help"}
	case "-m", "--model", "-p", "--prompt":
		return slices.Insert(slices.Clone(args), 1, "chat")
	}
	return args
}

// runCommand is chat with the model as its first argument, as ollama spells it; flagsFirst makes a
// flag of that.
func runCommand(t Terminal) *cli.Command {
	cmd := chatCommand(t)
	cmd.Name, cmd.Usage = "run", "chat with MODEL, as ossrun chat --model MODEL"
	cmd.ArgsUsage = "[flags] MODEL [PROMPT...]"
	cmd.Description = "Example: ossrun run 20b\n         ossrun run 20b \"Is 2027 prime?\""
	chat := cmd.Action
	cmd.Action = func(c *cli.Context) error {
		if !c.IsSet("model") {
			return fail(exitUsage, "run needs a MODEL, such as 20b. Run ossrun run --help")
		}
		return chat(c)
	}
	return cmd
}
