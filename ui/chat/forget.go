// Deleting a saved conversation: its record, the sampled turns, the typed lines, and the pictures
// made by tools.
//
// What must stay true: none of it can be read in those files afterwards, and a pending snapshot
// does not restore it; a conversation open in another chat is not deleted.

package chat

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// Stores are the stores of conversations, as in a chat's options.
type Stores struct {
	Store    records.Store
	History  string // HistoryPath
	Pictures string
	Claim    func(id string) (release func(), ok bool)
}

func (m *Model) stores() Stores {
	o := m.options
	return Stores{m.saver.store, o.HistoryPath, o.Pictures, o.Claim}
}

// erase deletes a conversation that no other chat has open.
func (p Stores) erase(k *savedChat) error {
	typed := map[string]bool{}
	for _, text := range k.Queued {
		typed[strings.TrimSpace(text)] = true
	}
	if _, err := p.Store.Delete(records.KindChat, k.ID); err != nil {
		return err
	}
	var err error
	for _, e := range k.Exchanges {
		typed[strings.TrimSpace(e.Question)] = true
		err = errors.Join(err,
			session.Forget(p.Store, append(e.Messages, session.AssistantAnswer(e.Summary))))
		for _, part := range e.Parts {
			for _, f := range part.Files {
				if p.Pictures != "" && filepath.Dir(f) == filepath.Clean(p.Pictures) {
					err = errors.Join(err, ignoreMissing(os.Remove(f)))
				}
			}
		}
	}
	history := historyFile{path: p.History}
	return errors.Join(err, history.forget(typed))
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// eraseClosed is erase, or an error if another chat has the conversation open.
func (p Stores) eraseClosed(k *savedChat) error {
	return p.whileClosed(k, func() error { return p.erase(k) })
}

// whileClosed runs work while no chat has the conversation open or can open it.
func (p Stores) whileClosed(k *savedChat, work func() error) error {
	if p.Claim != nil {
		release, ok := p.Claim(k.ID)
		if !ok {
			return fmt.Errorf("%q is open in another chat. Close that chat first", k.Name)
		}
		defer release()
	}
	return work()
}

// forget removes lines from the file and from the pending writes.
func (f *historyFile) forget(lines map[string]bool) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	f.pending = exclude(f.pending, lines)
	f.mu.Unlock()
	old := f.read()
	remaining := exclude(old, lines)
	if len(remaining) == len(old) {
		return nil
	}
	return f.write(remaining)
}

func exclude(all []string, lines map[string]bool) (rest []string) {
	for _, text := range all {
		if !lines[strings.TrimSpace(text)] {
			rest = append(rest, text)
		}
	}
	return rest
}

// forget runs work, which deletes a conversation, and drops its pending snapshot.
func (k *saver) forget(id string, work func() error) error {
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	delete(k.pending, id)
	k.mu.Unlock()
	return work()
}

// A confirmation is a question above the editor: y is yes, any other key no.
type confirmation struct {
	text string
	yes  func(m *Model) tea.Cmd
}

func (m *Model) confirm(text string, yes func(m *Model) tea.Cmd) tea.Cmd {
	m.confirming = &confirmation{text, yes}
	return nil
}

func (m *Model) answerConfirmation(key string) tea.Cmd {
	c := m.confirming
	if m.confirming = nil; key != "y" {
		return m.note("Nothing was deleted.")
	}
	return c.yes(m)
}

func (m *Model) confirmRows() []term.Row {
	if m.confirming == nil {
		return nil
	}
	rows := term.Wrap([]term.Span{{Text: m.confirming.text + "  ", Style: term.Bold | term.Yellow},
		{Text: "y", Style: term.Bold}, {Text: " deletes · any other key keeps"}},
		max(m.width-2*m.margin(), 1))
	margin := term.Span{Text: strings.Repeat(" ", m.margin())}
	return term.Prefix(rows, margin, margin)
}

// remove is /delete: the conversation on the screen, or another one by its ID or name.
func (m *Model) remove(name string) tea.Cmd {
	switch {
	case m.saver.store == nil:
		return m.showNotice(noHistory)
	case name != "" && name != m.id:
		currentID := m.id
		return m.runAsync(func() outcome {
			m.saver.flush()
			k, err := find(m.saver.store, name)
			switch {
			case err != nil:
				return errorOutcome(err)
			case k.ID == currentID:
				return func(m *Model) tea.Cmd { return m.remove("") }
			}
			return func(m *Model) tea.Cmd { return m.confirmRemoval(k) }
		})
	case len(m.conversation.first) == 0 && len(m.unsent()) == 0:
		return m.note("This conversation is empty.")
	}
	return m.confirm("Delete this conversation for good?", func(m *Model) tea.Cmd {
		deleted := m.snapshot()
		m.begin()
		return m.eraseInBackground(deleted, Stores.erase)
	})
}

func (m *Model) confirmRemoval(k *savedChat) tea.Cmd {
	text := fmt.Sprintf("Delete %q (%s) for good?", term.Clean(k.Name),
		ago(k.Changed, m.clock()))
	return m.confirm(text, func(m *Model) tea.Cmd {
		return m.eraseInBackground(k, Stores.eraseClosed)
	})
}

// eraseInBackground deletes a conversation outside Update, and refreshes an open list.
func (m *Model) eraseInBackground(k *savedChat, erase func(Stores, *savedChat) error) tea.Cmd {
	typed := map[string]bool{}
	for _, e := range k.Exchanges {
		typed[strings.TrimSpace(e.Question)] = true
	}
	m.history.entries = exclude(m.history.entries, typed)
	m.history.pos = len(m.history.entries)
	places := m.stores()
	return m.runAsync(func() outcome {
		err := m.saver.forget(k.ID, func() error { return erase(places, k) })
		return func(m *Model) tea.Cmd {
			if err != nil {
				m.showError("The conversation was not deleted: " + err.Error() + ".")
			} else {
				m.note(fmt.Sprintf("%q was deleted.", term.Clean(k.Name)))
			}
			return m.refreshList()
		}
	})
}
