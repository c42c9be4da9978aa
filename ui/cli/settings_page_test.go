package cli

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

var updatePage = flag.Bool("update", false, "write the flags of docs/configuration.md anew")

const settingsPage = "../../docs/configuration.md"

// pageOfFlags is the rows of the flags that verbs have, in the groups of --help.
func pageOfFlags(app *cli.App, verbs ...string) string {
	var groups []string
	rows, of := map[string][]string{}, map[string][]string{} // flags by group, verbs by flag
	flags, standards := map[string]shownFlag{}, map[string]string{}
	for _, verb := range verbs {
		for _, f := range app.Command(verb).Flags {
			f := f.(shownFlag)
			name := f.Names()[0]
			if !f.IsVisible() {
				continue
			}
			if flags[name] == nil {
				flags[name] = f
				group := cmp.Or(f.GetCategory(), "With a PROMPT")
				if rows[group] == nil {
					groups = append(groups, group)
				}
				rows[group] = append(rows[group], name)
			}
			of[name] = append(of[name], verb)
			switch _, standard := described(f); {
			case len(of[name]) == 1:
				standards[name] = standard
			case standards[name] != standard:
				standards[name] += "; of " + verb + " " + standard
			}
		}
	}
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "\n### %s\n\n| flag | of | default | what it does |\n"+
			"|---|---|---|---|\n", g)
		for _, name := range rows[g] {
			usage, _ := described(flags[name])
			placeholder, _ := unquote(usage)
			shown := "--" + name
			if flags[name].TakesValue() {
				shown += " " + cmp.Or(placeholder, "VALUE")
			}
			cells := []string{"`" + shown + "`", strings.Join(of[name], ", "), standards[name],
				usage}
			for i, cell := range cells {
				cells[i] = strings.NewReplacer("|", `\|`, "* ", `\* `).Replace(cell)
			}
			fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
		}
	}
	return b.String() + "\n"
}

// The flags of docs/configuration.md are those of the tables that --help, completion and the manual
// are made of, and it names no others.
func TestSettingsPage(t *testing.T) {
	app := newApp(Terminal{Out: io.Discard, Err: io.Discard})
	text, err := os.ReadFile(settingsPage)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- flags: made by go test ./ui/cli -run TestSettingsPage -update -->\n",
		"<!-- end of flags -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	now, after, whole := strings.Cut(rest, end)
	if !ok || !whole {
		t.Fatalf("%s has no place for flags", settingsPage)
	}
	want := pageOfFlags(app, "chat", "serve")
	if *updatePage {
		err = os.WriteFile(settingsPage, []byte(before+begin+want+end+after), 0o644)
		if now = want; err != nil {
			t.Fatal(err)
		}
	}
	if now != want {
		t.Errorf("%s is not what the flags say; go test ./ui/cli -run TestSettingsPage -update "+
			"writes it anew", settingsPage)
	}
	known := map[string]bool{"--help": true, "--help-all": true, "--now": true}
	for _, cmd := range app.Commands {
		for _, f := range append(cmd.Flags, flagsOf(cmd.Subcommands)...) {
			for _, name := range f.Names() {
				known["--"+name] = true
			}
		}
	}
	for _, m := range regexp.MustCompile("`[^`]*?(--[a-z][a-z0-9-]*)[^`]*`").FindAllStringSubmatch(
		before+after, -1) {
		if !known[m[1]] {
			t.Errorf("%s names %s, which no verb has", settingsPage, m[1])
		}
	}
}

func flagsOf(commands []*cli.Command) (flags []cli.Flag) {
	for _, c := range commands {
		flags = append(flags, c.Flags...)
	}
	return flags
}

// One table makes all that is said of a verb's flags: each is in its help, in completion and in the
// manual. What other code says of flags by their names is of flags that there are.
func TestOneTableOfFlags(t *testing.T) {
	var out bytes.Buffer
	app := newApp(Terminal{Out: &out, Err: io.Discard})
	page, err := manual(app)
	if err != nil {
		t.Fatal(err)
	}
	flags := 0
	var check func(commands []*cli.Command, words ...string)
	check = func(commands []*cli.Command, words ...string) {
		for _, cmd := range commands {
			if cmd.Hidden {
				continue
			}
			words := append(words[:len(words):len(words)], cmd.Name)
			check(cmd.Subcommands, words...)
			out.Reset()
			complete(app, append(words[:len(words):len(words)], "--", asksWords))
			help := helpTemplate(cmd, nil)
			for _, f := range cmd.Flags {
				f := f.(shownFlag)
				name := "--" + f.Names()[0]
				inHelp := regexp.MustCompile(`(?m)^  ` + name + `(, -\w)?( |$)`).MatchString(help)
				offered := strings.Contains("\n"+out.String(), "\n"+name+":")
				inPage := strings.Contains(page, `\fB`+name)
				if seen := f.IsVisible(); inHelp != seen || offered != seen || seen && !inPage {
					t.Errorf("%s %s: in the help %v, completed %v, in the manual %v", words, name,
						inHelp, offered, inPage)
				}
				flags++
			}
		}
	}
	check(app.Commands, "ossrun")
	if flags < 200 {
		t.Errorf("only %d flags were looked at", flags)
	}
	named := flagNames(app.Command("chat"))
	for _, name := range ownEngine {
		if _, ok := named[name]; !ok {
			t.Errorf("chat has no flag %s", name)
		}
	}
	named = flagNames(app.Command("serve"))
	for _, name := range deviceDefaults {
		if _, ok := named[name]; !ok {
			t.Errorf("serve has no flag %s", name)
		}
	}
}

// TestLongHelps: --help of a verb with many flags shows twelve, on a page of 80 columns, and
// --help-all shows them all. No line of any help is wider.
func TestLongHelps(t *testing.T) {
	app := newApp(Terminal{Out: io.Discard, Err: io.Discard})
	help := func(words ...string) string {
		var out strings.Builder
		if code := Run(t.Context(), append([]string{"ossrun"}, words...), Terminal{Out: &out,
			Err: &out}); code != exitOK {
			t.Errorf("%s: %d", words, code)
		}
		for line := range strings.Lines(out.String()) {
			if n := len(strings.TrimSuffix(line, "\n")); n > 80 && !strings.Contains(line, "://") {
				t.Errorf("%s: %d columns: %s", words, n, line)
			}
		}
		return out.String()
	}
	shown := regexp.MustCompile(`(?m)^  --`)
	for _, verb := range []string{"chat", "run", "serve"} {
		names := common[verb]
		if verb == "run" {
			names = common["chat"]
		}
		few, all := help(verb, "--help"), help(verb, "--help-all")
		if n := len(shown.FindAllString(few, -1)); n != 12 || n != len(names) {
			t.Errorf("%s --help shows %d flags", verb, n)
		}
		if n := strings.Count(few, "\n"); n > 60 {
			t.Errorf("%s --help has %d lines", verb, n)
		}
		visible := 0
		for _, f := range app.Command(verb).Flags {
			if f := f.(shownFlag); f.IsVisible() {
				visible++
			}
		}
		if n := len(shown.FindAllString(all, -1)); n != visible || n < 40 ||
			!strings.Contains(few, fmt.Sprintf("ossrun %s --help-all shows all %d flags.", verb,
				n)) {
			t.Errorf("%s --help-all shows %d of %d flags\n%s", verb, n, visible, few)
		}
	}
	help("--help")
	for _, cmd := range app.Commands {
		help(cmd.Name, "--help-all")
		for _, sub := range cmd.Subcommands {
			help(cmd.Name, sub.Name, "--help")
		}
	}
}
