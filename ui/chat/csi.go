// Keys unknown to Bubble Tea: CSI u (kitty, tmux, iTerm2) and xterm's modifyOtherKeys, needed
// because the legacy form cannot tell Shift+Enter from Enter.
//
// What must stay true: such a key does the same as in its legacy form.

package chat

import (
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"
)

// enableKeys turns these keys on, kitty's way and xterm's, and disableKeys off. Other terminals
// ignore both, or take them for colours, which are reset at once. They are sent on entering and
// leaving the chat's screen.
const (
	enableKeys  = "\x1b[>1u\x1b[>4;1m\x1b[m"
	disableKeys = "\x1b[<u\x1b[>4m\x1b[m"
)

// input translates keys to their legacy form. Bubble Tea would pass an unknown sequence on as a
// slice of its buffer, which its next read overwrites.
func input(source io.Reader) io.Reader {
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

// legacySequence is what a legacy terminal sends for a key.
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
