// The manual page, made from the same commands and flags as --help, so that it cannot say something
// else.

package cli

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

// manual is ossrun(1) in the man macros of roff.
func manual(app *cli.App) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`.TH OSSRUN 1 "" "ossrun %s" "User Commands"`, roff(build().Version))
	line(".SH NAME\n%s \\- %s", roff(app.Name), roff(app.Usage))
	line(".SH SYNOPSIS\n.B %s\n.I COMMAND\n[\\fIflags\\fR] [\\fIarguments\\fR]", roff(app.Name))
	line(".SH DESCRIPTION\n%s", roffText(app.Description))
	line(".SH COMMANDS")
	for _, cmd := range app.Commands {
		if !cmd.Hidden {
			manualSection(&b, "ossrun "+cmd.Name, cmd)
		}
	}
	line(".SH FILES\n.TP\n.I ~/.config/ossrun/config.yaml\ndefaults of flags\n.TP\n.I " +
		"~/.cache/huggingface/hub\nmodels, shared with Hugging Face's own tools")
	line(".SH SEE ALSO\nhttps://github.com/ossrun/ossrun")
	return b.String()
}

// manualSection is the section of one command, and those of its subcommands.
func manualSection(b *strings.Builder, name string, cmd *cli.Command) {
	fmt.Fprintf(b, ".SS %s %s\n%s.\n", roff(name), roff(cmd.ArgsUsage), roff(cmd.Usage))
	if text := cmd.Description; text != "" {
		fmt.Fprintf(b, ".PP\n%s\n", roffText(text))
	}
	for _, f := range cmd.VisibleFlags() {
		documented, ok := f.(cli.DocGenerationFlag)
		if !ok {
			continue
		}
		what, usage := unquote(documented.GetUsage())
		if what == "" && documented.TakesValue() {
			what = "VALUE"
		}
		fmt.Fprintf(b, ".TP\n.B \\-\\-%s\n", strings.TrimSpace(roff(f.Names()[0])+" "+roff(what)))
		fmt.Fprintln(b, roff(usage))
	}
	for _, sub := range cmd.Subcommands {
		if !sub.Hidden && sub.Name != "help" {
			manualSection(b, name+" "+sub.Name, sub)
		}
	}
}

// roffText is text of several lines as it stands.
func roffText(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, roff(strings.TrimRight(line, "\n")))
	}
	return ".nf\n" + strings.Join(lines, "\n") + "\n.fi"
}

// roff makes one line safe: no request at its beginning, no escape in it.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return line
}
