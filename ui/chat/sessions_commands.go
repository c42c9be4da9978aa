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

// Answers of the commands.
type (
	found   struct{ rows []line }
	resumed struct {
		kept    *kept
		of      *kept // what it is a copy of; nil: it is none
		release func()
	}
)

// sessions lists the kept conversations that have all words somewhere: in the menu, where one can
// be chosen, or as lines.
func (m *Model) sessions(words string) tea.Cmd {
	if m.keeper.store == nil {
		m.inform(nothingKept)
		return nil
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
	return m.do(func() tea.Msg {
		all := keptChats(m.keeper.store)
		var rows []line
		hidden := 0
	chats:
		for _, k := range all {
			text := k.words()
			for _, w := range strings.Fields(strings.ToLower(words)) {
				if !strings.Contains(text, w) {
					continue chats
				}
			}
			if len(rows) == sessionsShown {
				hidden++
				continue
			}
			rows = append(rows, line{k.ID, term.Row{{Text: k.about()}}})
		}
		switch {
		case len(all) == 0:
			return failed{errors.New("no conversation is kept yet")}
		case len(rows) == 0:
			return failed{fmt.Errorf("none of %d conversations has %q", len(all), words)}
		case hidden > 0:
			rows = append(rows, line{text: term.Row{{Style: term.Dim,
				Text: fmt.Sprintf("%d more: /sessions WORDS searches them", hidden)}}})
		}
		return found{append(rows, line{text: term.Row{{Text: "/resume ID goes on with one",
			Style: term.Dim}}})}
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
		m.inform(nothingKept)
		return nil
	}
	if name == "" {
		m.complain("/resume needs an ID or a name: /sessions lists them")
		return nil
	}
	m.keep()
	own := m.id
	return m.do(func() tea.Msg {
		m.keeper.flush()
		k, err := find(m.keeper.store, name)
		if err != nil {
			return failed{err}
		}
		return m.claim(k, own)
	})
}

// rename names the conversation.
func (m *Model) rename(name string) tea.Cmd {
	if name == "" {
		m.complain("/rename needs a name")
		return nil
	}
	m.name = term.Clean(name)
	m.keep()
	m.note("this conversation is called " + m.name)
	return nil
}

// export writes the conversation to a file, which must be new or one that this chat has written:
// as JSON where its name ends so, with every branch, else the branch on the screen as markdown.
func (m *Model) export(path string) tea.Cmd {
	if path == "" {
		m.complain("/export needs the name of a file, such as /export chat.md or chat.json")
		return nil
	}
	path = filepath.Clean(fromHome(path))
	text, err := []byte(m.conversation.document(m.options.Model.ID(), m.system)), error(nil)
	if strings.EqualFold(filepath.Ext(path), ".json") {
		text, err = json.MarshalIndent(m.snapshot(), "", "  ")
		text = append(text, '\n')
	}
	if err != nil {
		m.complain("export: " + err.Error())
		return nil
	}
	own := m.saved[path]
	return m.do(func() tea.Msg {
		if _, err := os.Lstat(path); !own && err == nil {
			return failed{fmt.Errorf("%s exists: /export does not overwrite a file that this chat "+
				"has not written", path)}
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			return failed{fmt.Errorf("export: %w", err)}
		}
		if err := writeFile(path, text, 0o644); err != nil {
			return failed{fmt.Errorf("export: %w", err)}
		}
		return savedTo(path)
	})
}
