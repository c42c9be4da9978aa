package cli

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/urfave/cli/v2"
)

var updatePage = flag.Bool("update", false, "write docs/reference.md and other recordings anew")

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
			switch _, standard := usageAndDefault(f); {
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
			usage, _ := usageAndDefault(flags[name])
			b.WriteString(row("`"+shownName(flags[name])+"`", strings.Join(of[name], ", "),
				standards[name], usage))
		}
	}
	return b.String() + "\n"
}

// otherFlags are the tables of the verbs that verbs does not name.
func otherFlags(app *cli.App, verbs ...string) string {
	var b strings.Builder
	var write func(commands []*cli.Command, before string)
	write = func(commands []*cli.Command, before string) {
		for _, cmd := range commands {
			var rows []string
			for _, f := range cmd.Flags {
				f := f.(shownFlag)
				if !f.IsVisible() || f.Names()[0] == "config" {
					continue
				}
				usage, standard := usageAndDefault(f)
				rows = append(rows, row("`"+shownName(f)+"`", standard, usage))
			}
			shown := before == "" && slices.Contains(append(verbs, "run"), cmd.Name)
			if len(rows) > 0 && !cmd.Hidden && !shown {
				fmt.Fprintf(&b, "\n### %s%s\n\n| flag | default | what it does |\n|---|---|---|\n%s",
					before, cmd.Name, strings.Join(rows, ""))
			}
			write(cmd.Subcommands, before+cmd.Name+" ")
		}
	}
	write(app.Commands, "")
	return b.String()
}

func shownName(f shownFlag) string {
	if !f.TakesValue() {
		return "--" + f.Names()[0]
	}
	placeholder, _ := unquote(f.GetUsage())
	return "--" + f.Names()[0] + " " + cmp.Or(placeholder, "VALUE")
}

// row is a row of a table of Markdown.
func row(cells ...string) string {
	for i, cell := range cells {
		cells[i] = strings.NewReplacer("|", `\|`, "* ", `\* `).Replace(cell)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// verbRows is the rows of all verbs and their subcommands.
func verbRows(commands []*cli.Command, before string) (rows string) {
	for _, cmd := range commands {
		if !cmd.Hidden {
			rows += row("`"+strings.TrimSpace(before+cmd.Name+" "+cmd.ArgsUsage)+"`", cmd.Usage) +
				verbRows(cmd.Subcommands, before+cmd.Name+" ")
		}
	}
	return rows
}

// helpOfTheChat is the keys of the screen, and the commands as /help prints them, as tables.
func helpOfTheChat(t *testing.T) string {
	t.Helper()
	cmd := ossrun(t, nil, "chat", "--plain", "--model", "demo", "--device", "cpu", "--no-history")
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 80, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.WriteString(f, "/help\n/quit\n"); err != nil {
		t.Fatal(err)
	}
	said, _ := io.ReadAll(f) // Linux ends it with an error
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	keys, err := os.ReadFile("../chat/keys.txt") // a chat without a screen has few of them
	if err != nil {
		t.Fatal(err)
	}
	_, commands, _ := strings.Cut(strings.ReplaceAll(string(said), "\r\n", "\n"), "Commands\n")
	var b strings.Builder
	for line := range strings.Lines("Keys\n  " +
		strings.ReplaceAll(strings.TrimSpace(string(keys)), "\n", "\n  ") + "\nCommands\n" + commands) {
		line = strings.TrimPrefix(strings.TrimRight(line, "\n"), "> ")
		if name, does, ok := strings.Cut(strings.TrimSpace(line), "  "); ok &&
			strings.HasPrefix(line, "  ") {
			b.WriteString(row("`"+name+"`", strings.TrimSpace(does)))
		} else if line == "Keys" || line == "Commands" {
			fmt.Fprintf(&b, "\n| %s | what it does |\n|---|---|\n", strings.ToLower(strings.TrimSuffix(
				line, "s")))
		}
	}
	return b.String()
}

// docs/reference.md is made of the tables that --help, completion and the manual are made of, and
// of the chat's /help. docs/configuration.md names no other flag.
func TestReference(t *testing.T) {
	app := newApp(Terminal{Out: io.Discard, Err: io.Discard})
	var b strings.Builder
	b.WriteString("# Reference\n\nMade by `go test ./ui/cli -run TestReference -update`: not to be " +
		"edited.\n[Settings](configuration.md) explains them.\n\n## Commands\n\n" +
		"| command | what it does |\n|---|---|\n" + verbRows(app.Commands, "") +
		"\n## Flags of chat and serve\n")
	b.WriteString(strings.TrimRight(pageOfFlags(app, "chat", "serve"), "\n") +
		"\n\n## Flags of other commands\n" + otherFlags(app, "chat", "serve"))
	b.WriteString("\n## Variables\n\n| variable | what it does |\n|---|---|\n")
	for _, v := range variables() {
		b.WriteString(row("`"+strings.Join(v.names, "`, `")+"`", v.does))
	}
	b.WriteString("\n## Exit codes\n\n| code | meaning |\n|---|---|\n")
	for _, e := range exitCodes {
		b.WriteString(row(fmt.Sprint(e.code), e.means))
	}
	b.WriteString("\n## Keys and commands of the chat\n" + helpOfTheChat(t))
	const page = "../../docs/reference.md"
	if *updatePage {
		write(t, page, b.String())
	}
	if now, err := os.ReadFile(page); err != nil || string(now) != b.String() {
		t.Errorf("%s is not what the program says (%v): go test ./ui/cli -run TestReference -update",
			page, err)
	}

	known := map[string]bool{"--help": true, "--help-all": true, "--now": true}
	for _, cmd := range app.Commands {
		for _, f := range append(cmd.Flags, flagsOf(cmd.Subcommands)...) {
			for _, name := range f.Names() {
				known["--"+name] = true
			}
		}
	}
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`[^`]*?(--[a-z][a-z0-9-]*)[^`]*`").FindAllStringSubmatch(
		string(text), -1) {
		if !known[m[1]] {
			t.Errorf("docs/configuration.md names %s, which no verb has", m[1])
		}
	}
}

// TestHelpTextIsUsed holds help.txt to the commands: each text has its command or flag, and each
// visible one its text.
func TestHelpTextIsUsed(t *testing.T) {
	app, used := newApp(Terminal{Out: io.Discard, Err: io.Discard}), map[string]bool{}
	commands := map[string]bool{"": true, app.Name: true, "flags of several commands": true}
	var walk func(parent string, list []*cli.Command)
	walk = func(parent string, list []*cli.Command) {
		for _, cmd := range list {
			name := strings.TrimSpace(parent + " " + cmd.Name)
			commands[name] = true
			if cmd.Usage == "" || cmd.Description == "" {
				t.Errorf("%s has no summary or no description", name)
			}
			for _, f := range cmd.Flags {
				text := f.(shownFlag).GetUsage()
				if used[f.Names()[0]+" "+text] = true; text == "" && f.(shownFlag).IsVisible() {
					t.Errorf("%s --%s has no text", name, f.Names()[0])
				}
			}
			walk(name, cmd.Subcommands)
		}
	}
	walk("", app.Commands)
	for section := range strings.SplitSeq("\n"+helpText, "\n# ") {
		if _, flags, _ := strings.Cut(section, "\n--"); strings.Contains(strings.TrimSpace(flags),
			"\n\n") {
			t.Errorf("a line of this description begins as a flag does:\n%s", section)
		}
	}
	for command, s := range helpSections() {
		if !commands[command] {
			t.Errorf("help.txt has %s, which is no command", command)
		}
		for flag, text := range s.flags {
			if flag != "" && !used[flag+" "+text] {
				t.Errorf("help.txt has --%s of %q, which no command has with this text", flag, command)
			}
		}
	}
}

// TestVariablesAreListed looks through the product for variables that it reads by name.
func TestVariablesAreListed(t *testing.T) {
	listed := map[string]bool{}
	for _, v := range variables() {
		for _, name := range v.names {
			listed[name] = true
		}
	}
	read := regexp.MustCompile(`(?:Getenv|LookupEnv)\("([A-Z_]+)"\)`)
	found := 0
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.Contains(path, "test/") || strings.Contains(path, "testdata") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range read.FindAllStringSubmatch(string(text), -1) {
			if found++; !listed[m[1]] && m[1] != "PATH" {
				t.Errorf("%s reads %s, which is not in ui/cli/variables.txt", path, m[1])
			}
		}
		return err
	})
	if err != nil || found < 20 {
		t.Errorf("%d variables are read: %v", found, err)
	}
}

func flagsOf(commands []*cli.Command) (flags []cli.Flag) {
	for _, c := range commands {
		flags = append(flags, c.Flags...)
	}
	return flags
}

// One table makes all texts about a verb's flags: each flag is in its help, in completion and in
// the manual. Other code names only flags that exist.
func TestOneTableOfFlags(t *testing.T) {
	var out bytes.Buffer
	app := newApp(Terminal{Out: &out, Err: io.Discard})
	page := manual(app)
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
	for verb, most := range map[string]int{"chat": 60, "run": 60, "serve": 60, "bench": 30,
		"eval gpqa": 14, "eval aime25": 14} {
		names, words := common[verb], strings.Fields(verb)
		cmd := app.Command(words[0])
		if verb == "run" {
			names = common["chat"]
		}
		if len(words) > 1 {
			cmd = cmd.Subcommands[slices.IndexFunc(cmd.Subcommands,
				func(c *cli.Command) bool { return c.Name == words[1] })]
		}
		few, all := help(append(words, "--help")...), help(append(words, "--help-all")...)
		if n := len(shown.FindAllString(few, -1)); n != 12 || n != len(names) {
			t.Errorf("%s --help shows %d flags", verb, n)
		}
		if n := strings.Count(few, "\n"); n > 60 {
			t.Errorf("%s --help has %d lines", verb, n)
		}
		visible := 0
		for _, f := range cmd.Flags {
			if f := f.(shownFlag); f.IsVisible() {
				visible++
			}
		}
		if n := len(shown.FindAllString(all, -1)); n != visible || n < min(most, 40) ||
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
