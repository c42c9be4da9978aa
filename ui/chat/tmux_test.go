//go:build unix

// A long session in tmux, a terminal that is not ours: what a person does in ten minutes, without
// the pauses.

package chat

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
)

var (
	inTmux = flag.Int("tmux", 1, "rounds that TestInTmux plays; .ci/steps/chat plays 2")
	played = flag.String("played", "", "the folder of the chat that TestInTmux plays")
)

// player answers by the first word of a question, at a thousand tokens a second.
func player(r session.Request) ([]session.Event, error) {
	last := r.Messages[len(r.Messages)-1]
	text := last.Text()
	word, rest, _ := strings.Cut(text, " ")
	prompt := 40
	for _, m := range r.Messages {
		prompt += len(m.Text()) / 4
	}
	var events []session.Event
	switch {
	case last.Role == "tool":
		events = answering("The tool says: " + text)
	case word == "code":
		events = turn(reasoning(thinking), answering("Code "+rest+":\n\n```go\nfunc f() int {\n"+
			"\treturn 1\n}\n```\n\n| a | b |\n|---|---|\n| 1 | $x^2$ |\n"))
	case word == "long":
		events = answering(strings.Repeat("word after word ", 600) + "and the end of " + rest)
	case word == "endless":
		events = append(answering(strings.Repeat("more and more ", 20)), nil)
	case word == "tool":
		return paced(calling()[0]), nil
	default:
		events = turn(reasoning("Let me see."), answering("An answer to "+text))
	}
	events = append(events, session.Done{Finish: session.FinishStop,
		Usage: session.Usage{Prompt: prompt, Cached: prompt - 20, Completion: len(events)}})
	return paced(events), nil
}

// paced waits before each event.
func paced(events []session.Event) (all []session.Event) {
	for _, e := range events {
		all = append(all, sessiontest.Do{Call: func() { time.Sleep(time.Millisecond) }}, e)
	}
	return all
}

// TestPlayed is the chat that TestInTmux starts in its terminal.
func TestPlayed(t *testing.T) {
	if *played == "" {
		t.Skip("TestInTmux starts it")
	}
	store, err := records.Open(records.Options{TTL: time.Hour,
		File: filepath.Join(*played, "kept.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	tool := &scriptTool{output: []string{"one\n", "two\n"},
		result: session.ToolResult{Text: "three"}}
	model := script()
	model.Script = player
	err = Run(t.Context(), Options{Model: model, In: os.Stdin, Out: os.Stdout,
		Store: store, HistoryPath: filepath.Join(*played, "history"),
		Tools: []session.Tool{tool}})
	if err != nil {
		t.Fatal(err)
	}
}

// A pane is a chat in tmux.
type pane struct {
	t             *testing.T
	socket        string
	width, height int
}

func (p *pane) tmux(arguments ...string) string {
	p.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-L", p.socket}, arguments...)...).Output()
	if err != nil {
		p.t.Fatalf("tmux %q: %v", arguments, err)
	}
	return string(out)
}

func (p *pane) screen() string { return p.tmux("capture-pane", "-p", "-t", "chat") }

// until waits for a screen that contains all of want, and checks what holds for every screen.
func (p *pane) until(want ...string) string {
	p.t.Helper()
	screen := ""
	hosttest.Until(p.t, func() string {
		return fmt.Sprintf("no %q on the screen:\n%s", want, screen)
	}, func() bool {
		screen = p.screen()
		for _, w := range want {
			if !strings.Contains(screen, w) {
				return false
			}
		}
		rows := strings.Split(strings.TrimRight(screen, "\n"), "\n")
		return strings.Contains(rows[len(rows)-1], "context ")
	})
	return screen
}

func (p *pane) keys(names ...string) {
	p.t.Helper()
	p.tmux(append([]string{"send-keys", "-t", "chat"}, names...)...)
}

// say types a line and sends it.
func (p *pane) say(text string) {
	p.t.Helper()
	p.tmux("send-keys", "-t", "chat", "-l", text)
	p.until(text[:min(len(text), 20)])
	p.keys("Enter")
}

func (p *pane) resize(width, height int) {
	p.width, p.height = width, height
	p.tmux("resize-window", "-t", "chat", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}

const idle = "Ask something"

func TestInTmux(t *testing.T) {
	hosttest.Program(t, "tmux")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	notes := filepath.Join(folder, "notes.txt")
	log := filepath.Join(folder, "log.txt")
	for path, text := range map[string]string{notes: "the secret is 42\n",
		log: strings.Repeat("a line of a log\n", 10_000)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := &pane{t: t, socket: fmt.Sprintf("ossrun-test-%d", os.Getpid())}
	p.tmux("-f", "/dev/null", "new-session", "-d", "-s", "chat", "-x", "80", "-y", "24",
		fmt.Sprintf("EDITOR='printf written >' %s -test.run '^TestPlayed$' -played %s; sleep 60",
			self, folder))
	t.Cleanup(func() { _ = exec.Command("tmux", "-L", p.socket, "kill-server").Run() })
	p.until(idle, "gpt-oss-20b")
	sizes := [][2]int{{80, 24}, {160, 50}, {40, 12}, {100, 30}}
	for round := range *inTmux {
		n := strconv.Itoa(round)
		p.say("question " + n)
		p.until("An answer to question "+n, idle)
		p.say("code " + n)
		p.until("x²", idle)
		p.keys("C-t")
		p.until("│")
		p.keys("C-t")
		p.say("tool " + n)
		p.until("The tool says:", idle)
		p.say("long " + n)
		p.until("Esc stops")
		p.say("queued " + n)
		p.until("next: queued " + n)
		p.keys("PPage", "PPage")
		p.until("more rows")
		p.keys("C-End")
		p.until("An answer to queued "+n, idle)
		p.say("endless " + n)
		p.until("more and more", "Esc stops")
		p.say("kept back " + n)
		p.until("next:")
		p.keys("Escape")
		p.until("kept back "+n, "stopped")
		p.keys("C-u")
		p.until(idle)
		p.keys("C-r")
		p.tmux("send-keys", "-t", "chat", "-l", "question "+n)
		p.until("❯ question " + n)
		p.keys("Escape")
		p.until(idle)
		p.tmux("load-buffer", log)
		p.tmux("paste-buffer", "-p", "-t", "chat")
		p.until("10,001 lines")
		p.keys("C-u")
		p.until(idle)
		p.tmux("send-keys", "-t", "chat", "-l", "read @"+notes)
		p.keys("Enter")
		p.until("the secret is 42", idle)
		p.keys("C-g") // the editor writes one word
		p.until("❯ written")
		p.keys("Enter")
		p.until("An answer to written", idle)
		p.say("/edit 1")
		p.until("❯ question 0", "Enter sends it")
		p.keys("Enter")
		p.until(idle, "An answer to question 0")
		p.say("/branch 1")
		p.until(idle, "Branch 1 of")
		p.keys("BTab")
		p.until(" effort")
		p.say("/help")
		p.until(idle, "Esc closes")
		p.keys("Enter") // closes it too, and is no beginning of Alt and the next key
		p.say("/new")
		p.until(idle)
		p.say("begun anew " + n)
		p.until("An answer to begun anew "+n, idle)
		p.tmux("send-keys", "-t", "chat", "-l", "/sessions ")
		p.until("question 0 ")
		p.keys("Enter")
		p.until(idle, "Continuing")
		size := sizes[(round+1)%len(sizes)]
		p.resize(size[0], size[1])
		p.until(idle)
	}
	p.resize(80, 24)
	p.say("the last question")
	p.until("An answer to the last question", idle)
	p.say("/quit")
	hosttest.Until(t, "the chat leaves", func() bool {
		return strings.Contains(p.screen(), "To continue: ossrun chat --resume")
	})
	if screen := p.screen(); !strings.Contains(screen, "An answer to the last question") {
		t.Errorf("the last answer does not stay:\n%s", screen)
	}
}
