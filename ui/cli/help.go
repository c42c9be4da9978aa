// The --help of a verb: its flags in groups, in order of definition, in two columns that fit a
// terminal of 80. For verbs with many flags it has the common ones, and --help-all has all.
//
// A group is a flag's Category; flags without one are first. What must stay true: --help-all shows
// every visible flag with its default, and the text does not depend on the terminal, so that it can
// be piped and compared.

package cli

import (
	"cmp"
	_ "embed"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"
)

// helpText has a section for each command: its name and arguments, its summary, its description and
// the texts of its flags.
//
//go:embed help.txt
var helpText string

type helpSection struct {
	arguments, summary, description string
	flags                           map[string]string
}

var helpSections = sync.OnceValue(func() map[string]helpSection {
	all := map[string]helpSection{}
	for text := range strings.SplitSeq("\n"+helpText, "\n# ") {
		s := helpSection{flags: map[string]string{}}
		head, text, _ := strings.Cut(text, "\n")
		name, arguments, _ := strings.Cut(head, ": ")
		about, flags, _ := strings.Cut("\n"+text, "\n--")
		s.arguments = arguments
		s.summary, s.description, _ = strings.Cut(strings.TrimSpace(about), "\n\n")
		for flag := range strings.SplitSeq(flags, "\n--") {
			name, usage, _ := strings.Cut(flag, " ")
			s.flags[name] = strings.Join(strings.Fields(usage), " ")
		}
		all[name] = s
	}
	return all
})

func helpOf(command string) helpSection { return helpSections()[command] }

// sameFlags are commands with the flags of another one.
var sameFlags = map[string]string{"run": "chat", "vllm serve": "serve", "vllm plan": "serve"}

// describe puts the texts of helpText into the commands below a parent. The part of a description
// that is computed follows.
func describe(parent string, commands []*cli.Command) {
	for _, cmd := range commands {
		name := strings.TrimSpace(parent + " " + cmd.Name)
		s := helpOf(name)
		cmd.Usage, cmd.ArgsUsage = s.summary, s.arguments
		cmd.Description = strings.TrimSpace(s.description + "\n\n" + cmd.Description)
		for _, f := range cmd.Flags {
			flag := f.Names()[0]
			reflect.ValueOf(f).Elem().FieldByName("Usage").SetString(cmp.Or(s.flags[flag],
				helpOf(sameFlags[name]).flags[flag], helpOf(parent).flags[flag],
				helpOf("flags of several commands").flags[flag]))
		}
		describe(name, cmd.Subcommands)
	}
}

const appHelp = `{{.Name}} - {{.Usage}}

{{.Description}}

Commands:{{range .VisibleCommands}}
  {{printf "%-12s" .Name}} {{.Usage}}{{end}}

ossrun COMMAND --help shows the flags of a command, with an example.
`

const commandHelp = `{{.HelpName}} - {{.Usage}}

Usage: {{.HelpName}}{{if .ArgsUsage}} {{.ArgsUsage}}{{end}}
{{if .Description}}
DESCRIPTION
{{end}}FLAGS{{if .Subcommands}}
Commands:{{range .Subcommands}}
  {{printf "%-12s" .Name}} {{.Usage}}{{end}}
{{end}}`

const (
	helpWidth  = 80
	flagColumn = 28 // where the descriptions start
)

// common are the flags in --help of verbs with many; run has chat's.
var common = map[string][]string{
	"chat": {"model", "device", "max-model-len", "endpoint", "tools", "continue", "resume",
		"no-history", "effort", "system", "temperature", "max-tokens"},
	"serve": {"model", "device", "max-model-len", "tools", "host", "port", "api-key-file",
		"allowed-hosts", "served-model-name", "keep-alive", "preset", "max-num-seqs"},
	"bench": {"model", "device", "threads", "compute", "dense", "prefill", "batch", "context",
		"json", "suite", "base-url", "compare"},
	"eval gpqa": evalFlags, "eval aime25": evalFlags,
}

var evalFlags = []string{"base-url", "model", "data", "fetch", "reasoning-effort", "attempts",
	"examples", "api", "max-tokens", "n-threads", "results", "json"}

type shownFlag interface {
	cli.DocGenerationFlag
	cli.VisibleFlag
	cli.CategorizableFlag
}

// flagGroups writes the visible flags of a verb, or only the few named ones, by groups in order.
func flagGroups(cmd *cli.Command, names []string, write func(*strings.Builder, shownFlag)) (
	groups []string, sections map[string]*strings.Builder, flags int) {
	sections = map[string]*strings.Builder{}
	for _, f := range cmd.Flags {
		f := f.(shownFlag)
		if !f.IsVisible() {
			continue
		}
		flags++
		group := cmp.Or(f.GetCategory(), "Flags")
		if names != nil {
			if group = "Common flags"; !slices.Contains(names, f.Names()[0]) {
				continue
			}
		}
		if sections[group] == nil {
			sections[group], groups = &strings.Builder{}, append(groups, group)
		}
		write(sections[group], f)
	}
	const last = string(groupSettings) // has the config file
	if i := slices.Index(groups, last); i >= 0 {
		groups = append(slices.Delete(groups, i, i+1), last)
	}
	return groups, sections, flags
}

// helpTemplate is commandHelp with a verb's flags, or only the few named ones.
func helpTemplate(cmd *cli.Command, names []string) string {
	groups, sections, flags := flagGroups(cmd, names, writeFlag)
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "\n%s:\n%s", g, sections[g])
	}
	literally := func(text string) string {
		return strings.ReplaceAll(text, "{{", `{{"{{"}}`) // which prints {{
	}
	footer := ""
	if names != nil {
		footer = fmt.Sprintf("\n{{.HelpName}} --help-all shows all %d flags.\n", flags)
	}
	return strings.NewReplacer("DESCRIPTION",
		literally(strings.TrimSpace(wrapText(cmd.Description))),
		"FLAGS", literally(b.String())+footer).Replace(commandHelp)
}

// wrapText fills a description's lines; examples and tables stay as they are.
func wrapText(description string) string {
	var b strings.Builder
	for paragraph := range strings.SplitSeq(description, "\n\n") {
		if strings.Contains(paragraph, "  ") || strings.HasPrefix(paragraph, "Example:") {
			b.WriteString(paragraph + "\n\n")
			continue
		}
		writeWords(&b, strings.ReplaceAll(paragraph, "\n", " "), 0, 0, helpWidth)
		b.WriteByte('\n')
	}
	return b.String()
}

// flagParts are a flag's short name, its value and what it does.
func flagParts(f shownFlag) (short, value, usage string) {
	usage, standard := usageAndDefault(f)
	value, usage = unquote(usage)
	if last := f.Names()[len(f.Names())-1]; len(last) == 1 {
		short = last
	}
	if value = cmp.Or(value, "VALUE"); !f.TakesValue() {
		value = ""
	}
	if standard != "" {
		usage += " (default: " + standard + ")"
	}
	return short, value, usage
}

func writeFlag(b *strings.Builder, f shownFlag) {
	short, value, usage := flagParts(f)
	label := "  --" + f.Names()[0]
	if short != "" {
		label += ", -" + short
	}
	if value != "" {
		label += " " + value
	}
	if len(label) >= flagColumn {
		label += "\n" + strings.Repeat(" ", flagColumn)
	}
	fmt.Fprintf(b, "%-*s", flagColumn, label)
	writeWords(b, usage, flagColumn, flagColumn, helpWidth)
}

// usageAndDefault returns a flag's usage and default: the words at the end of the usage, else its
// value; "" for none.
func usageAndDefault(f cli.DocGenerationFlag) (usage, standard string) {
	usage = f.GetUsage()
	if text, words, ok := strings.Cut(usage, " (default: "); ok && strings.HasSuffix(words, ")") {
		return text, strings.TrimSuffix(words, ")")
	}
	standard = strings.Trim(f.GetDefaultText(), `"`)
	if !f.TakesValue() || standard == "0" || strings.Contains(usage, "(default") {
		standard = ""
	}
	return usage, standard
}

// unquote removes the backquotes around a value's name in a usage.
func unquote(usage string) (placeholder, text string) {
	prefix, rest, ok := strings.Cut(usage, "`")
	if !ok {
		return "", usage
	}
	placeholder, suffix, _ := strings.Cut(rest, "`")
	return placeholder, prefix + placeholder + suffix
}
