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
	text := m.input.editor.text
	if m.modes.prompt() != nil {
		return nil
	}
	if text == "" {
		return m.recentChoices()
	}
	if rows := m.input.fileChoices(); len(rows) > 0 {
		return rows
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
	all := m.input.menu.values
	if c.values != nil {
		all = c.values(m)
	} else if m.input.menu.command != c.name {
		return nil
	}
	return filterChoices(all, words)
}

func filterChoices(all []choice, words string) []choice {
	terms := strings.Fields(strings.ToLower(words))
	return slices.DeleteFunc(slices.Clone(all), func(row choice) bool {
		return slices.ContainsFunc(terms, func(w string) bool { return !row.matches(w) })
	})
}

// loadMenu loads the values of a command once its name is typed.
func (m *Model) loadMenu() tea.Cmd {
	c, _ := valueCommand(m.input.editor.text)
	n := &m.input.menu
	if c == nil || c.load == nil || m.plain {
		*n = menu{text: n.text, index: n.index, loads: n.loads}
		return nil
	}
	if n.command == c.name {
		return nil
	}
	n.command, n.values, n.loaded = c.name, nil, false
	n.loads++
	read, load := c.load(m), n.loads
	return m.background.run(func() tea.Msg { return menuLoaded{c.name, load, read()} })
}

type menuLoaded struct {
	command string
	load    int
	values  []choice
}

func (l menuLoaded) apply(m *Model) tea.Cmd {
	if menu := &m.input.menu; menu.command == l.command && menu.loads == l.load {
		menu.values, menu.loaded = l.values, true
	}
	return nil
}

// chosen is the row that Enter takes, or nil.
func (i *input) chosen(rows []choice) *choice {
	text, index := i.editor.text, i.menu.index
	if i.menu.text != text { // it has changed since
		index = -1
		if c, _ := valueCommand(text); c != nil && c.pickFirst || text == "" {
			index = 0
		}
	}
	if index < 0 || index >= len(rows) {
		return nil
	}
	return &rows[index]
}

// moveChoice moves through the menu, and reports whether there is one.
func (i *input) moveChoice(rows []choice, delta int) bool {
	text := i.editor.text
	if len(rows) == 0 || i.history.isShowing(text) {
		return false
	}
	index := -1
	if i.menu.text == text {
		index = i.menu.index
	} else if i.chosen(rows) != nil {
		index = 0
	}
	switch index += delta; {
	case text == "" && (index < 0 || index >= len(rows)):
		return false // earlier questions are above these
	case index < 0:
		index = len(rows) - 1
	case index >= len(rows):
		index = 0
	}
	i.menu.text, i.menu.index = text, index
	return true
}

// takeChoice runs or completes the chosen row.
func (m *Model) takeChoice(c choice) tea.Cmd {
	m.input.editor.set(c.text)
	if strings.HasSuffix(c.text, " ") { // an argument follows, or more of a message
		return nil
	}
	if c.session == "" { // IDs of conversations are not worth a history entry
		m.remember(c.text)
	}
	name, argument, _ := parseCommand(c.text)
	return m.runCommand(name, argument)
}

func (i *input) complete(rows []choice) {
	text := i.editor.text
	c, _ := valueCommand(text)
	if chosen := i.chosen(rows); chosen != nil {
		text = chosen.text
	} else if len(rows) > 0 && (c != nil || !strings.Contains(text, " ")) {
		text = rows[0].text
	}
	i.editor.set(text)
}

// menuRows is the menu in at most limit rows, including the chosen one.
func (i *input) menuRows(s *screen, rows []choice, limit int) []term.Row {
	if i.editor.text == "" { // the transcript shows a new chat's choices
		return nil
	}
	chosen, index := i.chosen(rows), 0
	for n := range rows {
		if chosen != nil && rows[n].text == chosen.text {
			index = n
		}
	}
	blank := s.indent()
	var keys []term.Row
	c, _ := valueCommand(i.editor.text)
	if c != nil && c.name == "commands" {
		limit = max(s.height-8, limit)
	}
	if c != nil && c.name == "sessions" && len(rows) > 0 && limit > 2 {
		limit = max(s.height-8, limit) - 1
		text := "Type to search · Down chooses · Enter opens · Esc closes"
		if i.chosenSession(rows) != nil {
			text = "Enter opens · r renames · d deletes · e exports · Esc closes"
		}
		keys = []term.Row{{{Text: blank}, {Style: term.Dim,
			Text: term.Cut(fmt.Sprintf("%s · %d of %d", text, index+1, len(rows)),
				s.textWidth())}}}
	}
	above, below := 0, len(rows)
	if below > limit {
		limit = max(limit-1, 1)
		above = min(max(index-limit+1, 0), len(rows)-limit)
		below = above + limit
	}
	visible := term.Prefix(choiceRows(rows[above:below], chosen, s.width-s.margin()),
		term.Span{Text: blank}, term.Span{Text: blank})
	if numHidden := len(rows) - len(visible); numHidden > 0 {
		visible = append(visible, term.Row{{Style: term.Dim, Text: term.Cut(fmt.Sprintf(
			"%s… %d more: Up and Down, or type on", blank, numHidden), s.width)}})
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
	most := width - len([]rune(prompt)) // of names alone, such as files
	if len(wide) > 0 {
		most = max(width*45/100, 25)
	}
	name = min(name, most)
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

func hasPrefix(value string) func(string) bool {
	return func(word string) bool { return strings.HasPrefix(strings.ToLower(value), word) }
}

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
	for _, e := range m.talk.conversation.questions() {
		texts = append(texts, e.question)
	}
	return numberedChoices("edit", texts)
}

func codeValues(m *Model) []choice {
	return numberedChoices("copy", m.talk.conversation.current.code())
}

func branchValues(m *Model) []choice {
	var texts []string
	if fork := m.talk.conversation.fork(); fork != nil {
		for _, e := range *m.talk.conversation.siblings(fork) {
			_, length := e.end()
			texts = append(texts, firstLine(e.question)+" ("+term.Count(length, "question")+")")
		}
	}
	return numberedChoices("branch", texts)
}

func modelValues(m *Model) func() []choice {
	list := m.options.Models
	return func() (all []choice) {
		if list == nil {
			return nil
		}
		for _, info := range list(m.ctx) {
			name := term.Clean(info.ID)
			all = append(all, choice{text: "/model " + name, name: name,
				columns: []string{term.Number(info.ContextLength) + " tokens of context"},
				matches: func(word string) bool { return strings.Contains(name, word) }})
		}
		return all
	}
}

// sessionsFor are the saved conversations for a command, except the visible one.
func sessionsFor(command string) func(m *Model) func() []choice {
	return func(m *Model) func() []choice {
		store, currentID, clock := m.record.saver.store, m.record.id, m.clock
		return func() []choice { return sessionChoices(store, currentID, command, clock()) }
	}
}

// chosenSession is the conversation chosen with Up or Down in a list, or nil.
func (i *input) chosenSession(rows []choice) *choice {
	c, _ := valueCommand(i.editor.text)
	if c == nil || c.name != "sessions" && c.name != "resume" || i.menu.text != i.editor.text {
		return nil
	}
	if chosen := i.chosen(rows); chosen != nil && chosen.session != "" {
		return chosen
	}
	return nil
}

func sessionChoices(store records.Store, except, command string, now time.Time) []choice {
	var all []choice
	for _, k := range savedChats(store) {
		if k.ID != except {
			text, s := k.words(), k.summary()
			all = append(all, choice{text: command + k.ID, name: s.Name, session: k.ID,
				columns: []string{ago(k.Changed, now), term.Count(s.Questions, "question"),
					term.Clean(k.Model), k.ID},
				matches: func(word string) bool { return strings.Contains(text, word) }})
		}
	}
	return all
}
