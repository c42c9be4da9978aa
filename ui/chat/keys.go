// Key bindings by Bubble Tea's names, and keys unknown to it: CSI u (kitty, tmux, iTerm2) and
// xterm's modifyOtherKeys, needed because the legacy form cannot tell Shift+Enter from Enter.
//
// What must stay true: such a key does the same as in its legacy form.

package chat

import (
	"cmp"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"
)

// doublePress is how soon a second Ctrl+C quits in any state.
const doublePress = time.Second

// lineEnds converts a paste's line ends: most terminals send CR.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// A mode gets keys before the editor, and reports whether it handled one.
type mode interface {
	rank() int
	key(m *Model, k tea.KeyMsg, name string) (cmd tea.Cmd, ok bool)
}

// Ranks of modes: a lower one gets a key first.
const (
	confirmationRank = iota
	promptRank
	searchRank
	approvalRank
	pageRank
	ranks
)

func (*confirmation) rank() int { return confirmationRank }
func (*textPrompt) rank() int   { return promptRank }
func (*search) rank() int       { return searchRank }
func (*approvalAsk) rank() int  { return approvalRank }
func (*page) rank() int         { return pageRank }

// modes are the open ones by rank, at most one of each: a tool may ask during a search.
type modes [ranks]mode

func (s *modes) open(o mode)    { s[o.rank()] = o }
func (s *modes) close(rank int) { s[rank] = nil }

func modeOf[T mode](o mode) T {
	t, _ := o.(T)
	return t
}

func (s *modes) confirmation() *confirmation { return modeOf[*confirmation](s[confirmationRank]) }
func (s *modes) prompt() *textPrompt         { return modeOf[*textPrompt](s[promptRank]) }
func (s *modes) ask() *approvalAsk           { return modeOf[*approvalAsk](s[approvalRank]) }
func (s *modes) page() *page                 { return modeOf[*page](s[pageRank]) }

// key handles one key, or a paste. Several letters at once are text, even if they spell the name of
// a key, such as "delete".
func (m *Model) key(k tea.KeyMsg) tea.Cmd {
	if k.Type == tea.KeyF20 { // see escape
		k = tea.KeyMsg{Type: tea.KeyEsc}
	}
	name := k.String()
	if len(k.Runes) > 1 {
		name = ""
	}
	if k.Paste && m.modes.confirmation() == nil {
		m.input.paste(lineEnds.Replace(string(k.Runes)))
		return nil
	}
	for _, o := range m.modes {
		if o == nil {
			continue
		}
		if cmd, ok := o.key(m, k, name); ok {
			return cmd
		}
	}
	if cmd, ok := listKey(m, name); ok {
		return cmd
	}
	if run := bindings[name]; run != nil {
		return run(m)
	}
	if edit := edits[name]; edit != nil {
		edit(&m.input.editor)
	} else if (k.Type == tea.KeyRunes || k.Type == tea.KeySpace) && !k.Alt {
		m.input.editor.insert(string(k.Runes))
	}
	return nil
}

// bindings maps the keys of the chat itself.
var bindings = map[string]func(m *Model) tea.Cmd{
	"enter": enter, "esc": escapeKey, "tab": complete, "up": up, "down": down,
	"ctrl+c": (*Model).interrupt, "ctrl+d": deleteOrQuit, "ctrl+r": startSearch,
	"ctrl+g": composeMessage, "ctrl+s": browseSessions, "shift+tab": nextEffort, "?": helpKey,
	"ctrl+p": openPalette,
	"ctrl+z": func(*Model) tea.Cmd { return tea.Suspend },
	"ctrl+l": func(*Model) tea.Cmd { return tea.ClearScreen },
	"ctrl+t": func(m *Model) tea.Cmd {
		m.unfolded = !m.unfolded
		return nil
	},
	"pgup":       scroll(func(t *transcript) int { return -max(t.height-2, 1) }),
	"pgdown":     scroll(func(t *transcript) int { return max(t.height-2, 1) }),
	"shift+up":   scroll(func(*transcript) int { return -1 }),
	"shift+down": scroll(func(*transcript) int { return 1 }),
	"ctrl+home":  scroll(func(t *transcript) int { return -t.total }),
	"ctrl+end":   scroll(func(t *transcript) int { return t.total }),
}

// edits maps the keys of the editor.
var edits = map[string]func(*editor){
	"left": (*editor).moveLeft, "ctrl+b": (*editor).moveLeft,
	"right": (*editor).moveRight, "ctrl+f": (*editor).moveRight,
	"alt+left": (*editor).wordLeft, "ctrl+left": (*editor).wordLeft, "alt+b": (*editor).wordLeft,
	"alt+right": (*editor).wordRight, "ctrl+right": (*editor).wordRight,
	"alt+f": (*editor).wordRight,
	"home":  (*editor).home, "ctrl+a": (*editor).home,
	"end": (*editor).end, "ctrl+e": (*editor).end,
	"backspace": (*editor).backspace, "ctrl+h": (*editor).backspace,
	"delete": (*editor).delete,
	"ctrl+w": (*editor).deleteWordLeft, "alt+backspace": (*editor).deleteWordLeft,
	"alt+d":  (*editor).deleteWordRight,
	"ctrl+u": (*editor).deleteToLineHome,
	"ctrl+k": (*editor).deleteToLineEnd,
	"ctrl+j": (*editor).newLine, "alt+enter": (*editor).newLine,
}

func scroll(rows func(t *transcript) int) func(m *Model) tea.Cmd {
	return func(m *Model) tea.Cmd {
		t := m.visibleTranscript()
		t.scroll(rows(t))
		return nil
	}
}

func enter(m *Model) tea.Cmd {
	if c := m.input.chosen(m.choices()); c != nil {
		return m.takeChoice(*c)
	}
	return m.send()
}

// escapeKey closes a menu, else gives up an edit and stops what runs.
func escapeKey(m *Model) tea.Cmd {
	t, e := &m.talk, &m.input.editor
	if start, _ := m.input.mention(); start >= 0 && len(m.input.fileChoices()) > 0 {
		m.input.files.closed = e.text[:start+1]
		return nil
	}
	if c, _ := valueCommand(e.text); c != nil || len(m.choices()) > 0 {
		e.set("")
		return nil
	}
	if t.live == nil && t.compacting == nil && t.editing != nil {
		t.editing = nil
		e.set("")
	}
	if t.preparing != "" {
		t.queued = append([]string{t.preparing}, t.queued...)
		t.preparing = ""
		m.returnQueued()
		m.save()
	}
	t.stop()
	return nil
}

func complete(m *Model) tea.Cmd {
	if rows := m.input.fileChoices(); len(rows) > 0 {
		row := cmp.Or(m.input.chosen(rows), &rows[0])
		m.input.editor.set(row.text)
		return nil
	}
	if start := pathStart(m.input.editor.text); start >= 0 {
		return completePath(m, start)
	}
	m.input.complete(m.choices())
	return nil
}

func up(m *Model) tea.Cmd {
	in := &m.input
	if !in.moveChoice(m.choices(), -1) && !in.editor.up(m.editorWidth()) {
		if text, ok := in.history.older(in.editor.text); ok {
			in.editor.set(text)
		}
	}
	return nil
}

func down(m *Model) tea.Cmd {
	in := &m.input
	if !in.moveChoice(m.choices(), 1) && !in.editor.down(m.editorWidth()) {
		if text, ok := in.history.newer(); ok {
			in.editor.set(text)
		}
	}
	return nil
}

func deleteOrQuit(m *Model) tea.Cmd {
	if m.input.editor.text == "" {
		return m.quit()
	}
	m.input.editor.delete()
	return nil
}

func browseSessions(m *Model) tea.Cmd {
	text := m.input.editor.text
	if c, _ := valueCommand(text); c == nil && text != "" {
		m.remember(text) // Up restores it
	}
	return listSessions(m, "")
}

func nextEffort(m *Model) tea.Cmd {
	return setEffort(m, efforts[(slices.Index(efforts, m.talk.effort)+1)%len(efforts)])
}

func helpKey(m *Model) tea.Cmd {
	if m.input.editor.text == "" {
		return showHelp(m)
	}
	m.input.editor.insert("?")
	return nil
}

// interrupt is Ctrl+C: it stops an answer or clears the text. It quits without either, or if
// pressed twice.
func (m *Model) interrupt() tea.Cmd {
	double := !m.interrupted.IsZero() && m.now.Sub(m.interrupted) < doublePress
	m.interrupted = m.now
	switch text := m.input.editor.text; {
	case double || m.talk.live == nil && text == "":
		return m.quit()
	case m.talk.live != nil:
		m.talk.stop()
		m.note("Ctrl+C again leaves")
	default:
		m.remember(text)
		m.input.editor.set("")
		m.note("Up brings it back, Ctrl+C again leaves")
	}
	return nil
}

// enableKeys turns these keys on, kitty's way and xterm's, and disableKeys off. Other terminals
// ignore both, or take them for colours, which are reset at once. They are sent on entering and
// leaving the chat's screen.
const (
	enableKeys  = "\x1b[>1u\x1b[>4;1m\x1b[m"
	disableKeys = "\x1b[<u\x1b[>4m\x1b[m"
)

// keyInput translates keys to their legacy form. Bubble Tea would pass an unknown sequence on as a
// slice of its buffer, which its next read overwrites.
func keyInput(source io.Reader) io.Reader {
	k := &keyReader{source: source}
	if f, ok := source.(*os.File); ok { // Bubble Tea can cancel reads of a file only
		return fileKeys{f, k}
	}
	return k
}

// fileKeys is a keyReader on a terminal.
type fileKeys struct {
	*os.File
	keys *keyReader
}

func (f fileKeys) Read(p []byte) (int, error) { return f.keys.Read(p) }

type keyReader struct {
	source io.Reader
	paste  bool // inside a pasted text, which is not translated
}

var csiKeys = regexp.MustCompile(`\x1b\[[0-9:;]*[u~]`)

func (k *keyReader) Read(p []byte) (int, error) {
	n, err := k.source.Read(p)
	return copy(p, csiKeys.ReplaceAllFunc(p[:n], k.legacy)), err
}

// legacy returns a sequence's legacy form, or the sequence; neither is longer.
func (k *keyReader) legacy(sequence []byte) []byte {
	switch text := string(sequence); text {
	case "\x1b[200~", "\x1b[201~":
		k.paste = text == "\x1b[200~"
	default:
		if key, ok := parseKey(text); ok && !k.paste {
			return []byte(legacySequence(key))
		}
	}
	return sequence
}

// escape is F20's sequence, sent for Esc: Esc's legacy form would turn the next key into Alt.
const escape = "\x1b[34~"

func legacySequence(k tea.KeyMsg) (text string) {
	switch k.Type {
	case tea.KeyRunes, tea.KeySpace:
		text = string(k.Runes)
	case tea.KeyShiftTab:
		text = "\x1b[Z"
	case tea.KeyEsc:
		return escape
	default: // control characters are types
		text = string(rune(k.Type))
	}
	if k.Alt {
		return "\x1b" + text
	}
	return text
}

func parseKey(sequence string) (k tea.KeyMsg, ok bool) {
	body := strings.TrimPrefix(sequence, "\x1b[")
	fields := strings.Split(strings.TrimRight(body, "u~"), ";")
	switch {
	case strings.HasSuffix(body, "~") && len(fields) == 3 && fields[0] == "27":
		fields = []string{fields[2], fields[1]} // modifyOtherKeys
	case !strings.HasSuffix(body, "u"):
		return k, false
	}
	number := func(i int) int {
		if i >= len(fields) {
			return 1
		}
		text, _, _ := strings.Cut(fields[i], ":") // the same key on other layouts
		n, _ := strconv.Atoi(text)
		return n
	}
	if len(fields) > 1 && strings.HasSuffix(fields[1], ":3") {
		return k, false // a key release
	}
	return newKey(rune(number(0)), max(number(1)-1, 0))
}

// Bits of modifiers.
const (
	shift = 1 << iota
	alt
	ctrl
	otherModifiers // above: modifiers without a meaning here, and locks
)

// newKey is the key of a character with modifiers, as Bubble Tea represents it.
func newKey(char rune, modifiers int) (k tea.KeyMsg, ok bool) {
	k.Alt = modifiers&alt != 0
	switch char {
	case '\r', 57414: // of the keypad
		if k.Type = tea.KeyEnter; modifiers&(otherModifiers-1) != 0 {
			k.Alt = true // a new line, as Alt+Enter
		}
		return k, true
	case '\t':
		k.Type = tea.KeyTab
		if modifiers&shift != 0 {
			k.Type = tea.KeyShiftTab
		}
		return k, true
	case '\x1b':
		k.Type, k.Alt = tea.KeyEsc, false
		return k, true
	case '\x7f', '\b':
		if k.Type = tea.KeyBackspace; modifiers&ctrl != 0 {
			k.Alt = true // the word
		}
		return k, true
	case ' ':
		k.Type, k.Runes = tea.KeySpace, []rune{' '}
		return k, modifiers&ctrl == 0
	}
	if modifiers&ctrl != 0 {
		lower := unicode.ToLower(char)
		k.Type = tea.KeyType(lower - 'a' + 1) // control characters are types
		return k, 'a' <= lower && lower <= 'z'
	}
	if modifiers&shift != 0 {
		char = unicode.ToUpper(char)
	}
	k.Type, k.Runes = tea.KeyRunes, []rune{char}
	return k, unicode.IsPrint(char)
}
