//go:build unix

// Two chats of one user: one engine, and no word lost when the one that has it goes.

package cli

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// startBeside starts another program in the environment of the first.
func startBeside(t *testing.T, first *exec.Cmd, args ...string) (*terminal, *exec.Cmd) {
	t.Helper()
	return runInTerminal(t, 100, 30, sameHome(first, args...))
}

func answered(n int) func(string) bool {
	return func(s string) bool {
		return strings.Count(s, "thought for") == n && !strings.Contains(s, "Esc stops")
	}
}

func TestTwoChatsShareAnEngine(t *testing.T) {
	t.Parallel()
	args := []string{"chat", "--model", "demo", "--temperature", "0"}
	one, first := startInTerminal(t, 100, 30, args...)
	one.wait("medium effort")
	two, second := startBeside(t, first, args...)
	two.wait("joined the chat of process", "medium effort")
	three, _ := startBeside(t, first, args...)
	three.wait("joined the chat of process")
	two.send("How do I serve an OpenAI API?\r")
	two.until("the first answer", answered(1))
	_ = first.Process.Kill() // no word of farewell
	_ = first.Wait()
	two.send("How do I serve an OpenAI API?\r")
	two.until("the second answer", answered(2))
	two.wait("The conversation continues with demo, which is loaded here")
	three.send("What is ossrun?\r") // from the second, which has the model now
	three.until("the third chat's answer", answered(1))
	four, fourth := startBeside(t, first, args...)
	four.wait("joined the chat of process")
	if said, err := sameHome(first, "stop").CombinedOutput(); err == nil ||
		!strings.Contains(string(said), "no server is running") {
		t.Errorf("stop takes a chat for a server: %v: %s", err, said)
	}
	// one that leaves in the middle of another's answer
	four.send("Write a poem.\r")
	two.send("\x03\x03")
	_ = second.Wait()
	four.until("an answer all the same", answered(1))
	_ = fourth.Process.Signal(syscall.SIGTERM)
	_ = fourth.Wait()
}
