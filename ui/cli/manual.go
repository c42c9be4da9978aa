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

// manual is ossrun(1), generated from the same commands and flags as --help.
func manual(app *cli.App) (string, error) {
	page, err := app.ToManWithSection(1)
	b := strings.Builder{}
	b.WriteString(page + ".SH ENVIRONMENT\n")
	for _, v := range variables() {
		fmt.Fprintf(&b, ".TP\n%s\n%s\n", strings.Join(v.names, ", "), v.does)
	}
	b.WriteString(".SH EXIT STATUS\n")
	for _, e := range exitCodes {
		fmt.Fprintf(&b, ".TP\n%d\n%s\n", e.code, e.means)
	}
	b.WriteString(".SH FILES\n.TP\n~/.config/ossrun/config.yaml\ndefaults of flags\n" +
		".TP\n~/.cache/huggingface/hub\nmodels, shared with Hugging Face's own tools\n" +
		".SH SEE ALSO\nhttps://github.com/ossrun/ossrun\n")
	return b.String(), err
}
