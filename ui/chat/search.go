// Searching what was typed before (Ctrl+R), as shells do.

package chat

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"
)

// A search is under way: the editor shows the entry that was found.
type search struct {
	query string
	at    int    // of the entry; len(entries): none yet
	none  bool   // the last step found nothing
	draft string // what was typed before
}

// match is the latest entry before one that has the words, -1 for none.
func (h *history) match(query string, before int) int {
	for i := min(before, len(h.entries)) - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(h.entries[i]), strings.ToLower(query)) {
			return i
		}
	}
	return -1
}

// find begins a search, or goes to the next older entry.
func (m *Model) find() {
	if m.searching == nil {
		m.searching = &search{at: len(m.history.entries), draft: m.editor.text}
	} else {
		m.hit(m.searching.at)
	}
	m.sayFound()
}

func (m *Model) hit(before int) {
	at := m.history.match(m.searching.query, before)
	if m.searching.none = at < 0; at >= 0 {
		m.searching.at = at
		m.editor.set(m.history.entries[at])
	}
}

func (m *Model) sayFound() {
	keys := "Ctrl+R older, Enter takes it, Esc leaves"
	if m.searching.none {
		keys = "nothing older has this, Esc leaves"
	}
	m.note("history: " + m.searching.query + "▏ " + keys)
}

// searchKey takes a key while a search is under way, and reports whether it belongs to it.
func (m *Model) searchKey(k tea.KeyMsg) bool {
	s := m.searching
	switch name := k.String(); {
	case name == "ctrl+r":
		m.find()
	case name == "enter" || name == "tab":
		m.searching = nil
	case name == "esc" || name == "ctrl+c" || name == "ctrl+g":
		m.searching = nil
		m.editor.set(s.draft)
	case name == "backspace":
		if runes := []rune(s.query); len(runes) > 0 {
			s.query = string(runes[:len(runes)-1])
		}
		m.hit(len(m.history.entries))
		m.sayFound()
	case (k.Type == tea.KeyRunes || k.Type == tea.KeySpace) && !k.Alt:
		s.query += string(k.Runes)
		m.hit(len(m.history.entries))
		m.sayFound()
	default:
		m.searching = nil
		return false
	}
	return true
}
