// Command lines rewritten to the form that the parser reads.
//
// Flags may be anywhere after the verb: ossrun chat "hello" --model demo. urfave/cli/v2 stops
// reading flags at the first argument, so flags are moved to the front. vLLM's spellings are
// converted: underscores for dashes (--tensor_parallel_size 8), and settings inside a setting
// (-cc.pass_config.x=True, --compilation-config.level 3). So are habits from other programs: help,
// --version, run, ls, -m, -p.
//
// What must stay true: nothing after a lone -- is moved, nor launch's arguments for the agent, an
// unknown flag is left for the parser to report, or passed on to vLLM with all after --, and a word
// with blanks is no flag.

package cli

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/remote/vllm"
)

func flagsFirst(app *cli.App, args []string) []string {
	if len(args) < 2 {
		return args
	}
	cmd := app.Command(args[1])
	if cmd == nil {
		return args
	}
	first := 2
	if len(args) > 2 {
		for _, sub := range cmd.Subcommands {
			if sub.HasName(args[2]) {
				cmd, first = sub, 3
				break
			}
		}
	}
	names := flagNames(cmd)
	var flags, rest []string
	for i := first; i < len(args); i++ {
		a := args[i]
		if a == "--" && passesOn(args) {
			for i++; i < len(args); i++ {
				passOn(app, args[i:i+1], true)
			}
			break
		}
		if a == "--" {
			rest = append(rest, args[i:]...)
			break
		}
		if !strings.HasPrefix(a, "-") || a == "-" {
			if cmd.Name == "launch" { // the rest is the agent's
				rest = append(rest, args[i:]...)
				break
			}
			rest = append(rest, a)
			continue
		}
		written, value, inline := strings.Cut(strings.TrimLeft(a, "-"), "=")
		name, inner := names.canonical(written)
		if name == "" && strings.ContainsAny(written, " \t\n") { // a list, a sum: no flag
			rest = append(rest, a)
			continue
		}
		takesValue := names[name]
		if takesValue && !inline && i+1 < len(args) {
			i++
			value, inline = args[i], true
			if slices.Contains(listFlags, name) {
				n := countValues(args[i+1:], len(rest) > 0 || namesModel(args[first:]))
				value = strings.Join(append([]string{value}, args[i+1:i+1+n]...), ",")
				i += n
			}
		}
		if inner != "" {
			value = inner + "=" + value
		}
		noteSpelling(app, cmd, name)
		value = expandUnits(flagNamed(cmd, name), value)
		if name == "help-all" {
			cmd.CustomHelpTemplate, name = helpTemplate(cmd, nil), "help"
		}
		if name == "help" || name == "h" { // whatever other flags there are
			return append(slices.Clone(args[:first]), "--help")
		}
		switch {
		case isAutomatic(name, value):
		case name == "" && passesOn(args):
			n := passOn(app, args[i:], len(rest) > 0 || namesModel(args[first:]))
			i += n
		case name == "": // not a flag of this verb: the parser reports it
			flags = append(flags, a)
		case inline:
			flags = append(flags, "--"+name+"="+value)
		default:
			flags = append(flags, "--"+name)
		}
	}
	if cmd.Name == "run" && len(rest) > 0 && rest[0] != "--" && !namesModel(args[first:]) {
		flags, rest = append(flags, "--model="+rest[0]), rest[1:]
	}
	if len(rest) > 0 && rest[0] != "--" && (len(flags) > 0 || strings.HasPrefix(rest[0], "-")) {
		rest = append([]string{"--"}, rest...)
	}
	return append(append(append([]string{}, args[:first]...), flags...), rest...)
}

// passesOn reports that flags which are not ours are vLLM's.
func passesOn(args []string) bool {
	return args[1] == "vllm" || args[1] == "serve" && (slices.Contains(args, "--engine=vllm") ||
		strings.Contains(strings.Join(args, "\x00"), "--engine\x00vllm"))
}

// passOn records a flag with its values for vLLM, as it is written, and returns how many words they
// are.
func passOn(app *cli.App, args []string, model bool) (values int) {
	text := vllm.Quote(args[0])
	kind, _ := vllm.FlagValues(args[0])
	switch {
	case strings.Contains(args[0], "="):
	case kind == vllm.OneValue:
		values = min(1, len(args)-1)
	case kind == vllm.ManyValues:
		values = countValues(args[1:], model)
	case kind == vllm.AnyValue:
		values = min(1, countValues(args[1:], model))
	}
	for _, word := range args[1 : values+1] {
		text += " " + vllm.Quote(word)
	}
	if app.Metadata == nil {
		app.Metadata = map[string]any{}
	}
	list, _ := app.Metadata[passedOn].([]string)
	app.Metadata[passedOn] = append(list, text)
	return values
}

// passedOn is the metadata's name of vLLM's flags.
const passedOn = "flags for vLLM"

// noteSpelling records the name by which a flag was given. Two flags of vLLM may be one here, as
// --swap-space and --kv-offloading-size.
func noteSpelling(app *cli.App, cmd *cli.Command, name string) {
	if f := flagNamed(cmd, name); f != nil {
		if app.Metadata == nil {
			app.Metadata = map[string]any{}
		}
		app.Metadata["spelling of "+f.Names()[0]] = name
	}
}

// spelling is the recorded name, unless it is one of vLLM's short ones.
func spelling(c *cli.Context, name string) string {
	if s, ok := c.App.Metadata["spelling of "+name].(string); ok && len(s) > len("-tp") {
		return s
	}
	return name
}

// isAutomatic reports vLLM's values for an automatic choice, which is also the flag's default.
func isAutomatic(name, value string) bool {
	return name == "max-model-len" && (value == "auto" || value == "-1")
}

// listFlags are the flags of vLLM that take several words.
var listFlags = []string{"served-model-name", "cuda-graph-sizes", "cudagraph-capture-sizes",
	"lora-modules"}

// countValues is how many words are further values of a flag. Unless the model is named elsewhere,
// the last word is the model.
func countValues(args []string, model bool) (n int) {
	for n < len(args) && !strings.HasPrefix(args[n], "-") {
		n++
	}
	if !model && n > 0 && (n == len(args) || args[n] != "--") {
		n--
	}
	return n
}

func namesModel(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		name, _, _ := strings.Cut(a, "=")
		return slices.Contains([]string{"--model", "-model", "-m"}, name)
	})
}

// flagSet maps every name of a verb's flags to whether it takes a value.
type flagSet map[string]bool

func flagNames(cmd *cli.Command) flagSet {
	set := flagSet{"help": false, "h": false, "help-all": false}
	for _, f := range cmd.Flags {
		_, isBool := f.(*cli.BoolFlag)
		for _, n := range f.Names() {
			set[n] = !isBool
		}
	}
	return set
}

// canonical is the flag for a written name, or "", and the setting inside its value.
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

// verbAliases are names of our verbs in other programs.
var verbAliases = map[string][]string{"list": {"ls"}, "rm": {"delete", "remove"},
	"pull": {"download", "get"}}

// foreignVerbs are verbs of other programs, by the verb to suggest.
var foreignVerbs = map[string]string{
	"serve": "server start up api web", "chat": "ask complete generate talk prompt",
	"ps": "status", "stop": "kill unload shutdown", "show": "info inspect", "list": "search",
	"pull": "install fetch update upgrade", "rm": "uninstall", "batch": "run-batch",
	"import": "create convert quantize", "bench": "benchmark", "sessions": "history conversations",
	"doctor": "collect-env check diagnose", "serve --print-config": "config",
	"launch codex": "codex", "launch claude": "claude", "launch opencode": "opencode",
}

// suggestVerb is the verb to suggest for an unknown one, or "".
func suggestVerb(name string) string {
	if strings.Contains(strings.TrimSpace(name), " ") {
		return `chat "..."` // a question
	}
	if _, model := models.Lookup(name); model {
		return "run " + name
	}
	for verb, words := range foreignVerbs {
		if slices.Contains(strings.Fields(words), name) {
			return verb
		}
	}
	return ""
}

// otherSpellings rewrites `help VERB` to `VERB --help`, `--version` to `version`, and `-p PROMPT`
// to `chat -p PROMPT`.
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

// runCommand is chat with the model as its first argument, as in ollama; flagsFirst turns that into
// a flag.
func runCommand(t Terminal) *cli.Command {
	cmd := chatCommand(t)
	cmd.Name = "run"
	chat := cmd.Action
	cmd.Action = func(c *cli.Context) error {
		if !c.IsSet("model") {
			return fail(exitUsage, "run needs a MODEL, such as 20b. Run ossrun run --help")
		}
		return chat(c)
	}
	return cmd
}
