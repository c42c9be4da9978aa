// The commands about kept conversations: list and search, go on with one, name, write to a file.

package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/ui/chat/term"
)

const nothingKept = "this chat keeps nothing (--no-history)"

// sessionsShown is how many conversations /sessions lists.
const sessionsShown = 30

// A resumed conversation is one that this chat owns.
type resumed struct {
	kept    *kept
	of      *kept // what it is a copy of; nil: it is none
	release func()
}

// sessions lists the kept conversations that have all words somewhere: in the menu, where one can
// be chosen, or as lines.
func (m *Model) sessions(words string) tea.Cmd {
	if m.keeper.store == nil {
		return m.inform(nothingKept)
	}
	if !m.plain {
		m.editor.set("/sessions " + words)
		switch {
		case !m.menu.read: // they are about to be
		case len(m.menu.values) == 0:
			m.note("no other conversation is kept yet")
		case len(m.choices()) == 0:
			m.note(fmt.Sprintf("none of %d conversations has %q", len(m.menu.values), words))
		}
		return nil
	}
	return m.do(func() outcome {
		all := sessionChoices(m.keeper.store, "")
		have := having(all, words)
		switch {
		case len(all) == 0:
			return failed(errors.New("no conversation is kept yet"))
		case len(have) == 0:
			return failed(fmt.Errorf("none of %d conversations has %q", len(all), words))
		}
		var rows []line
		for _, c := range have[:min(len(have), sessionsShown)] {
			rows = append(rows, plainLine(c.name, c.does))
		}
		if hidden := len(have) - len(rows); hidden > 0 {
			rows = append(rows, styledLine(term.Dim,
				fmt.Sprintf("%d more: /sessions WORDS searches them", hidden)))
		}
		rows = append(rows, styledLine(term.Dim, "/resume ID goes on with one"))
		return func(m *Model) tea.Cmd { return m.say(&block{lines: rows}) }
	})
}

func questions(n int) string {
	if n == 1 {
		return "1 question"
	}
	return fmt.Sprintf("%d questions", n)
}

// resume goes on with a kept conversation; "" is the latest other one.
func (m *Model) resume(name string) tea.Cmd {
	if m.keeper.store == nil {
		return m.inform(nothingKept)
	}
	if name == "" {
		return m.complain("/resume needs an ID or a name: /sessions lists them")
	}
	m.keep()
	own := m.id
	return m.do(func() outcome {
		m.keeper.flush()
		k, err := find(m.keeper.store, name)
		if err != nil {
			return failed(err)
		}
		r := m.claim(k, own)
		return func(m *Model) tea.Cmd {
			m.tools.leave()
			m.restore(r)
			return nil
		}
	})
}

func (m *Model) rename(name string) tea.Cmd {
	if name == "" {
		return m.complain("/rename needs a name")
	}
	m.name = term.Clean(name)
	m.keep()
	return m.note("this conversation is called " + m.name)
}

// export writes the conversation to a file, which must be new or one that this chat has written:
// as JSON where its name ends so, with every branch, else the branch on the screen as markdown.
func (m *Model) export(path string) tea.Cmd {
	if path == "" {
		return m.complain("/export needs the name of a file, such as /export chat.md or chat.json")
	}
	path = filepath.Clean(fromHome(path))
	text, err := []byte(m.conversation.document(m.options.Model.ID(), m.system)), error(nil)
	if strings.EqualFold(filepath.Ext(path), ".json") {
		text, err = json.MarshalIndent(m.snapshot(), "", "  ")
		text = append(text, '\n')
	}
	if err != nil {
		return m.complain("export: " + err.Error())
	}
	own := m.saved[path]
	return m.do(func() outcome {
		if _, err := os.Lstat(path); !own && err == nil {
			return failed(fmt.Errorf("%s exists: /export does not overwrite a file that this chat "+
				"has not written", path))
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			return failed(fmt.Errorf("export: %w", err))
		}
		if err := writeFile(path, text, 0o644); err != nil {
			return failed(fmt.Errorf("export: %w", err))
		}
		return func(m *Model) tea.Cmd {
			m.saved[path] = true
			return m.inform("saved to " + path)
		}
	})
}
