// Commands: lines that begin with "/".

package chat

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// A command is a line that begins with "/". run gets the text after the name.
type command struct {
	name, argument, help string
	run                  func(m *Model, argument string) tea.Cmd

	// possible arguments: known at once, or loaded outside Update
	values    func(m *Model) []choice
	load      func(m *Model) func() []choice
	pickFirst bool // Enter without a choice takes the first value
}

// aliases are not listed.
var aliases = map[string]string{"clear": "new", "exit": "quit", "bye": "quit",
	"save": "export"}

// commands in the order in which they are listed
var commands []command

func init() {
	noArgument := func(do func(m *Model) tea.Cmd) func(*Model, string) tea.Cmd {
		return func(m *Model, _ string) tea.Cmd { return do(m) }
	}
	commands = []command{
		{name: "help", help: "the keys and commands", run: noArgument(showHelp)},
		{name: "new", help: "begin another conversation", run: noArgument((*Model).reset)},
		{name: "effort", argument: "low|medium|high", run: setEffort,
			help: "how long the model thinks (Shift+Tab)", values: effortValues},
		{name: "system", argument: "TEXT", run: setSystem,
			help: "the model's instructions; \"off\" removes them"},
		{name: "tools", help: "what the model may call", run: noArgument(listTools)},
		{name: "regenerate", help: "ask the last question again",
			run: noArgument((*Model).regenerate)},
		{name: "undo", run: noArgument(undo), help: "take back the last question and answer"},
		{name: "edit", argument: "N", run: editQuestion, values: questionValues,
			help: "change question N, or the last, and send it again"},
		{name: "branch", argument: "N", run: showBranch, values: branchValues,
			help: "go to the next branch, or branch N, of answers"},
		{name: "compact", help: "continue from a summary, which is shorter",
			run: noArgument(compact)},
		{name: "model", argument: "NAME", run: switchModel, load: modelValues,
			help: "continue with another model"},
		{name: "editor", help: "write the message in $EDITOR (Ctrl+G)",
			run: noArgument(composeMessage)},
		{name: "copy", argument: "N", run: copyText, values: codeValues,
			help: "copy the last answer, or code block N (OSC 52)"},
		{name: "show", argument: "N", run: showPicture, values: pictureValues,
			help: "the last picture that a tool made, or picture N"},
		{name: "sessions", argument: "WORDS", run: listSessions, load: sessionsFor("/resume "),
			pickFirst: true, help: "earlier conversations; WORDS search them"},
		{name: "resume", argument: "ID|NAME", run: resumeSession, load: sessionsFor("/resume "),
			help: "continue an earlier conversation"},
		{name: "rename", argument: "NAME", run: renameSession, help: "name this conversation"},
		{name: "delete", argument: "ID|NAME", run: deleteSession, load: sessionsFor("/delete "),
			help: "delete this conversation, or another, for good"},
		{name: "export", argument: "FILE.md|.json", run: exportVisible,
			help: "write the conversation to a file"},
		{name: "commands", argument: "WORDS", run: showPalette, values: commandValues,
			pickFirst: true, help: "every command; WORDS search them (Ctrl+P)"},
		{name: "quit", help: "leave (Ctrl+C, Ctrl+D)", run: noArgument((*Model).quit)},
	}
}

var efforts = []string{"low", "medium", "high"}

// parseCommand splits a line into a command's name and argument. A path such as /usr/bin is no
// command.
func parseCommand(text string) (name, argument string, ok bool) {
	rest, ok := strings.CutPrefix(text, "/")
	if !ok || strings.Contains(text, "\n") && !strings.HasPrefix(rest, "system ") {
		return "", "", false
	}
	name, argument, _ = strings.Cut(rest, " ")
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") != "" {
		return "", "", false
	}
	return name, strings.TrimSpace(argument), true
}

// matchCommands returns the commands whose name begins with a prefix, or the one with exactly that
// name.
func matchCommands(prefix string) []command {
	var matches []command
	for _, c := range commands {
		if c.name == prefix || c.name == aliases[prefix] {
			return []command{c}
		}
		if strings.HasPrefix(c.name, prefix) {
			matches = append(matches, c)
		}
	}
	return matches
}

// nth is the typed number from 1 to count, or fallback.
func nth(number string, count, fallback int) (n int, ok bool) {
	var err error
	if n = fallback; number != "" {
		n, err = strconv.Atoi(number)
	}
	return n, err == nil && n >= 1 && n <= count
}

// typed is the command as inserted by completion; usage adds its argument.
func (c command) typed() string {
	if c.argument != "" {
		return "/" + c.name + " "
	}
	return "/" + c.name
}

func (c command) usage() string { return c.typed() + c.argument }

func (m *Model) runCommand(name, argument string) tea.Cmd {
	matches := matchCommands(name)
	switch {
	case name == "" || len(matches) == 0:
		return m.showError(fmt.Sprintf(
			"Unknown command /%s. Type / to see all commands. To send it as text, start with a "+
				"space.", name))
	case len(matches) > 1:
		var names []string
		for _, c := range matches {
			names = append(names, "/"+c.name)
		}
		return m.showError(fmt.Sprintf("/%s is not complete. Type %s.", name,
			strings.Join(names, " or ")))
	}
	m.input.editor.set("")
	return matches[0].run(m, argument)
}

// keysText has a line for each key: its name, blanks, what it does.
//
//go:embed keys.txt
var keysText string

func showHelp(m *Model) tea.Cmd {
	rows := []line{styledLine(term.Bold, "Keys")}
	for line := range strings.Lines(keysText) {
		keys, help, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if !m.plain || strings.Contains("@!", keys[:1]) { // it has no other keys
			rows = append(rows, plainLine(keys, strings.TrimSpace(help)))
		}
	}
	rows = append(rows, line{}, styledLine(term.Bold, "Commands"))
	for _, c := range commands {
		rows = append(rows, plainLine(c.usage(), c.help))
	}
	return m.showPage(rows)
}

func showPalette(m *Model, words string) tea.Cmd {
	m.input.editor.set("/commands " + words)
	return nil
}

// openPalette is Ctrl+P. Up restores the typed text.
func openPalette(m *Model) tea.Cmd {
	if text := m.input.editor.text; text != "" {
		m.remember(text)
	}
	return showPalette(m, "")
}

func commandValues(*Model) (all []choice) {
	for _, c := range commands {
		text := strings.ToLower(c.name + " " + c.help)
		if c.name != "commands" {
			all = append(all, choice{text: c.typed(), name: c.usage(), columns: []string{c.help},
				matches: func(word string) bool { return strings.Contains(text, word) }})
		}
	}
	return all
}

func setEffort(m *Model, effort string) tea.Cmd {
	if effort == "" {
		return m.showNotice("Effort is " + m.talk.effort + ". Type /effort low, medium or high.")
	}
	if !slices.Contains(efforts, effort) {
		return m.showError(fmt.Sprintf("Unknown effort %q. Use low, medium or high.", effort))
	}
	m.talk.effort = effort
	return m.note("Effort: " + effort + ", from the next message.")
}

func setSystem(m *Model, text string) tea.Cmd {
	switch {
	case text == "" && m.talk.system == "":
		return m.showNotice("No instructions are set. Type /system TEXT to set some.")
	case text == "":
		return m.showNotice("Instructions: " + m.talk.system)
	case text == "off":
		m.talk.system = ""
		return m.showNotice("Instructions removed, from the next message.")
	}
	m.talk.system = text
	return m.showNotice("Instructions, from the next message: " + text)
}

func switchModel(m *Model, name string) tea.Cmd {
	switch {
	case name == "":
		return m.showNotice("The model is " + m.options.Model.ID() +
			". Type /model NAME to change it.")
	case m.options.Switch == nil:
		return m.showError("No other model is available.")
	case m.busy():
		return nil
	}
	open := m.options.Switch
	return m.background.run(func() tea.Msg {
		model, err := open(m.ctx, name)
		if err != nil {
			return failure{err}
		}
		return modelOpened{model}
	})
}

type modelOpened struct{ model session.Runner }

func (o modelOpened) apply(m *Model) tea.Cmd {
	m.options.Model, m.record.model = o.model, ""
	m.showNotice("The next answers come from " + o.model.ID() +
		". It is loaded with the next message.")
	m.save()
	return nil
}

func (m *Model) regenerate() tea.Cmd {
	if m.busy() {
		return nil
	}
	last := m.talk.conversation.current
	if last == nil || last.answer == nil {
		return m.note("Nothing to regenerate yet.")
	}
	return m.ask(last.question, last.messages[0].Text(), last)
}

// copyText copies the last answer, or one code block, to the terminal's clipboard (OSC 52).
func copyText(m *Model, number string) tea.Cmd {
	text := m.talk.conversation.lastAnswer()
	if number != "" {
		code := m.talk.conversation.current.code()
		n, ok := nth(number, len(code), 0)
		if !ok {
			return m.showError(fmt.Sprintf("No code block %s. Code blocks are numbered above "+
				"their first line, and there are %d.", number, len(code)))
		}
		text = code[n-1]
	}
	if text == "" {
		return m.note("Nothing to copy yet.")
	}
	if m.clipboard == nil {
		return nil
	}
	out := m.clipboard
	return m.background.run(func() tea.Msg {
		_, err := io.WriteString(out,
			"\x1b]52;c;"+base64.StdEncoding.EncodeToString([]byte(text))+"\x07")
		if err != nil {
			return failure{fmt.Errorf("copy: %w", err)}
		}
		return shortNote(fmt.Sprintf("Copied %s.", term.Count(len([]rune(text)), "character")))
	})
}
