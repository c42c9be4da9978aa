//go:build unix

// kill -9 of the chat, of the process that has the model, and of a tool, each round when the screen
// shows another point of a turn. What a person has sent is never lost.

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

// asked are the messages of one round, each said once only.
func asked(round int) []string {
	return []string{fmt.Sprintf("What is ossrun? (%d)", round),
		fmt.Sprintf("How do I use the server? (%d)", round),
		fmt.Sprintf("Write a poem of five lines. (%d)", round)}
}

// killedAt waits for the point of a turn at which a process is killed in this round: at once, when
// the model reads, when some of its thoughts or of its answer are shown, or when it has ended.
func killedAt(term *terminal, round int) {
	term.t.Helper()
	if shown := []string{"", "Esc stops", "thought", "tok/s"}[round%4]; shown != "" {
		term.until(shown, func(s string) bool {
			return strings.Contains(s, shown) || round%4 < 3 && atRest(s)
		})
	}
}

// exported is the whole conversation, as /export writes it.
func exported(t *testing.T, term *terminal) string {
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

// sent types a message, and waits until the chat has taken it.
func sent(term *terminal, text string) {
	term.send(text)
	term.wait("❯ " + text)
	term.send("\r")
	term.until("an empty editor", func(s string) bool {
		return strings.Contains(s, "❯ Ask something") && strings.Contains(s, text)
	})
}

func atRest(s string) bool {
	return strings.Contains(s, "❯ Ask something") && !strings.Contains(s, "Esc stops")
}

func TestKilledChats(t *testing.T) {
	t.Parallel()
	term, cmd := startInTerminal(t, 100, 40, "chat", "--alone", "--model", "demo", "--temperature",
		"0")
	term.wait("medium effort")
	var all []string
	for round := range *kills {
		messages := asked(round)
		for _, text := range messages[:1+round%3] {
			sent(term, text)
			all = append(all, text)
			if round%2 == 0 { // else what follows is sent while the answer is written
				term.until("an answer", atRest)
			}
		}
		killedAt(term, round)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		term, cmd = runInTerminal(t, 100, 40, again(cmd, "chat", "--alone", "--continue",
			"--temperature", "0"))
		screen := term.wait("Continuing", "medium effort")
		if !strings.Contains(screen, "❯ Ask something") { // what waited is in the editor
			term.send("\r")
			term.until("an answer to what waited", atRest)
		}
		text := exported(t, term)
		for _, message := range all {
			if n := strings.Count(text, "\n"+message+"\n"); n != 1 {
				t.Fatalf("round %d: %q is there %d times:\n%s", round, message, n, text)
			}
		}
	}
	sent(term, "What is ossrun?")
	term.until("an answer after all kills", atRest)
}

// What the screen shows as sent is there again, however soon after Enter the kill comes.
func TestKilledAtEnter(t *testing.T) {
	t.Parallel()
	term, cmd := startInTerminal(t, 100, 40, "chat", "--alone", "--model", "demo", "--temperature",
		"0")
	term.wait("medium effort")
	sent(term, "What is ossrun?")
	term.until("an answer", atRest)
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
		term, cmd = runInTerminal(t, 100, 40, again(cmd, "chat", "--alone", "--continue",
			"--temperature", "0"))
		screen := term.wait("Continuing", "medium effort")
		there := strings.Contains(screen, text)
		if !there { // a draft of before may have come back, and would go before the command
			term.send("\x15")
			term.wait("❯ Ask something")
			there = strings.Contains(exported(t, term), text)
		}
		t.Logf("round %d: sent on the screen %v, kept %v", round, shown, there)
		if shown && !there {
			t.Fatalf("round %d: %q was on the screen and is lost:\n%s", round, text, screen)
		}
		term.send("\x15") // text given back to the editor would precede the next one
		term.wait("❯ Ask something")
	}
}

// The process that has the model is killed while a chat that has joined it is answered.
func TestKilledServers(t *testing.T) {
	t.Parallel()
	host, first := startInTerminal(t, 100, 40, "chat", "--model", "demo", "--temperature", "0")
	host.wait("medium effort")
	var all []string
	for round := range *kills {
		// another chat each round: it goes on with the conversation, and joins who has the model
		args := []string{"chat", "--model", "demo", "--temperature", "0"}
		if round > 0 {
			args = append(args, "--continue")
		}
		term, cmd := beside(t, first, args...)
		term.wait("medium effort")
		if round == 0 {
			term.wait("joined the chat of process")
		}
		for i, text := range asked(round)[:2] {
			sent(term, text)
			all = append(all, text)
			if i == 0 {
				killedAt(term, round)
				_ = first.Process.Kill()
				_ = first.Wait()
			}
		}
		term.until("an answer of whoever has the model now", func(s string) bool {
			return atRest(s) && !strings.Contains(s, "next: ")
		})
		text := exported(t, term)
		for _, message := range all {
			if n := strings.Count(text, "\n"+message+"\n"); n != 1 {
				t.Fatalf("round %d: %q is there %d times:\n%s", round, message, n, text)
			}
		}
		if last := text[strings.LastIndex(text, "## You"):]; !strings.Contains(last, "\n## demo\n\n") {
			t.Fatalf("round %d: the last question has no answer:\n%s", round, last)
		}
		// it is left, so that its conversation is free; a third process has the model then
		next, other := beside(t, first, "chat", "--model", "demo", "--temperature", "0")
		next.wait("joined the chat of process")
		term.send("\x03\x03")
		_ = cmd.Wait()
		sent(next, "hello")
		next.until("the model is loaded there", func(s string) bool {
			return atRest(s) && strings.Contains(s, "continues with demo,")
		})
		newest(t, first, all[len(all)-1])
		first = other
	}
}

// newest makes the conversation that has a message the latest one again.
func newest(t *testing.T, of *exec.Cmd, message string) {
	t.Helper()
	store, err := records.Open(records.Options{TTL: time.Hour,
		File: filepath.Join(homeOf(of), "ossrun", "kept.db")})
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
		sent(term, text)
		term.until("a process of the tool", func(s string) bool { // the sandbox, then what it runs
			pids := below(t, cmd.Process.Pid)
			if len(pids) < 1+round%2 {
				return atRest(s)
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
			return refused || atRest(s)
		})
		if refused {
			term.send("\x15")
			term.until("an empty line", atRest)
		} else if shown := exported(t, term); strings.Count(shown, "\n"+text+"\n") != 1 {
			t.Fatalf("round %d: %q is lost:\n%s", round, text, shown)
		}
		term.send("/new\r")
		term.until("another conversation", func(s string) bool { return !strings.Contains(s, text) })
	}
	sent(term, "What is 17 times 23?")
	term.until("python again", func(s string) bool {
		return atRest(s) && strings.Contains(s, "17 * 23 = 391")
	})
}

// below are the processes that a process has started, and those of these.
func below(t *testing.T, pid int) (all []int) {
	t.Helper()
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		text, _ := os.ReadFile(file) // it may have ended
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(append(all, child), below(t, child)...)
			}
		}
	}
	return all
}
