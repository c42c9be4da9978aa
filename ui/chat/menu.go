// The menu under a typed command: matching commands, then possible values, such as saved
// conversations. Up and Down choose, Enter takes, Tab completes.
//
// What must stay true: the editor's text determines the menu; a row is only taken if it was on the
// screen.

package chat

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// A choice is one row of the menu.
type choice struct {
	text    string // the editor's text once taken
	name    string
	columns []string // after the name; the first may be cut, others are shown in full or not
	session string   // the ID of its conversation
	matches func(word string) bool
}

// A menu is the state of the menu.
type menu struct {
	text    string   // the editor's text when index was chosen
	index   int      // the chosen row; -1: none
	command string   // the command with loaded values
	values  []choice // loaded values
	loaded  bool     // values are complete
	loads   int      // number of loads; only the latest counts
}

// valueCommand is the command in text whose values are needed, or nil, and the search words.
func valueCommand(text string) (*command, string) {
	name, words, ok := parseCommand(text)
	if !ok || !strings.Contains(text, " ") {
		return nil, ""
	}
	matches := matchCommands(name)
	if len(matches) != 1 || matches[0].values == nil && matches[0].load == nil {
		return nil, ""
	}
	return &matches[0], words
}

// choices are the menu's rows for the current text.
func (m *Model) choices() []choice {
	text := m.editor.text
	if m.textPrompt != nil {
		return nil
	}
	if text == "" {
		return m.recentChoices()
	}
	c, words := valueCommand(text)
	if name, _, ok := parseCommand(text); c == nil && ok {
		var rows []choice
		for _, c := range matchCommands(name) {
			rows = append(rows, choice{text: c.typed(), name: c.usage(),
				columns: []string{c.help}})
		}
		return rows
	} else if c == nil {
		return nil
	}
	all := m.menu.values
	if c.values != nil {
		all = c.values(m)
	} else if m.menu.command != c.name {
		return nil
	}
	return filterChoices(all, words)
}

// filterChoices returns the choices that match all words.
func filterChoices(all []choice, words string) (rows []choice) {
	terms := strings.Fields(strings.ToLower(words))
	for _, row := range all {
		if !slices.ContainsFunc(terms, func(w string) bool { return !row.matches(w) }) {
			rows = append(rows, row)
		}
	}
	return rows
}

// loadMenu loads the values of a command once its name is typed.
func (m *Model) loadMenu() tea.Cmd {
	c, _ := valueCommand(m.editor.text)
	if c == nil || c.load == nil || m.plain {
		m.menu = menu{text: m.menu.text, index: m.menu.index, loads: m.menu.loads}
		return nil
	}
	if m.menu.command == c.name {
		return nil
	}
	m.menu.command, m.menu.values, m.menu.loaded = c.name, nil, false
	m.menu.loads++
	read, n := c.load(m), m.menu.loads
	return m.runAsync(func() outcome {
		values := read()
		return func(m *Model) tea.Cmd {
			if m.menu.command == c.name && m.menu.loads == n {
				m.menu.values, m.menu.loaded = values, true
			}
			return nil
		}
	})
}

// chosen is the row that Enter takes, or nil.
func (m *Model) chosen() *choice {
	rows := m.choices()
	index := m.menu.index
	if m.menu.text != m.editor.text { // the text has changed since
		index = -1
		if c, _ := valueCommand(m.editor.text); c != nil && c.pickFirst || m.editor.text == "" {
			index = 0
		}
	}
	if index < 0 || index >= len(rows) {
		return nil
	}
	return &rows[index]
}

// moveChoice moves through the menu, and reports whether there is one.
func (m *Model) moveChoice(delta int) bool {
	rows := m.choices()
	if len(rows) == 0 || m.plain || m.history.isShowing(m.editor.text) {
		return false
	}
	index := -1
	if m.menu.text == m.editor.text {
		index = m.menu.index
	} else if m.chosen() != nil {
		index = 0
	}
	switch index += delta; {
	case m.editor.text == "" && (index < 0 || index >= len(rows)):
		return false // earlier questions are above these
	case index < 0:
		index = len(rows) - 1
	case index >= len(rows):
		index = 0
	}
	m.menu.text, m.menu.index = m.editor.text, index
	return true
}

// takeChoice runs or completes the chosen row.
func (m *Model) takeChoice(c choice) tea.Cmd {
	m.editor.set(c.text)
	if strings.HasSuffix(c.text, " ") { // an argument follows
		return nil
	}
	if c.session == "" { // IDs of conversations are not worth a history entry
		m.remember(c.text)
	}
	name, argument, _ := parseCommand(c.text)
	return m.runCommand(name, argument)
}

func (m *Model) complete() {
	text, rows := m.editor.text, m.choices()
	c, _ := valueCommand(text)
	if chosen := m.chosen(); chosen != nil {
		text = chosen.text
	} else if len(rows) > 0 && (c != nil || !strings.Contains(text, " ")) {
		text = rows[0].text
	}
	m.editor.set(text)
}

// hintRows is the menu in at most limit rows, including the chosen one.
func (m *Model) hintRows(limit int) []term.Row {
	if m.editor.text == "" { // the transcript shows a new chat's choices
		return nil
	}
	rows := m.choices()
	chosen, index := m.chosen(), 0
	for i := range rows {
		if chosen != nil && rows[i].text == chosen.text {
			index = i
		}
	}
	var keys []term.Row
	if c, _ := valueCommand(m.editor.text); c != nil && c.name == "sessions" && len(rows) > 0 &&
		limit > 2 {
		limit = max(m.height-8, limit) - 1
		text := "Type to search · Down chooses · Enter opens · Esc closes"
		if m.chosenSession() != "" {
			text = "Enter opens · r renames · d deletes · e exports · Esc closes"
		}
		keys = []term.Row{{{Text: strings.Repeat(" ", m.margin())}, {Style: term.Dim,
			Text: term.Cut(fmt.Sprintf("%s · %d of %d", text, index+1, len(rows)),
				max(m.width-2*m.margin(), 0))}}}
	}
	above, below := 0, len(rows)
	if below > limit {
		limit = max(limit-1, 1)
		above = min(max(index-limit+1, 0), len(rows)-limit)
		below = above + limit
	}
	blank := strings.Repeat(" ", m.margin())
	visible := term.Prefix(choiceRows(rows[above:below], chosen, m.width-m.margin()),
		term.Span{Text: blank}, term.Span{Text: blank})
	if numHidden := len(rows) - len(visible); numHidden > 0 {
		visible = append(visible, term.Row{{Style: term.Dim, Text: term.Cut(fmt.Sprintf(
			"%s… %d more: Up and Down, or type on", blank, numHidden), m.width)}})
	}
	return append(visible, keys...)
}

// choiceRows lays out choices in columns; columns without room are left out.
func choiceRows(all []choice, chosen *choice, width int) (rows []term.Row) {
	name, wide := 0, []int{}
	for _, c := range all {
		name = max(name, term.Width(c.name))
		for i, text := range c.columns {
			if i == len(wide) {
				wide = append(wide, 0)
			}
			wide[i] = max(wide[i], term.Width(text))
		}
	}
	name = min(name, max(width*45/100, 25))
	for _, c := range all {
		mark, style := "  ", term.Plain
		if chosen != nil && c.text == chosen.text {
			mark, style = prompt, term.Bold
		}
		row := term.Row{{Text: mark + pad(term.Cut(c.name, name), name),
			Style: style | term.Cyan}}
		remaining := width - len([]rune(mark)) - name
		for i, text := range c.columns {
			if i > 0 && wide[i]+2 > remaining {
				break
			}
			text = "  " + pad(text, wide[i])
			row = append(row, term.Span{Text: term.Cut(text, max(remaining, 0)),
				Style: style | term.Dim})
			remaining -= term.Width(text)
		}
		rows = append(rows, row)
	}
	return rows
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(width-term.Width(text), 0))
}

// hasPrefix matches a row by prefix.
func hasPrefix(value string) func(string) bool {
	return func(word string) bool { return strings.HasPrefix(strings.ToLower(value), word) }
}

// numberedChoices are choices by a number, such as the questions of /edit.
func numberedChoices(command string, texts []string) (all []choice) {
	for i, text := range texts {
		n := fmt.Sprint(i + 1)
		all = append(all, choice{text: "/" + command + " " + n, name: n,
			columns: []string{firstLine(text)}, matches: hasPrefix(n)})
	}
	return all
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return term.Clean(strings.ToValidUTF8(line, ""))
}

func effortValues(*Model) (all []choice) {
	for _, e := range efforts {
		all = append(all, choice{text: "/effort " + e, name: e, matches: hasPrefix(e)})
	}
	return all
}

func questionValues(m *Model) []choice {
	var texts []string
	for _, e := range m.conversation.questions() {
		texts = append(texts, e.question)
	}
	return numberedChoices("edit", texts)
}

func codeValues(m *Model) []choice { return numberedChoices("copy", m.conversation.current.code()) }

func branchValues(m *Model) []choice {
	var texts []string
	if fork := m.conversation.fork(); fork != nil {
		for _, e := range *m.conversation.siblings(fork) {
			_, length := e.end()
			texts = append(texts, firstLine(e.question)+" ("+formatCount(length, "question")+")")
		}
	}
	return numberedChoices("branch", texts)
}

// modelValues are the models for /model.
func modelValues(m *Model) func() []choice {
	list := m.options.Models
	return func() (all []choice) {
		if list == nil {
			return nil
		}
		for _, info := range list(m.ctx) {
			name := term.Clean(info.ID)
			all = append(all, choice{text: "/model " + name, name: name,
				columns: []string{formatNumber(info.ContextLength) + " tokens of context"},
				matches: func(word string) bool { return strings.Contains(name, word) }})
		}
		return all
	}
}

// sessionsFor are the saved conversations for a command, except the visible one.
func sessionsFor(command string) func(m *Model) func() []choice {
	return func(m *Model) func() []choice {
		store, currentID, clock := m.saver.store, m.id, m.clock
		return func() []choice { return sessionChoices(store, currentID, command, clock()) }
	}
}

// chosenSession is the conversation chosen with Up or Down in a list, or "".
func (m *Model) chosenSession() (id string) {
	c, _ := valueCommand(m.editor.text)
	if c == nil || c.name != "sessions" && c.name != "resume" || m.menu.text != m.editor.text ||
		m.chosen() == nil {
		return ""
	}
	return m.chosen().session
}

// sessionChoices are all saved conversations except one, for a command.
func sessionChoices(store records.Store, except, command string, now time.Time) []choice {
	var all []choice
	for _, k := range savedChats(store) {
		if k.ID != except {
			text, s := k.words(), k.summary()
			all = append(all, choice{text: command + k.ID, name: s.Name, session: k.ID,
				columns: []string{ago(k.Changed, now), formatCount(s.Questions, "question"),
					term.Clean(k.Model), k.ID},
				matches: func(word string) bool { return strings.Contains(text, word) }})
		}
	}
	return all
}
