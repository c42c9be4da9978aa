// The list of saved conversations: typing searches it, and a chosen one is opened, renamed, deleted
// or exported.
//
// What must stay true: letters belong to the search until Up or Down chose a row; a conversation
// open in another chat is not changed; files and records are accessed outside Update only.

package chat

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/ui/chat/term"
)

const noHistory = "This chat keeps nothing (--no-history)."

const sessionsShown = 30

// sessions lists the saved conversations that contain all words: in the menu, or as lines in plain
// mode.
func (m *Model) sessions(words string) tea.Cmd {
	if m.saver.store == nil {
		return m.showNotice(noHistory)
	}
	if !m.plain {
		m.editor.set("/sessions " + words)
		switch {
		case !m.menu.loaded: // not loaded yet
		case len(m.menu.values) == 0:
			m.note("No other conversation is saved yet.")
		case len(m.choices()) == 0:
			m.note(fmt.Sprintf("No conversation contains %q (%d searched).", words,
				len(m.menu.values)))
		}
		return nil
	}
	return m.runAsync(func() outcome {
		all := filterChoices(sessionChoices(m.saver.store, "", "/resume ", m.clock()), words)
		var rows []line
		for _, c := range all[:min(len(all), sessionsShown)] {
			rows = append(rows, plainLine(c.session,
				strings.Join(append([]string{c.name}, c.columns[:2]...), " · ")))
		}
		rows = append(rows, styledLine(term.Dim, formatCount(len(all), "conversation")+" found. "+
			"/sessions WORDS searches them, /resume ID continues one."))
		return func(m *Model) tea.Cmd { return m.appendEntry(&block{lines: rows}) }
	})
}

// resume continues a saved conversation.
func (m *Model) resume(name string) tea.Cmd {
	if m.saver.store == nil {
		return m.showNotice(noHistory)
	}
	if name == "" {
		return m.showError("/resume needs an ID or a name. /sessions lists them.")
	}
	m.save()
	currentID, claimed := m.id, m.claiming
	return m.runAsync(func() outcome {
		m.saver.flush()
		<-claimed // the previous one may be the same
		k, err := find(m.saver.store, name)
		if err != nil {
			return errorOutcome(err)
		}
		r := m.claim(k, currentID)
		return func(m *Model) tea.Cmd {
			m.tools.markStale()
			m.restore(r)
			return nil
		}
	})
}

func (m *Model) rename(name string) tea.Cmd {
	if name == "" {
		return m.showError("/rename needs a name, for example /rename Trip to Lisbon.")
	}
	m.name = term.Clean(name)
	m.save()
	return m.note("This conversation is called " + m.name + " now.")
}

// A textPrompt asks for a text in the editor and keeps its previous content.
type textPrompt struct {
	label, draft string
	take         func(m *Model, text string) tea.Cmd
}

// askFor asks for a text; Enter accepts it, Esc cancels.
func (m *Model) askFor(label, text string, take func(m *Model, text string) tea.Cmd) tea.Cmd {
	m.textPrompt = &textPrompt{label, m.editor.text, take}
	m.editor.set(text)
	return nil
}

func (m *Model) answerPrompt(accepted bool) tea.Cmd {
	p, text := m.textPrompt, strings.TrimSpace(m.editor.text)
	m.textPrompt = nil
	m.editor.set(p.draft)
	if !accepted || text == "" {
		return nil
	}
	return p.take(m, text)
}

// listKey handles a key for the chosen conversation, and reports whether it did.
func (m *Model) listKey(name string) (tea.Cmd, bool) {
	id := m.chosenSession()
	if id == "" {
		return nil, false
	}
	called := m.chosen().name
	switch name {
	case "d", "delete":
		return m.remove(id), true
	case "r":
		return m.askFor("New name: Enter renames, Esc keeps the old one", called,
			func(m *Model, name string) tea.Cmd { return m.renameOther(id, name) }), true
	case "e":
		file := strings.Join(strings.FieldsFunc(strings.ToLower(called), notWord), "-") + ".md"
		return m.askFor("Export to a .md, .txt or .json file: Enter writes it, Esc does not", file,
			func(m *Model, path string) tea.Cmd {
				return m.exportTo(path, func() (*savedChat, error) {
					return find(m.saver.store, id)
				})
			}), true
	}
	return nil, false
}

func (m *Model) renameOther(id, name string) tea.Cmd {
	places := m.stores()
	return m.runAsync(func() outcome {
		k, err := find(places.Store, id)
		if err == nil {
			err = places.whileClosed(k, func() error {
				k.Name = term.Clean(name)
				m.saver.queue(k)
				m.saver.flush()
				return places.Store.Unsaved(records.KindChat, k.ID)
			})
		}
		return func(m *Model) tea.Cmd {
			if err != nil {
				m.showError("The conversation was not renamed: " + err.Error() + ".")
			} else {
				m.note(fmt.Sprintf("It is called %q now.", k.Name))
			}
			return m.refreshList()
		}
	})
}

func (m *Model) refreshList() tea.Cmd {
	m.menu.command = ""
	if m.recent == nil {
		return m.loadMenu()
	}
	return tea.Batch(m.loadMenu(), m.readRecent())
}

// ExportName refuses a file name with an unsupported extension.
func ExportName(path string) error {
	ext := strings.ToLower(filepath.Ext(path))
	if slices.Contains([]string{"", ".md", ".markdown", ".txt", ".json"}, ext) {
		return nil
	}
	return fmt.Errorf("%s files cannot be written. Use .md, .txt or .json", ext)
}

func (m *Model) export(path string) tea.Cmd {
	if path == "" {
		return m.showError("/export needs a file. Type /export chat.md or /export chat.json.")
	}
	k := m.snapshot()
	return m.exportTo(path, func() (*savedChat, error) { return k, nil })
}

// exportTo writes a conversation to a file, which must be new or written by this chat before: every
// branch as JSON if the name ends in .json, else the visible branch as markdown.
func (m *Model) exportTo(path string, read func() (*savedChat, error)) tea.Cmd {
	if err := ExportName(path); err != nil {
		return m.showError(sentence(err.Error()))
	}
	path = filepath.Clean(expandHome(path))
	isOurs := m.saved[path]
	return m.runAsync(func() outcome {
		if _, err := os.Lstat(path); !isOurs && err == nil {
			return errorOutcome(fmt.Errorf("%s exists. /export does not overwrite a file that "+
				"this chat has not written", path))
		}
		k, err := read()
		if err == nil {
			s := k.summary()
			text := []byte(s.Markdown())
			if strings.EqualFold(filepath.Ext(path), ".json") {
				text, err = s.Document()
				text = append(text, '\n')
			}
			err = errors.Join(err, writeFile(path, text, 0o600))
		}
		if err != nil {
			return errorOutcome(fmt.Errorf("export: %w", err))
		}
		return func(m *Model) tea.Cmd {
			m.saved[path] = true
			return m.showNotice("Saved to " + path + ".")
		}
	})
}
