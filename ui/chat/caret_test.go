//go:build unix

// What a terminal tells of keys and shows of the caret: through a pty, and in tmux.

package chat

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// cursor is the position of the terminal's cursor.
func (w *window) cursor() (x, y int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.screen.Cursor()
}

// becomes waits until the editor shows these rows, with the cursor at their end or at the given
// column and row.
func (w *window) becomes(rows string, at ...int) {
	w.t.Helper()
	lines := strings.Split(rows, "\n")
	want := " ❯ " + strings.Join(lines, "\n   ") + "\n"
	want = strings.ReplaceAll(want, "\n   \n", "\n\n") // trailing blanks of rows are not compared
	x, y := 3+len([]rune(lines[len(lines)-1])), 22
	if len(at) > 0 {
		x, y = at[0], at[1]
	}
	hosttest.Until(w.t, func() string {
		gotX, gotY := w.cursor()
		return fmt.Sprintf("not %q with the cursor at %d,%d but at %d,%d:\n%s", rows, x, y, gotX,
			gotY, w.text())
	}, func() bool {
		gotX, gotY := w.cursor()
		return strings.Contains(w.text(), want) && x == gotX && y == gotY
	})
}

// Keys as a terminal writes them that has more than the old forms. Each acts on "one two", with the
// cursor at its end, and a letter follows.
func TestKeysOfNewerTerminals(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	w := open(t, t.Context(), 80, 24, Options{Model: script()})
	w.until("Ask something")
	for sequence, rows := range map[string]string{
		"\x1b[13;2u": "one two\nx", "\x1b[27;2;13~": "one two\nx", // Shift+Enter
		"\x1b[13;5u": "one two\nx", "\x1b[27;5;13~": "one two\nx", // Ctrl
		"\x1b[13;3u": "one two\nx", "\x1b[27;3;13~": "one two\nx", // Alt
		"\x1b[13;6u": "one two\nx", "\x1b[13;130u": "one two\nx", // with more, and Num Lock
		"\x1b[57414;2u": "one two\nx", "\x1b[13;2:1u": "one two\nx",
		"\x1b[13;2:3u": "one twox",                 // it was let go
		"\x1b[117;5u":  "x", "\x1b[27;5;117~": "x", // Ctrl+U
		"\x1b[85:117;6u": "x",
		"\x1b[119;5u":    "one x",      // Ctrl+W
		"\x1b[98;3u":     "one xtwo",   // Alt+B
		"\x1b[127;3u":    "one x",      // Alt+Backspace
		"\x1b[127;2u":    "one twx",    // Shift+Backspace
		"\x1b[127u":      "one twx",    // Backspace
		"\x1b[32;2u":     "one two x",  // Shift+Space
		"\x1b[97;2u":     "one twoAx",  // Shift+A
		"\x1b[228u":      "one twoäx",  // a letter
		"\x1b[57358u":    "one twox",   // Caps Lock
		"\x1b[99999999u": "one twox",   // nothing
		"\x1b[u":         "one twox",   // nothing
		"\x1b[1;1;1;1u":  "one twox",   // nothing
		"\x1b[27;1~":     "one twox",   // nothing
		"\x1b[106;5u":    "one two\nx", // Ctrl+J
		"\x1b[97;5u":     "xone two",   // Ctrl+A
		"\x1b[27;2;9~":   "one twox",   // Shift+Tab sets the effort
	} {
		w.typing("one two" + sequence + "x")
		x, y := 3+len([]rune(rows[strings.LastIndex(rows, "\n")+1:])), 22
		if left, _, moved := strings.Cut(rows, "x"); moved && !strings.Contains(left, "\n") {
			x = 4 + len([]rune(left))
		}
		w.becomes(rows, x, y)
		w.typing("\x05\x15\x7f\x15")
		w.until("Ask something")
	}
	w.typing("kept\x1b[27u")
	w.typing("\x1b[99;5u\x1b[99;5u") // Ctrl+C
	if err := w.wait(); err != nil {
		t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, told := range []string{">1u", ">4;1m", "<u", ">4m"} {
		if !w.screen.Mode(told) {
			t.Errorf("the terminal was not told %s", told)
		}
	}
}

// The terminal's cursor is at the caret, whatever is above it and wherever the caret is.
func TestCursorStandsAtTheCaret(t *testing.T) {
	w := open(t, t.Context(), 80, 24, Options{Model: script(fine(strings.Repeat("word ", 400)))})
	w.until("Ask something")
	w.becomes("Ask something"+keyHints, 3, 22)
	w.typing("abc")
	w.becomes("abc")
	w.typing("\x1b[D") // left
	w.becomes("abc", 5, 22)
	w.typing("\x05 日本")
	w.becomes("abc 日本", 11, 22)
	w.typing("\x1b\rsecond\x1b\r")
	w.becomes("abc 日本\nsecond\n", 3, 22)
	w.typing("\x1b[A") // up
	w.becomes("abc 日本\nsecond\n", 3, 21)
	w.typing("\x05\x0b\x15\x7f\x15")
	w.until("Ask something")
	w.typing("go\r")
	w.until("word word")
	w.becomes("Ask something"+keyHints, 3, 22)
	w.typing("/")
	w.becomes("/", 4, 22)
	w.typing("\x15/quit\r")
	if err := w.wait(); err != nil {
		t.Error(err)
	}
}

// tmux is a terminal that is not ours: its own cursor, and its own form of Shift+Enter.
func TestCaretInTmux(t *testing.T) {
	hosttest.Program(t, "tmux")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &pane{t: t, socket: fmt.Sprintf("ossrun-caret-%d", os.Getpid())}
	p.tmux("-f", "/dev/null", "new-session", "-d", "-s", "chat", "-x", "80", "-y", "24", "sleep 1",
		";", "set-option", "-s", "extended-keys", "on", ";", "new-window", "-t", "chat:5",
		fmt.Sprintf("%s -test.run '^TestPlayed$' -played %s; sleep 60", self, t.TempDir()))
	t.Cleanup(func() { _ = exec.Command("tmux", "-L", p.socket, "kill-server").Run() })
	p.until(idle, "gpt-oss-20b")
	stands := func(want string) {
		t.Helper()
		hosttest.Until(t, func() string {
			return fmt.Sprintf("the cursor is not at %s:\n%s", want, p.screen())
		}, func() bool {
			return want == strings.TrimSpace(p.tmux("display", "-p", "-t", "chat",
				"#{cursor_x},#{cursor_y}"))
		})
	}
	stands("3,22")
	p.tmux("send-keys", "-t", "chat", "-l", "abc")
	stands("6,22")
	p.keys("S-Enter")
	p.tmux("send-keys", "-t", "chat", "-l", "日本")
	p.until(" ❯ abc\n   日本\n")
	stands("7,22")
	p.tmux("send-keys", "-t", "chat", "-l", "\x1b[27;2;13~x\x1b[13;2uy")
	p.until(" ❯ abc\n   日本\n   x\n   y\n")
	stands("4,22")
	p.keys("Up", "Up")
	stands("3,20")
	p.keys("C-u", "C-c")
	p.keys("C-c")
}
