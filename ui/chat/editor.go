// The input: the editor of the message, and earlier questions, for Up and Down and for Ctrl+R,
// which searches them as shells do.

package chat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// An input is the typed message, and the choices for it.
type input struct {
	editor   editor
	history  *history
	menu     menu
	files    fileList
	recent   []choice // conversations offered at the start; nil: not read
	pastes   []string // long pastes of this conversation, shown as chips
	returned string   // text given back to the editor, as it was then
}

// An editor holds the message in progress. Positions are byte offsets at borders of grapheme
// clusters, so an emoji or an accented letter is one step. Text is cleaned on insertion; rows are
// computed once per text and width.
type editor struct {
	text   string
	cursor int
	column int // the target column of Up and Down, -1: the cursor's

	cached editorRows
}

// editorRows are the wrapped rows of text at width.
type editorRows struct {
	text  string
	width int
	rows  []span
}

type span struct{ start, end int }

func (e *editor) set(text string) {
	e.text = text
	e.move(len(text))
}

// insert inserts typed or pasted text at the cursor, without escape sequences.
func (e *editor) insert(text string) {
	text = term.Clean(ansi.Strip(strings.ReplaceAll(text, "\r\n", "\n")))
	e.text = e.text[:e.cursor] + text + e.text[e.cursor:]
	e.move(e.cursor + len(text))
}

func (e *editor) move(to int) { e.cursor, e.column = to, -1 }

func (e *editor) remove(from, to int) {
	e.text = e.text[:from] + e.text[to:]
	e.move(from)
}

func (e *editor) moveLeft()  { e.move(e.prevCluster(e.cursor)) }
func (e *editor) moveRight() { e.move(e.nextCluster(e.cursor)) }
func (e *editor) wordLeft()  { e.move(e.prevWord()) }
func (e *editor) wordRight() { e.move(e.nextWord()) }
func (e *editor) backspace() { e.remove(e.prevCluster(e.cursor), e.cursor) }
func (e *editor) delete()    { e.remove(e.cursor, e.nextCluster(e.cursor)) }
func (e *editor) home()      { e.move(e.lineStart()) }
func (e *editor) end()       { e.move(e.lineEnd()) }
func (e *editor) newLine()   { e.insert("\n") }

func (e *editor) deleteWordLeft()   { e.remove(e.prevWord(), e.cursor) }
func (e *editor) deleteWordRight()  { e.remove(e.cursor, e.nextWord()) }
func (e *editor) deleteToLineHome() { e.remove(e.lineStart(), e.cursor) }

// deleteToLineEnd deletes to the line's end, or the line break if already there.
func (e *editor) deleteToLineEnd() {
	end := e.lineEnd()
	if end == e.cursor {
		end = e.nextCluster(end)
	}
	e.remove(e.cursor, end)
}

func (e *editor) lineStart() int { return strings.LastIndexByte(e.text[:e.cursor], '\n') + 1 }

func (e *editor) lineEnd() int {
	if n := strings.IndexByte(e.text[e.cursor:], '\n'); n >= 0 {
		return e.cursor + n
	}
	return len(e.text)
}

func (e *editor) nextCluster(pos int) int {
	if pos == len(e.text) {
		return pos
	}
	n, _ := term.Cluster(e.text[pos:])
	return pos + n
}

func (e *editor) prevCluster(pos int) int {
	if pos == 0 {
		return 0
	}
	if c := e.text[pos-1]; c < utf8.RuneSelf {
		return pos - 1
	}
	from := strings.LastIndexByte(e.text[:pos-1], '\n') + 1
	for {
		next := e.nextCluster(from)
		if next >= pos {
			return from
		}
		from = next
	}
}

// prevWord and nextWord are the borders of the words around the cursor.
func (e *editor) prevWord() int {
	prefix := strings.TrimRightFunc(e.text[:e.cursor], notWord)
	return len(strings.TrimRightFunc(prefix, inWord))
}

func (e *editor) nextWord() int {
	suffix := strings.TrimLeftFunc(e.text[e.cursor:], notWord)
	return len(e.text) - len(strings.TrimLeftFunc(suffix, inWord))
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == '_'
}

func notWord(r rune) bool { return !inWord(r) }

// up and down move by a screen row; they return false on the first and last row, where the history
// takes over.
func (e *editor) up(width int) bool   { return e.vertical(width, -1) }
func (e *editor) down(width int) bool { return e.vertical(width, 1) }

func (e *editor) vertical(width, delta int) bool {
	rows := e.rows(width)
	current := e.row(rows)
	to := current + delta
	if to < 0 || to >= len(rows) {
		return false
	}
	column := e.column
	if column < 0 {
		column = cells(e.text[rows[current].start:e.cursor])
	}
	pos, used := rows[to].start, 0
	for pos < rows[to].end {
		n, w := cell(e.text[pos:])
		if used+w > column || e.text[pos] == '\n' {
			break
		}
		pos, used = pos+n, used+w
	}
	if pos == rows[to].end && pos > rows[to].start && to < len(rows)-1 &&
		rows[to+1].start == pos {
		pos = e.prevCluster(pos) // the end of a wrapped row is the beginning of the next
	}
	e.cursor, e.column = pos, column
	return true
}

// rows wraps the text into screen rows, at line ends and blanks, or inside words longer than a row.
func (e *editor) rows(width int) []span {
	width = max(width, 1)
	if e.cached.rows != nil && e.cached.text == e.text && e.cached.width == width {
		return e.cached.rows
	}
	var rows []span
	start, used, blank := 0, 0, -1
	end := func(stop, next int) {
		rows = append(rows, span{start, stop})
		start, used, blank = next, 0, -1
	}
	for i := 0; i < len(e.text); {
		if e.text[i] == '\n' {
			end(i, i+1)
			i++
			continue
		}
		n, w := cell(e.text[i:])
		if used+w > width && i > start {
			if e.text[i] == ' ' { // a blank at the border takes no column
				i++
				end(i, i)
				continue
			}
			to := i
			if blank > start {
				to = blank
			}
			end(to, to)
			used = cells(e.text[to:i])
		}
		i, used = i+n, used+w
		if e.text[i-1] == ' ' {
			blank = i
		}
	}
	rows = append(rows, span{start, len(e.text)})
	e.cached = editorRows{e.text, width, rows}
	return rows
}

func (e *editor) row(rows []span) int {
	i := 0
	for i+1 < len(rows) && rows[i+1].start <= e.cursor {
		i++
	}
	return i
}

// cell is Cluster with tabs and line ends.
func cell(s string) (size, width int) {
	switch s[0] {
	case '\t':
		return 1, 4
	case '\n':
		return 1, 0
	}
	return term.Cluster(s)
}

func cells(s string) int { return term.Width(strings.ReplaceAll(untab(s), "\n", "")) }

// view returns at most height rows around the cursor, with the cursor drawn, and its row and column
// in them.
func (e *editor) view(width, height int) (out []term.Row, row, column int) {
	rows := e.rows(width - 1) // the cursor needs a column after the last character
	current := e.row(rows)
	first := min(max(current-height/2, 0), max(len(rows)-height, 0))
	for i := first; i < min(first+height, len(rows)); i++ {
		r := rows[i]
		if i != current {
			out = append(out, term.Row{{Text: untab(e.text[r.start:r.end])}})
			continue
		}
		under, next := " ", e.cursor
		if e.cursor < r.end {
			next = e.nextCluster(e.cursor)
			under = untab(e.text[e.cursor:next])
		}
		out = append(out, term.Row{
			{Text: untab(e.text[r.start:e.cursor])},
			{Text: under, Style: term.Reverse},
			{Text: untab(e.text[next:max(r.end, next)])},
		})
	}
	return out, current - first, cells(e.text[rows[current].start:e.cursor])
}

func untab(s string) string { return strings.ReplaceAll(s, "\t", "    ") }

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
	return store.WriteFile(f.path, b.Bytes(), 0o600)
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

func (s *search) key(m *Model, k tea.KeyMsg, name string) (cmd tea.Cmd, ok bool) {
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
