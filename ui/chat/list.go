// The list of saved conversations: typing searches it, and a chosen one is opened, renamed, deleted
// or exported. Deleting takes its record, the sampled turns, the typed lines, and the pictures made
// by tools.
//
// What must stay true: letters belong to the search until Up or Down chose a row; a conversation
// open in another chat is not changed; files and records are accessed outside Update only; nothing
// deleted can be read in those files afterwards, and a pending snapshot does not restore it.

package chat

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/term"
)

const noHistory = "This chat keeps nothing (--no-history)."

const sessionsShown = 30

// listSessions lists the saved conversations that contain all words: in the menu, or as lines in
// plain mode.
func listSessions(m *Model, words string) tea.Cmd {
	if m.record.saver.store == nil {
		return m.showNotice(noHistory)
	}
	if !m.plain {
		m.input.editor.set("/sessions " + words)
		switch menu := &m.input.menu; {
		case !menu.loaded: // not loaded yet
		case len(menu.values) == 0:
			m.note("No other conversation is saved yet.")
		case len(m.choices()) == 0:
			m.note(fmt.Sprintf("No conversation contains %q (%d searched).", words,
				len(menu.values)))
		}
		return nil
	}
	return m.background.run(func() tea.Msg {
		all := filterChoices(sessionChoices(m.record.saver.store, "", "/resume ", m.clock()), words)
		var rows pageRows
		for _, c := range all[:min(len(all), sessionsShown)] {
			rows = append(rows, plainLine(c.session,
				strings.Join(append([]string{c.name}, c.columns[:2]...), " · ")))
		}
		return append(rows, styledLine(term.Dim, term.Count(len(all), "conversation")+" found. "+
			"/sessions WORDS searches them, /resume ID continues one."))
	})
}

func resumeSession(m *Model, name string) tea.Cmd {
	if m.record.saver.store == nil {
		return m.showNotice(noHistory)
	}
	if name == "" {
		return m.showError("/resume needs an ID or a name. /sessions lists them.")
	}
	m.save()
	currentID, claimed := m.record.id, m.record.claiming
	return m.background.run(func() tea.Msg {
		m.record.saver.flush()
		<-claimed // the previous one may be the same
		k, err := find(m.record.saver.store, name)
		if err != nil {
			return failure{err}
		}
		return m.record.claim(k, currentID)
	})
}

func (r claimedChat) apply(m *Model) tea.Cmd {
	m.tools.markStale()
	m.restore(r)
	return m.returnToModel(r.chat)
}

func renameSession(m *Model, name string) tea.Cmd {
	if name == "" {
		return m.showError("/rename needs a name, for example /rename Trip to Lisbon.")
	}
	m.record.name = term.Clean(name)
	m.save()
	return m.note("This conversation is called " + m.record.name + " now.")
}

// A textPrompt asks for a text about a conversation in the editor and keeps its previous content.
type textPrompt struct {
	label, draft string
	id           string // of the conversation
	take         func(m *Model, id, text string) tea.Cmd
}

// askFor asks for a text; Enter accepts it, Esc cancels.
func askFor(m *Model, label, text, id string, take func(*Model, string, string) tea.Cmd) tea.Cmd {
	m.modes.open(&textPrompt{label, m.input.editor.text, id, take})
	m.input.editor.set(text)
	return nil
}

func (p *textPrompt) key(m *Model, _ tea.KeyMsg, name string) (tea.Cmd, bool) {
	if name != "enter" && name != "esc" && name != "ctrl+c" {
		return nil, false
	}
	text := strings.TrimSpace(m.input.editor.text)
	m.modes.close(promptRank)
	m.input.editor.set(p.draft)
	if name != "enter" || text == "" {
		return nil, true
	}
	return p.take(m, p.id, text), true
}

// listKey handles a key for the chosen conversation, and reports whether it did.
func listKey(m *Model, name string) (cmd tea.Cmd, ok bool) {
	chosen := m.input.chosenSession(m.choices())
	if chosen == nil {
		return nil, false
	}
	switch name {
	case "d", "delete":
		return deleteSession(m, chosen.session), true
	case "r":
		return askFor(m, "New name: Enter renames, Esc keeps the old one", chosen.name,
			chosen.session, renameOther), true
	case "e":
		file := strings.Join(strings.FieldsFunc(strings.ToLower(chosen.name), notWord), "-") + ".md"
		return askFor(m, "Export to a .md, .txt or .json file: Enter writes it, Esc does not", file,
			chosen.session, exportOther), true
	}
	return nil, false
}

func renameOther(m *Model, id, name string) tea.Cmd {
	places := m.stores()
	return m.background.run(func() tea.Msg {
		k, err := find(places.Store, id)
		if err == nil {
			err = places.whileClosed(k, func() error {
				k.Name = term.Clean(name)
				m.record.saver.queue(k)
				m.record.saver.flush()
				return places.Store.Unsaved(records.KindChat, k.ID)
			})
		}
		if err != nil {
			return sessionChanged{"The conversation was not renamed: " + err.Error() + ".", true}
		}
		return sessionChanged{fmt.Sprintf("It is called %q now.", k.Name), false}
	})
}

// sessionChanged says how renaming or deleting a saved conversation ended.
type sessionChanged struct {
	text   string
	failed bool
}

func (c sessionChanged) apply(m *Model) tea.Cmd {
	if c.failed {
		m.showError(c.text)
	} else {
		m.note(c.text)
	}
	m.input.menu.command = ""
	if m.input.recent == nil {
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

func exportVisible(m *Model, path string) tea.Cmd {
	if path == "" {
		return m.showError("/export needs a file. Type /export chat.md or /export chat.json.")
	}
	k := m.snapshot()
	return export(m, path, func() (*savedChat, error) { return k, nil })
}

func exportOther(m *Model, id, path string) tea.Cmd {
	store := m.record.saver.store
	return export(m, path, func() (*savedChat, error) { return find(store, id) })
}

// export writes a conversation to a file, which must be new or written by this chat before: every
// branch as JSON if the name ends in .json, else the visible branch as markdown.
func export(m *Model, path string, read func() (*savedChat, error)) tea.Cmd {
	if err := ExportName(path); err != nil {
		return m.showError(sentence(err.Error()))
	}
	path = filepath.Clean(expandHome(path))
	isOurs := m.record.exported[path]
	return m.background.run(func() tea.Msg {
		if _, err := os.Lstat(path); !isOurs && err == nil {
			return failure{fmt.Errorf("%s exists. /export does not overwrite a file that "+
				"this chat has not written", path)}
		}
		k, err := read()
		if err == nil {
			_, err = os.Stat(filepath.Dir(path)) // a folder is not made
		}
		if err == nil {
			s := k.summary()
			text := []byte(s.Markdown())
			if strings.EqualFold(filepath.Ext(path), ".json") {
				text, err = s.Document()
				text = append(text, '\n')
			}
			err = errors.Join(err, store.WriteFile(path, text, 0o600))
		}
		if err != nil {
			return failure{fmt.Errorf("export: %w", err)}
		}
		return exportedFile(path)
	})
}

type exportedFile string // its path

func (e exportedFile) apply(m *Model) tea.Cmd {
	m.record.exported[string(e)] = true
	return m.showNotice("Saved to " + string(e) + ".")
}

// Stores are the stores of conversations, as in a chat's options.
type Stores struct {
	Store    records.Store
	History  string // HistoryPath
	Pictures string
	Claim    func(id string) (release func(), ok bool)
}

func (m *Model) stores() Stores {
	o := m.options
	return Stores{m.record.saver.store, o.HistoryPath, o.Pictures, o.Claim}
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
		err = errors.Join(err, p.Store.Change(func(c *records.Change) error {
			session.Forget(c, "", append(e.Messages, session.AssistantAnswer(e.Summary)))
			return nil
		}))
		for _, part := range e.Parts {
			for _, f := range part.Files {
				if p.Pictures != "" && filepath.Dir(f) == filepath.Clean(p.Pictures) {
					err = errors.Join(err, store.IgnoreMissing(os.Remove(f)))
				}
			}
		}
	}
	history := historyFile{path: p.History}
	return errors.Join(err, history.forget(typed))
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

func exclude(all []string, lines map[string]bool) []string {
	return slices.DeleteFunc(slices.Clone(all),
		func(text string) bool { return lines[strings.TrimSpace(text)] })
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

// A confirmation asks before something that cannot be undone: y is yes, any other key no.
type confirmation struct {
	text    string
	yes, no string // what the keys do
	refused string // the note after a no
	do      func(m *Model) tea.Cmd
}

// confirmDeletion asks whether a conversation is deleted; nil: the visible one.
func (m *Model) confirmDeletion(text string, k *savedChat) tea.Cmd {
	m.modes.open(&confirmation{text, "deletes", "keeps", "Nothing was deleted.",
		func(m *Model) tea.Cmd {
			if k != nil {
				return eraseChat(m, k, Stores.eraseClosed)
			}
			visible := m.snapshot()
			m.begin()
			return eraseChat(m, visible, Stores.erase)
		}})
	return nil
}

func (c *confirmation) key(m *Model, _ tea.KeyMsg, name string) (tea.Cmd, bool) {
	return c.answer(m, name), true
}

func (c *confirmation) answer(m *Model, key string) tea.Cmd {
	m.modes.close(confirmationRank)
	if key != "y" {
		return m.note(c.refused)
	}
	return c.do(m)
}

func (c *confirmation) rows(s *screen) []term.Row {
	if c == nil {
		return nil
	}
	rows := term.Wrap([]term.Span{{Text: c.text + "  ", Style: term.Bold | term.Yellow},
		{Text: "y", Style: term.Bold}, {Text: " " + c.yes + " · any other key " + c.no}},
		max(s.textWidth(), 1))
	margin := term.Span{Text: s.indent()}
	return term.Prefix(rows, margin, margin)
}

// deleteSession is /delete: the conversation on the screen, or another one by its ID or name.
func deleteSession(m *Model, name string) tea.Cmd {
	switch {
	case m.record.saver.store == nil:
		return m.showNotice(noHistory)
	case name != "" && name != m.record.id:
		currentID := m.record.id
		return m.background.run(func() tea.Msg {
			m.record.saver.flush()
			k, err := find(m.record.saver.store, name)
			if err != nil {
				return failure{err}
			}
			return deletionFound{k, k.ID == currentID}
		})
	case len(m.talk.conversation.first) == 0 && len(m.unsent()) == 0:
		return m.note("This conversation is empty.")
	}
	return m.confirmDeletion("Delete this conversation for good?", nil)
}

type deletionFound struct {
	chat    *savedChat
	visible bool
}

func (d deletionFound) apply(m *Model) tea.Cmd {
	if d.visible {
		return deleteSession(m, "")
	}
	return m.confirmDeletion(fmt.Sprintf("Delete %q (%s) for good?", term.Clean(d.chat.Name),
		ago(d.chat.Changed, m.clock())), d.chat)
}

// eraseChat deletes a conversation outside Update, and refreshes an open list.
func eraseChat(m *Model, k *savedChat, erase func(Stores, *savedChat) error) tea.Cmd {
	typed, history := map[string]bool{}, m.input.history
	for _, e := range k.Exchanges {
		typed[strings.TrimSpace(e.Question)] = true
	}
	history.entries = exclude(history.entries, typed)
	history.pos = len(history.entries)
	places := m.stores()
	return m.background.run(func() tea.Msg {
		err := m.record.saver.forget(k.ID, func() error { return erase(places, k) })
		if err != nil {
			return sessionChanged{"The conversation was not deleted: " + err.Error() + ".", true}
		}
		return sessionChanged{fmt.Sprintf("%q was deleted.", term.Clean(k.Name)), false}
	})
}
