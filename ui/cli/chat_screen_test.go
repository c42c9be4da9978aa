//go:build unix

// The program in a pseudo-terminal, with the embedded model: what a newcomer sees.

package cli

import (
	"cmp"
	"flag"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestNoVerbAsksTheTerminal: only the answer reaches a terminal. A query would wait, since no one
// answers it here.
func TestNoVerbAsksTheTerminal(t *testing.T) {
	t.Parallel()
	term, cmd := startInTerminal(t, 100, 30, "version")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	<-term.over
	term.wait("ossrun ")
	if asked := term.all.String(); strings.Contains(asked, "\x1b") {
		t.Errorf("the terminal is asked: %q", asked)
	}
}

func TestChatOnTheScreen(t *testing.T) {
	t.Parallel()
	term, cmd := startInTerminal(t, 100, 30, "chat", "--model", "demo", "--temperature", "0")
	term.wait("medium effort")
	term.send("\x1b[Z") // Shift+Tab: the next effort
	term.wait("high effort")
	term.send("How do I serve an OpenAI API?\r")
	term.wait("ossrun serve")
	screen := term.until("the end of the answer", answered(1))
	if !strings.Contains(screen, "thought for") || strings.Contains(screen, "<|") {
		t.Errorf("reasoning is not folded, or a special token shows:\n%s", screen)
	}
	term.send("/effort low\r")
	term.wait("low effort")
	term.send("\x03")
	if err := cmd.Wait(); err != nil {
		t.Errorf("the chat ended with %v", err)
	}
}

// TestTypedWhilePlainBegins: a line that is sent before the prompt is there is answered, by the
// demo as it is embedded.
func TestTypedWhilePlainBegins(t *testing.T) {
	t.Parallel()
	term, _ := runInTerminal(t, 100, 30, ossrun(t, []string{testDemo + "="}, "chat", "--plain",
		"--model", "demo", "--temperature", "0"))
	term.send("How do I serve an OpenAI API?\r")
	term.wait("Type a message", "Run `ossrun serve")
}

// TestContinue: a chat that was left goes on with its conversation and its model.
func TestContinue(t *testing.T) {
	t.Parallel()
	term, cmd := startInTerminal(t, 100, 30, "chat", "--model", "demo", "--temperature", "0")
	term.wait("medium effort")
	term.send("How do I serve an OpenAI API?\r")
	term.until("the end of the answer", answered(1))
	_ = cmd.Process.Kill() // not even a signal to catch
	_ = cmd.Wait()
	term, _ = runInTerminal(t, 100, 30, sameHome(cmd, "chat", "--continue"))
	term.wait("❯ How do I serve an OpenAI API?", "ossrun serve", "Continuing", "demo · CPU")
}

var picture = flag.String("picture", "", "the file that TestPicture writes: an absolute path")

// TestPicture draws the picture of the README from the real program: two questions at temperature
// 0, one of which python answers and the other one code, with the reasoning and the call unfolded.
func TestPicture(t *testing.T) {
	t.Parallel()
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
	write(t, file, term.screen.SVG("ossrun chat"))
}
