// The --help of a verb: its flags in groups, in the order they are defined in, in two columns that
// fit a terminal of 100.
//
// A group is a flag's Category; flags without one come first. What must stay true: every flag that
// is not hidden is shown with its default, and the text does not depend on the terminal, so that it
// can be piped and compared.

package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

const appHelp = `{{.Name}} - {{.Usage}}

{{.Description}}

Commands:{{range .VisibleCommands}}
  {{printf "%-12s" .Name}} {{.Usage}}{{end}}

ossrun COMMAND --help tells more, with an example and the exit codes.
`

const commandHelp = `{{.HelpName}} - {{.Usage}}

Usage: {{.HelpName}}{{if .ArgsUsage}} {{.ArgsUsage}}{{end}}
{{if .Description}}
{{.Description}}

` + exitCodes + `
{{end}}FLAGS{{if .Subcommands}}
Commands:{{range .Subcommands}}
  {{printf "%-12s" .Name}} {{.Usage}}{{end}}
{{end}}`

const (
	helpWidth  = 100
	flagColumn = 33 // where the descriptions start
)

type shownFlag interface {
	cli.DocGenerationFlag
	cli.VisibleFlag
	cli.CategorizableFlag
}

// helpTemplate is commandHelp with flags in it.
func helpTemplate(flags []cli.Flag) string {
	var groups []string
	of := map[string]*strings.Builder{}
	for _, f := range flags {
		f := f.(shownFlag)
		if !f.IsVisible() {
			continue
		}
		group := f.GetCategory()
		if of[group] == nil {
			of[group] = &strings.Builder{}
			fmt.Fprintf(of[group], "\n%s:\n", cmp.Or(group, "Flags"))
			groups = append(groups, group)
		}
		writeFlag(of[group], f)
	}
	const last = string(groupSettings) // the config file
	if i := slices.Index(groups, last); i >= 0 {
		groups = append(slices.Delete(groups, i, i+1), last)
	}
	var b strings.Builder
	for _, g := range groups {
		b.WriteString(of[g].String())
	}
	text := strings.ReplaceAll(b.String(), "{{", `{{"{{"}}`) // what prints them
	return strings.Replace(commandHelp, "FLAGS", text, 1)
}

func writeFlag(b *strings.Builder, f cli.DocGenerationFlag) {
	usage, standard := described(f)
	placeholder, usage := unquote(usage)
	left := "  --" + f.Names()[0]
	if f.TakesValue() {
		left += " " + cmp.Or(placeholder, "VALUE")
	}
	if standard != "" {
		usage += " (default: " + standard + ")"
	}
	if len(left) >= flagColumn {
		left += "\n" + strings.Repeat(" ", flagColumn)
	}
	fmt.Fprintf(b, "%-*s", flagColumn, left)
	writeWords(b, usage, flagColumn, flagColumn, helpWidth)
}

// described is a flag's usage, and what it is where it is not given: in the words that end the
// usage, else its value; "" for nothing.
func described(f cli.DocGenerationFlag) (usage, standard string) {
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

// unquote takes the name of the value, which stands in backquotes, out of a usage.
func unquote(usage string) (placeholder, text string) {
	before, rest, ok := strings.Cut(usage, "`")
	if !ok {
		return "", usage
	}
	placeholder, after, _ := strings.Cut(rest, "`")
	return placeholder, before + placeholder + after
}
