//go:build unix

// kill -9 of the chat, of the process that has the model, and of a tool, at another point of a turn
// in each round. What a person has sent is never lost.

package cli

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/records"
)

var kills = flag.Int("kills", 2, "how often TestKilled* kill; .ci/steps/chat does it ten times")

// roundMessages are the messages of one round, each of them unique.
func roundMessages(round int) []string {
	return []string{fmt.Sprintf("What is ossrun? (%d)", round),
		fmt.Sprintf("How do I use the server? (%d)", round),
		fmt.Sprintf("Write a poem of five lines. (%d)", round)}
}

// waitForKill waits for this round's point of a turn: at once, while the model reads, while some of
// its reasoning or of its answer is shown, or after its end.
func waitForKill(term *terminal, round int) {
	term.t.Helper()
	if shown := []string{"", "Esc stops", "thought", "tok/s"}[round%4]; shown != "" {
		term.until(shown, func(s string) bool {
			return strings.Contains(s, shown) || round%4 < 3 && isIdle(s)
		})
	}
}

// exportChat returns the whole conversation, as /export writes it.
func exportChat(t *testing.T, term *terminal) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chat.md")
	term.send("/export " + path + "\r")
	term.wait("Saved to")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sendMessage types a message and waits until the chat has accepted it.
func sendMessage(term *terminal, text string) {
	term.send(text)
	term.wait("❯ " + text)
	term.send("\r")
	term.until("an empty editor", func(s string) bool {
		return strings.Contains(s, "❯ Ask something") && strings.Contains(s, text)
	})
}

func isIdle(s string) bool {
	return strings.Contains(s, "❯ Ask something") && !strings.Contains(s, "Esc stops")
}

func TestKilledChats(t *testing.T) {
	t.Parallel()
	term, cmd := startInTerminal(t, 100, 40, "chat", "--alone", "--model", "demo", "--temperature",
		"0")
	term.wait("medium effort")
	var all []string
	for round := range *kills {
		messages := roundMessages(round)
		for _, text := range messages[:1+round%3] {
			sendMessage(term, text)
			all = append(all, text)
			if round%2 == 0 { // else what follows is sent while the answer is written
				term.until("an answer", isIdle)
			}
		}
		waitForKill(term, round)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		term, cmd = runInTerminal(t, 100, 40, sameHome(cmd, "chat", "--alone", "--continue",
			"--temperature", "0"))
		screen := term.wait("Continuing", "medium effort")
		if !strings.Contains(screen, "❯ Ask something") { // what waited is in the editor
			term.send("\r")
			term.until("an answer to what waited", isIdle)
		}
		text := exportChat(t, term)
		for _, message := range all {
			if n := strings.Count(text, "\n"+message+"\n"); n != 1 {
				t.Fatalf("round %d: %q is there %d times:\n%s", round, message, n, text)
			}
		}
	}
	sendMessage(term, "What is ossrun?")
	term.until("an answer after all kills", isIdle)
}

// A message that the screen shows as sent is kept, however soon after Enter the kill comes.
func TestKilledAtEnter(t *testing.T) {
	t.Parallel()
	term, cmd := startInTerminal(t, 100, 40, "chat", "--alone", "--model", "demo", "--temperature",
		"0")
	term.wait("medium effort")
	sendMessage(term, "What is ossrun?")
	term.until("an answer", isIdle)
	notes := filepath.Join(t.TempDir(), "notes.txt")
	write(t, notes, "a note")
	for round := range max(*kills, 3) {
		text := fmt.Sprintf("message %d", round)
		if round%3 == 2 { // its file is read before the model is asked
			text += " @" + notes
		}
		term.send(text)
		term.wait("❯ " + text)
		term.send("\r")
		switch round % 3 {
		case 1:
			term.wait("❯ Ask something")
		case 2:
			term.until("the turn", func(s string) bool {
				return strings.Contains(s, "Esc stops") || strings.Contains(s, "❯ Ask something")
			})
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		<-term.over
		shown := strings.Contains(term.text(), "❯ Ask something")
		term, cmd = runInTerminal(t, 100, 40, sameHome(cmd, "chat", "--alone", "--continue",
			"--temperature", "0"))
		screen := term.wait("Continuing", "medium effort")
		there := strings.Contains(screen, text)
		if !there { // a draft of before may have come back, and would go before the command
			term.send("\x15")
			term.wait("❯ Ask something")
			there = strings.Contains(exportChat(t, term), text)
		}
		t.Logf("round %d: sent on the screen %v, kept %v", round, shown, there)
		if shown && !there {
			t.Fatalf("round %d: %q was on the screen and is lost:\n%s", round, text, screen)
		}
		term.send("\x15") // text given back to the editor would precede the next one
		term.wait("❯ Ask something")
	}
}

// The process with the model is killed while it answers another process's chat.
func TestKilledServers(t *testing.T) {
	t.Parallel()
	host, first := startInTerminal(t, 100, 40, "chat", "--model", "demo", "--temperature", "0")
	host.wait("medium effort")
	var all []string
	for round := range *kills {
		// each round, another chat joins the process with the model and continues
		args := []string{"chat", "--model", "demo", "--temperature", "0"}
		if round > 0 {
			args = append(args, "--continue")
		}
		term, cmd := startBeside(t, first, args...)
		term.wait("medium effort")
		if round == 0 {
			term.wait("joined the chat of process")
		}
		for i, text := range roundMessages(round)[:2] {
			sendMessage(term, text)
			all = append(all, text)
			if i == 0 {
				waitForKill(term, round)
				_ = first.Process.Kill()
				_ = first.Wait()
			}
		}
		term.until("an answer of whoever has the model now", func(s string) bool {
			return isIdle(s) && !strings.Contains(s, "next: ")
		})
		text := exportChat(t, term)
		for _, message := range all {
			if n := strings.Count(text, "\n"+message+"\n"); n != 1 {
				t.Fatalf("round %d: %q is there %d times:\n%s", round, message, n, text)
			}
		}
		if last := text[strings.LastIndex(text, "## You"):]; !strings.Contains(last, "\n## demo\n\n") {
			t.Fatalf("round %d: the last question has no answer:\n%s", round, last)
		}
		// it ends, so that its conversation is free; then a third process has the model
		next, other := startBeside(t, first, "chat", "--model", "demo", "--temperature", "0")
		next.wait("joined the chat of process")
		term.send("\x03\x03")
		_ = cmd.Wait()
		sendMessage(next, "hello")
		next.until("the model is loaded there", func(s string) bool {
			return isIdle(s) && strings.Contains(s, "continues with demo,")
		})
		makeNewest(t, first, all[len(all)-1])
		first = other
	}
}

// makeNewest makes the conversation with a message the latest one again.
func makeNewest(t *testing.T, process *exec.Cmd, message string) {
	t.Helper()
	store, err := records.Open(records.Options{TTL: time.Hour,
		File: filepath.Join(homeOf(process), "ossrun", "kept.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, r := range store.List(records.KindChat) {
		if !strings.Contains(string(r.Value), message) {
			continue
		}
		var chat map[string]json.RawMessage
		changed, err := json.Marshal(time.Now())
		if err = errors.Join(err, json.Unmarshal(r.Value, &chat)); err == nil {
			chat["changed"] = changed
			r.Value, err = json.Marshal(chat)
		}
		if err = errors.Join(err, store.Put(r)); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no conversation has %q", message)
}

// The python tool is killed while the model's code runs or waits.
func TestKilledTools(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	term, cmd := startInTerminal(t, 100, 60, "chat", "--alone", "--model", "demo", "--temperature",
		"0", "--tools", "python")
	term.wait("medium effort")
	for round := range *kills {
		text := fmt.Sprintf("What is %d times 23?", 17+round)
		sendMessage(term, text)
		term.until("a process of the tool", func(s string) bool { // the sandbox, then what it runs
			pids := descendants(t, cmd.Process.Pid)
			if len(pids) < 1+round%2 {
				return isIdle(s)
			}
			for _, pid := range pids {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			return true
		})
		// Where the trial of bwrap was killed, the chat puts the question back into the editor.
		refused := false
		term.until("the turn's end", func(s string) bool {
			refused = strings.Contains(s, "Python cannot run in bwrap:") &&
				strings.Contains(s, "killed") && strings.Contains(s, "❯ "+text) &&
				strings.Contains(s, "Your message is back in the editor.")
			return refused || isIdle(s)
		})
		if refused {
			term.send("\x15")
			term.until("an empty line", isIdle)
		} else if shown := exportChat(t, term); strings.Count(shown, "\n"+text+"\n") != 1 {
			t.Fatalf("round %d: %q is lost:\n%s", round, text, shown)
		}
		term.send("/new\r")
		term.until("another conversation", func(s string) bool { return !strings.Contains(s, text) })
	}
	sendMessage(term, "What is 17 times 23?")
	term.until("python again", func(s string) bool {
		return isIdle(s) && strings.Contains(s, "17 * 23 = 391")
	})
}

// descendants returns the processes that a process has started, directly or not.
func descendants(t *testing.T, pid int) (all []int) {
	t.Helper()
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		text, _ := os.ReadFile(file) // it may have ended
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(append(all, child), descendants(t, child)...)
			}
		}
	}
	return all
}
