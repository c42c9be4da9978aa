// The manual page, and the tables of variables and exit codes for it, doctor's bundle and
// docs/reference.md.
//
// What must stay true: every variable that the program reads has its line in variables.txt.

package cli

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitModel       = 3
	exitPort        = 4
	exitCut         = 4
	exitInterrupted = 130
)

// exitCodes are listed in the manual and in docs/reference.md.
var exitCodes = []struct {
	code  int
	means string
}{
	{exitOK, "done"},
	{exitFailure, "something went wrong, or a check failed"},
	{exitUsage, "wrong usage: unknown command, flag or config key, or a bad value"},
	{exitModel, "the model is unknown, not installed, damaged, or does not fit"},
	{exitPort, "the address cannot be listened on, or the answer was cut before it began"},
	{exitInterrupted, "interrupted (Ctrl-C)"},
}

// variable is an environment variable, or several with one meaning; a test checks that the list is
// complete.
type variable struct {
	names []string
	does  string
}

//go:embed variables.txt
var variablesText string

func variables() (list []variable) {
	for line := range strings.Lines(variablesText) {
		names, does, _ := strings.Cut(strings.TrimSpace(line), ": ")
		list = append(list, variable{strings.Fields(names), does})
	}
	return list
}

// roff is text as the manual's language has it.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	for _, mark := range []string{".", "'"} { // at the start of a line they would be requests
		text = strings.ReplaceAll("\n"+text, "\n"+mark, "\n\\&"+mark)[1:]
	}
	return text
}

// writeProse writes a description: paragraphs are filled, examples and tables stay as they are.
func writeProse(b *strings.Builder, text string) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		form := "%s\n"
		if strings.Contains(paragraph, "  ") || strings.HasPrefix(paragraph, "Example:") {
			form = ".nf\n%s\n.fi\n"
		}
		fmt.Fprintf(b, ".PP\n"+form, roff(paragraph))
	}
}

// writeManual writes the section of a verb, and of those below it.
func writeManual(b *strings.Builder, name string, cmd *cli.Command) {
	fmt.Fprintf(b, ".SH %s\n\\fB%s\\fR %s\n", roff(strings.ToUpper(name)), roff(name),
		roff(cmd.ArgsUsage))
	writeProse(b, cmd.Usage+"\n\n"+cmd.Description)
	groups, sections, _ := flagGroups(cmd, nil, func(b *strings.Builder, f shownFlag) {
		short, value, usage := flagParts(f)
		label := `\fB--` + f.Names()[0] + `\fR`
		if short != "" {
			label += `, \fB-` + short + `\fR`
		}
		fmt.Fprintf(b, ".TP\n%s \\fI%s\\fR\n%s\n", label, value, roff(usage))
	})
	for _, g := range groups {
		fmt.Fprintf(b, ".SS %s\n%s", roff(g), sections[g])
	}
	for _, below := range cmd.Subcommands {
		writeManual(b, name+" "+below.Name, below)
	}
}

// manual is ossrun(1), made of the same commands and flags as --help.
func manual(app *cli.App) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, ".TH OSSRUN 1\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n", app.Name, roff(app.Usage))
	for _, cmd := range app.VisibleCommands() {
		fmt.Fprintf(b, ".TP\n\\fB%s %s\\fR %s\n%s\n", app.Name, cmd.Name, roff(cmd.ArgsUsage),
			roff(cmd.Usage))
	}
	b.WriteString(".SH DESCRIPTION\n")
	writeProse(b, app.Description)
	for _, cmd := range app.VisibleCommands() {
		writeManual(b, app.Name+" "+cmd.Name, cmd)
	}
	b.WriteString(".SH ENVIRONMENT\n")
	for _, v := range variables() {
		fmt.Fprintf(b, ".TP\n%s\n%s\n", strings.Join(v.names, ", "), roff(v.does))
	}
	b.WriteString(".SH EXIT STATUS\n")
	for _, e := range exitCodes {
		fmt.Fprintf(b, ".TP\n%d\n%s\n", e.code, roff(e.means))
	}
	b.WriteString(".SH FILES\n.TP\n~/.config/ossrun/config.yaml\ndefaults of flags\n" +
		".TP\n~/.cache/huggingface/hub\nmodels, shared with Hugging Face's own tools\n" +
		".SH SEE ALSO\nhttps://github.com/ossrun/ossrun\n")
	return b.String()
}
