// Keys that Bubble Tea does not know: those that a terminal writes as CSI u (kitty, tmux, iTerm2)
// or as xterm's modifyOtherKeys does, because no older form tells Shift+Enter from Enter.
//
// What must stay true: such a key does what the same key does in its older form.

package chat

import (
	"reflect"
	"strconv"
	"strings"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"
)

// askKeys asks the terminal for such keys, kitty's way and xterm's, and oldKeys ends that; to a
// terminal that has none both are nothing, or colours, which end at once. They are written as the
// chat's screen comes and goes.
const (
	askKeys = "\x1b[>1u\x1b[>4;1m\x1b[m"
	oldKeys = "\x1b[<u\x1b[>4m\x1b[m"
)

// unknownKey is the key of a message that Bubble Tea passes on as it came: a slice of bytes of a
// type that has no name outside.
func unknownKey(msg tea.Msg) (k tea.KeyMsg, ok bool) {
	v := reflect.ValueOf(msg)
	if v.Kind() != reflect.Slice || v.Type().Elem().Kind() != reflect.Uint8 {
		return k, false
	}
	body, csi := strings.CutPrefix(string(v.Bytes()), "\x1b[")
	if !csi {
		return k, false
	}
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
		return k, false // it was let go
	}
	return keyOf(rune(number(0)), max(number(1)-1, 0))
}

// The bits of modifiers.
const (
	shift = 1 << iota
	alt
	ctrl
	most // above: other modifiers, which have no meaning here, and the locks
)

// keyOf is the key of a character with modifiers, as Bubble Tea has it.
func keyOf(char rune, with int) (k tea.KeyMsg, ok bool) {
	k.Alt = with&alt != 0
	switch char {
	case '\r', 57414: // of the keypad
		if k.Type = tea.KeyEnter; with&(most-1) != 0 {
			k.Alt = true // a new line, as Alt+Enter
		}
		return k, true
	case '\t':
		k.Type = tea.KeyTab
		if with&shift != 0 {
			k.Type = tea.KeyShiftTab
		}
		return k, true
	case '\x1b':
		k.Type, k.Alt = tea.KeyEsc, false
		return k, true
	case '\x7f', '\b':
		if k.Type = tea.KeyBackspace; with&ctrl != 0 {
			k.Alt = true // the word
		}
		return k, true
	case ' ':
		k.Type, k.Runes = tea.KeySpace, []rune{' '}
		return k, with&ctrl == 0
	}
	if with&ctrl != 0 {
		low := unicode.ToLower(char)
		k.Type = tea.KeyType(low - 'a' + 1) // control characters are types
		return k, 'a' <= low && low <= 'z'
	}
	if with&shift != 0 {
		char = unicode.ToUpper(char)
	}
	k.Type, k.Runes = tea.KeyRunes, []rune{char}
	return k, unicode.IsPrint(char)
}
