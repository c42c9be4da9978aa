// Earlier questions, for Up and Down and for Ctrl+R, which searches them as shells do.

package chat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	tea "github.com/charmbracelet/bubbletea"
)

// The history file has its version, then one JSON string a line, oldest first. It is bounded,
// readable by its owner only, and replaced atomically. Unreadable lines are skipped. A file of a
// newer version is neither read nor replaced.
const (
	historyVersion = 1
	historyEntries = 1000
	historyBytes   = 1 << 20
	historyEntry   = 64 << 10 // longer questions are not stored
)

// A history is the list that Up and Down go through.
type history struct {
	entries []string // oldest first
	pos     int      // len(entries): the draft
	draft   string
	file    historyFile
}

func newHistory(path string) *history {
	h := &history{file: historyFile{path: path}}
	h.entries = h.file.read()
	h.pos = len(h.entries)
	return h
}

// isShowing reports whether the shown text is an earlier question.
func (h *history) isShowing(text string) bool {
	return h.pos < len(h.entries) && h.entries[h.pos] == text
}

// older and newer return the text to show instead; ok is false at either end.
func (h *history) older(text string) (string, bool) {
	if h.pos == 0 {
		return "", false
	}
	if h.pos == len(h.entries) {
		h.draft = text
	}
	h.pos--
	return h.entries[h.pos], true
}

func (h *history) newer() (string, bool) {
	if h.pos >= len(h.entries) {
		return "", false
	}
	h.pos++
	if h.pos == len(h.entries) {
		return h.draft, true
	}
	return h.entries[h.pos], true
}

// add appends a question and returns to the draft. It reports whether the file needs it.
func (h *history) add(text string) bool {
	h.draft = ""
	fresh := len(h.entries) == 0 || h.entries[len(h.entries)-1] != text
	if fresh {
		h.entries = bound(append(h.entries, text))
	}
	h.pos = len(h.entries)
	return fresh && h.file.path != ""
}

// bound drops the oldest entries beyond the limits.
func bound(entries []string) []string {
	size, from := 0, len(entries)
	for from > 0 && len(entries)-from < historyEntries {
		size += len(entries[from-1]) + 3
		if size > historyBytes {
			break
		}
		from--
	}
	return entries[from:]
}

// A historyFile may be shared by several chats; each reads it again before it adds a line.
type historyFile struct {
	path       string
	versionErr error // set if a newer ossrun wrote the file

	mu      sync.Mutex
	pending []string // to be written, oldest first
	writing sync.Mutex
}

// historyHead is the first line; files without one are older than versions.
type historyHead struct {
	Version int `json:"ossrun history"`
}

func (f *historyFile) read() []string {
	if f.path == "" {
		return nil
	}
	data, err := os.ReadFile(f.path)
	if err != nil {
		return nil
	}
	var entries []string
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 8*historyEntry)
	for lines.Scan() {
		var s string
		var h historyHead
		if json.Unmarshal(lines.Bytes(), &s) == nil && s != "" {
			entries = append(entries, s)
		} else if json.Unmarshal(lines.Bytes(), &h) == nil && h.Version > historyVersion {
			f.versionErr = fmt.Errorf("earlier questions stay where they are: a newer ossrun "+
				"wrote %s, in version %d, and this one knows version %d", f.path, h.Version,
				historyVersion)
			return nil
		}
	}
	return bound(entries)
}

// queue adds a question for flush, without waiting for the disk.
func (f *historyFile) queue(text string) {
	if len(text) > historyEntry {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = append(f.pending, text)
}

func (f *historyFile) flush() error {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.mu.Lock()
	pending := f.pending
	f.pending = nil
	f.mu.Unlock()
	if len(pending) == 0 {
		return nil
	}
	return f.write(bound(append(f.read(), pending...)))
}

func (f *historyFile) write(entries []string) error {
	var b bytes.Buffer
	encode := json.NewEncoder(&b)
	encode.SetEscapeHTML(false)
	err := encode.Encode(historyHead{historyVersion})
	for _, e := range entries {
		err = errors.Join(err, encode.Encode(e))
	}
	if err = errors.Join(err, f.versionErr); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	return writeFile(f.path, b.Bytes(), 0o600)
}

// writeFile replaces a file atomically.
func writeFile(path string, data []byte, mode fs.FileMode) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if closed := tmp.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// A search is in progress: the editor shows the matching entry.
type search struct {
	query  string
	index  int    // of the entry; len(entries): none yet
	failed bool   // the last step had no match
	draft  string // the text before the search
}

// match is the latest entry before end that contains query, or -1.
func (h *history) match(query string, end int) int {
	for i := min(end, len(h.entries)) - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(h.entries[i]), strings.ToLower(query)) {
			return i
		}
	}
	return -1
}

// startSearch begins a search.
func startSearch(m *Model) tea.Cmd {
	s := &search{index: len(m.input.history.entries), draft: m.input.editor.text}
	m.modes.open(s)
	return m.note(s.note())
}

// show shows the latest match before end.
func (s *search) show(in *input, end int) {
	i := in.history.match(s.query, end)
	if s.failed = i < 0; i >= 0 {
		s.index = i
		in.editor.set(in.history.entries[i])
	}
}

func (s *search) note() string {
	keys := "Ctrl+R older, Enter takes it, Esc leaves"
	if s.failed {
		keys = "nothing older has this, Esc leaves"
	}
	return "history: " + s.query + "▏ " + keys
}

func (s *search) key(m *Model, k tea.KeyMsg, name string) (cmd tea.Cmd, taken bool) {
	end := len(m.input.history.entries)
	switch {
	case name == "ctrl+r":
		end = s.index
	case name == "enter" || name == "tab":
		m.modes.close(searchRank)
		return nil, true
	case name == "esc" || name == "ctrl+c" || name == "ctrl+g":
		m.modes.close(searchRank)
		m.input.editor.set(s.draft)
		return nil, true
	case name == "backspace":
		if runes := []rune(s.query); len(runes) > 0 {
			s.query = string(runes[:len(runes)-1])
		}
	case (k.Type == tea.KeyRunes || k.Type == tea.KeySpace) && !k.Alt:
		s.query += string(k.Runes)
	default:
		m.modes.close(searchRank)
		return nil, false
	}
	s.show(&m.input, end)
	return m.note(s.note()), true
}
