//go:build unix

// The program in a pseudo-terminal, with the embedded model: what a newcomer sees. The screen is
// read through the small terminal emulator of ui/chat/screentest.

package cli

import (
	"cmp"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/ossrun/ossrun/ui/chat/screentest"
)

// terminal is a program in a pseudo-terminal and its screen.
type terminal struct {
	t      *testing.T
	pty    *os.File
	mu     sync.Mutex
	screen *screentest.Screen
	over   chan struct{} // closed when all that the program wrote is on the screen
}

func startInTerminal(t *testing.T, width, height uint16, args ...string) (*terminal, *exec.Cmd) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "ossrun") // TestMain is the program of that name
	if err := os.Symlink(self, bin); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, args...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "NO_COLOR=", "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home,
		"XDG_RUNTIME_DIR="+home, "TERM=xterm-256color")
	return runInTerminal(t, width, height, cmd)
}

func runInTerminal(t *testing.T, width, height uint16, cmd *exec.Cmd) (*terminal, *exec.Cmd) {
	t.Helper()
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: height, Cols: width})
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, pty: f, screen: screentest.New(int(width), int(height)),
		over: make(chan struct{})}
	t.Cleanup(func() { f.Close(); _ = cmd.Process.Kill() })
	go func() {
		defer close(term.over)
		buf := make([]byte, 32<<10)
		for {
			n, err := f.Read(buf)
			term.mu.Lock()
			_, _ = term.screen.Write(buf[:n])
			term.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return term, cmd
}

func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.screen.String()
}

// until waits for a screen on which ready holds, and fails the test with what was awaited if it
// never comes.
func (term *terminal) until(awaited string, ready func(screen string) bool) string {
	term.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		text := term.text()
		if ready(text) {
			return text
		}
		if time.Now().After(deadline) {
			term.t.Fatalf("%s never came; the screen is:\n%s", awaited, text)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// wait waits until the screen shows all of want.
func (term *terminal) wait(want ...string) string {
	term.t.Helper()
	return term.until(strings.Join(want, " and "), func(screen string) bool {
		for _, w := range want {
			if !strings.Contains(screen, w) {
				return false
			}
		}
		return true
	})
}

func (term *terminal) send(keys string) {
	term.t.Helper()
	if _, err := term.pty.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

// TestNoVerbAsksTheTerminal: nothing but the answer reaches a terminal. A question, which nobody
// answers here, would be waited for.
func TestNoVerbAsksTheTerminal(t *testing.T) {
	term, cmd := startInTerminal(t, 100, 30, "version")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	term.wait("ossrun ")
	if asked := term.screen.String(); strings.ContainsAny(asked, "\x1b]") {
		t.Errorf("the terminal is asked: %q", asked)
	}
}

func TestChatOnTheScreen(t *testing.T) {
	term, cmd := startInTerminal(t, 100, 30, "chat", "--model", "demo", "--temperature", "0")
	term.wait("medium effort")
	term.send("\x1b[Z") // Shift+Tab: the next effort
	term.wait("high effort")
	term.send("How do I serve an OpenAI API?\r")
	term.wait("ossrun serve")
	screen := term.until("the end of the answer",
		func(s string) bool {
			return strings.Contains(s, "tok/s") &&
				!strings.Contains(s, "Esc stops")
		})
	if !strings.Contains(screen, "thought for") || strings.Contains(screen, "<|") {
		t.Errorf("reasoning is not folded, or a special token shows:\n%s", screen)
	}
	term.send("/effort low\r")
	term.wait("low effort")
	term.send("\x03")
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("the chat ended with %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatalf("Ctrl+C did not end the chat; the screen is:\n%s", term.text())
	}
}

// TestTypedWhilePlainBegins: a line that is sent before the prompt is there is answered.
func TestTypedWhilePlainBegins(t *testing.T) {
	term, _ := startInTerminal(t, 100, 30, "chat", "--plain", "--model", "demo", "--temperature",
		"0")
	term.send("How do I serve an OpenAI API?\r")
	term.wait("Type a message", "Run `ossrun serve")
}

// TestContinue: a chat that was left goes on with its conversation and its model.
func TestContinue(t *testing.T) {
	term, cmd := startInTerminal(t, 100, 30, "chat", "--model", "demo", "--temperature", "0")
	term.wait("medium effort")
	term.send("How do I serve an OpenAI API?\r")
	term.until("the end of the answer", func(s string) bool {
		return strings.Contains(s, "tok/s") && !strings.Contains(s, "Esc stops")
	})
	_ = cmd.Process.Kill() // not even a signal to catch
	_ = cmd.Wait()
	again := exec.Command(cmd.Path, "chat", "--continue")
	again.Env = cmd.Env
	term, _ = runInTerminal(t, 100, 30, again)
	term.wait("❯ How do I serve an OpenAI API?", "ossrun serve", "Continuing", "demo · CPU")
}

var picture = flag.String("picture", "", "the file that TestPicture writes: an absolute path")

// TestPicture draws the picture of the README from the real program: two questions at temperature
// 0, one of which python answers and the other one code, with the reasoning and the call unfolded.
func TestPicture(t *testing.T) {
	needsSandbox(t)
	file := cmp.Or(*picture, filepath.Join(t.TempDir(), "chat.svg"))
	term, _ := startInTerminal(t, 84, 34, "chat", "--model", "demo", "--temperature", "0",
		"--tools", "python")
	term.wait("Ask something")
	for i, ask := range []string{"What is 17 times 23?",
		"How do I use it from Python?"} {
		term.send(ask)
		term.wait(ask)
		term.send("\r")
		term.until("answer "+strconv.Itoa(i), func(s string) bool {
			return strings.Count(s, "thought for") == i+2 && !strings.Contains(s, "Esc stops")
		})
	}
	term.send("\x14") // Ctrl+T
	screen := term.wait("▾ thought", "→ python · ", "│ print(17 * 23)", "│ 391")
	if !strings.Contains(screen, "client = OpenAI(") {
		t.Errorf("the picture has no answer with code:\n%s", screen)
	}
	term.mu.Lock()
	defer term.mu.Unlock()
	if err := os.WriteFile(file, []byte(term.screen.SVG("ossrun chat")), 0o644); err != nil {
		t.Fatal(err)
	}
}
