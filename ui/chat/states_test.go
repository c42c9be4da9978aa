package chat

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/screentest"
)

const rich = "The roots are $\\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}$:\n\n" +
	"```python\nfrom math import sqrt\n\ndef roots(a, b, c):\n    d = sqrt(b * b - 4 * a * c)\n" +
	"    return (-b + d) / (2 * a), (-b - d) / (2 * a)\n```\n\n" +
	"| equation | roots |\n|---|---:|\n| x² - 1 | 1, -1 |\n| x² - 3x + 2 | 2, 1 |\n\n" +
	"1. **Divide** by `a` first.\n2. Mind the sign.\n"

func used(prompt, completion int) session.Event {
	return session.Done{Finish: session.FinishStop, Usage: session.Usage{Prompt: prompt,
		Completion: completion}}
}

// states are what a person can meet, each on a screen of its own.
var states = []struct {
	name  string
	o     func(t *testing.T) Options
	turns [][]session.Event
	play  func(s *stage)
}{
	{name: "empty", play: func(*stage) {}},
	{name: "recent", o: func(t *testing.T) Options { return Options{Store: earlierChats(t)} },
		play: func(s *stage) {
			s.send(s.m.readRecent()())
			s.keys("down")
		}},
	{name: "loading", o: func(*testing.T) Options {
		l := &Loading{}
		l.Begin("loading gpt-oss-20b")
		show, _ := l.Progress("reading gpt-oss-20b")
		show(4_100_000_000, 13_800_000_000)
		return Options{Loading: l}
	}, play: func(s *stage) { s.typing("a question before it is there") }},
	{name: "waiting", turns: [][]session.Event{{nil}}, play: func(s *stage) {
		s.ask("How does the cache work?")
		s.clock.advance(2300 * time.Millisecond)
		s.send(tick(s.clock.read()))
	}},
	{name: "reasoning", turns: [][]session.Event{turn(reasoning(strings.Repeat(thinking+" ", 4)),
		[]session.Event{nil})}, play: func(s *stage) {
		s.ask("How does the cache work?")
		s.play(80, step)
	}},
	{name: "answer", turns: [][]session.Event{turn(reasoning(thinking), answering(rich),
		[]session.Event{used(93, 120)})}, play: func(s *stage) {
		s.ask("Solve ax² + bx + c = 0")
		s.play(0, step)
	}},
	{name: "stopped", turns: [][]session.Event{turn(answering("It begins with "),
		[]session.Event{nil})}, play: func(s *stage) {
		s.ask("Tell me a story")
		s.play(3, step)
		s.keys("esc")
		s.play(0, step)
	}},
	{name: "tool-running", o: toolOptions(&scriptTool{output: []string{"0 1\n", "1 1\n", "2 2\n"},
		hold: make(chan struct{})}), turns: calling([]session.Event{nil}), play: func(s *stage) {
		s.ask("Compute")
		s.play(len(turn(reasoning("I should compute this.")))+3+3, step)
		s.clock.advance(2 * time.Second)
		s.send(tick(s.clock.read()))
	}},
	{name: "tool-done", o: toolOptions(&scriptTool{output: []string{"0 1\n1 1\n2 2\n"},
		result: session.ToolResult{Text: "ok", Files: []string{"/home/me/figure-1.png"}}}),
		turns: calling(turn(answering("Done."), []session.Event{used(120, 9)})),
		play: func(s *stage) {
			s.ask("Compute")
			s.play(0, step)
		}},
	{name: "status", o: toolOptions(&scriptTool{output: []string{"4\n"},
		result: session.ToolResult{Text: "ok"}}),
		turns: calling(turn(answering("Four."), []session.Event{session.Done{
			Finish: session.FinishStop, Usage: session.Usage{Prompt: 12_345, Cached: 12_288,
				Completion: 40}}})),
		play: func(s *stage) {
			s.ask("Compute")
			s.play(0, step)
		}},
	{name: "tool-failed", o: toolOptions(&scriptTool{output: []string{"Traceback:\n"},
		err: errors.New("NameError: name 'maths' is not defined")}),
		turns: calling(turn(answering("I will import it."), []session.Event{used(120, 9)})),
		play: func(s *stage) {
			s.ask("Compute")
			s.play(0, step)
		}},
	{name: "approval", o: toolOptions(&scriptTool{hold: make(chan struct{})}),
		turns: calling([]session.Event{nil}), play: func(s *stage) {
			s.ask("Delete my notes")
			s.play(len(turn(reasoning("I should compute this.")))+3, step)
			s.send(approvalAsk{server: "files", tool: "delete_file", reply: make(chan bool, 1),
				arguments: `{"path": "/home/me/notes.md", "force": true}`})
			s.clock.advance(settleTime)
			s.keys("left")
		}},
	{name: "approval-long", o: toolOptions(&scriptTool{hold: make(chan struct{})}),
		turns: calling([]session.Event{nil}), play: func(s *stage) {
			s.ask("Write my notes")
			s.play(len(turn(reasoning("I should compute this.")))+3, step)
			s.send(approvalAsk{server: "files", tool: "write_file", reply: make(chan bool, 1),
				arguments: `{"path": "/home/me/notes.md", "content": "# Notes\n\n` +
					strings.Repeat(`- a line of them, with some words\n`, 30) + `The end."}`})
		}},
	{name: "error", turns: [][]session.Event{turn(answering("Half an "), []session.Event{
		session.Done{Finish: session.FinishError, Err: errors.New("the step failed")}})},
		play: func(s *stage) {
			s.ask("first")
			s.play(0, step)
			s.runner.Refuse = errors.New("the device is gone: start ossrun again")
			s.ask("second")
			s.play(0, step)
		}},
	{name: "queue", turns: [][]session.Event{turn(answering("An answer that "), []session.Event{nil})},
		play: func(s *stage) {
			s.ask("first")
			s.play(3, step)
			s.ask("and then this")
			s.ask("and that")
			s.typing("a draft")
		}},
	{name: "edit", turns: [][]session.Event{turn(answering("Four."), []session.Event{used(50, 3)})},
		play: func(s *stage) {
			s.ask("What is two and two?")
			s.play(0, step)
			s.typing("/edit")
			s.keys("enter")
		}},
	{name: "branch", turns: [][]session.Event{turn(answering("Four."), []session.Event{used(50, 3)}),
		turn(answering("Five."), []session.Event{used(50, 3)})}, play: func(s *stage) {
		s.ask("What is two and two?")
		s.play(0, step)
		s.ask("/regenerate")
		s.play(0, step)
		s.typing("/branch")
		s.keys("enter")
	}},
	{name: "search", turns: [][]session.Event{turn(answering("Four."), []session.Event{used(50, 3)})},
		play: func(s *stage) {
			s.ask("What is two and two?")
			s.play(0, step)
			s.keys("ctrl+r")
			s.typing("two")
		}},
	{name: "paste", play: func(s *stage) {
		s.send(tea.KeyMsg{Type: tea.KeyRunes, Paste: true,
			Runes: []rune(strings.Repeat("a line of a log\n", 10_000))})
		s.typing(" why?")
	}},
	{name: "commands", play: func(s *stage) {
		s.typing("/")
		s.keys("down", "down")
	}},
	{name: "sessions", o: func(t *testing.T) Options { return Options{Store: earlierChats(t)} },
		play: func(s *stage) {
			s.choose("/sessions")
			s.keys("down")
		}},
	{name: "rename", o: func(t *testing.T) Options { return Options{Store: earlierChats(t)} },
		play: func(s *stage) {
			s.choose("/sessions")
			s.keys("down", "r")
		}},
	{name: "delete", o: func(t *testing.T) Options { return Options{Store: earlierChats(t)} },
		play: func(s *stage) {
			s.choose("/sessions")
			s.keys("down")
			s.send(s.send(key("d"))())
		}},
	{name: "help", play: func(s *stage) { s.ask("/help") }},
	{name: "context-75", turns: [][]session.Event{turn(answering("Long."),
		[]session.Event{used(100_000, 5)})}, play: func(s *stage) {
		s.ask("much text")
		s.play(0, step)
	}},
	{name: "context-90", turns: [][]session.Event{turn(answering("Longer."),
		[]session.Event{used(125_000, 5)})}, play: func(s *stage) {
		s.ask("more text")
		s.play(0, step)
	}},
	{name: "compact", turns: [][]session.Event{turn(answering("Four."), []session.Event{used(50, 3)}),
		turn(answering("The user asked for a sum; it is four."), []session.Event{used(90, 12)})},
		play: func(s *stage) {
			s.ask("What is two and two?")
			s.play(0, step)
			s.command("/compact")
		}},
	{name: "server-lost", turns: [][]session.Event{turn(answering("Half an "), []session.Event{
		session.Done{Finish: session.FinishError, Err: session.ErrGone}}),
		turn(answering("A whole "), []session.Event{nil})}, play: func(s *stage) {
		s.ask("What is two and two?")
		s.play(0, step)
		s.send(notice("the process that had the model is gone: goes on with gpt-oss-20b, which is " +
			"loaded here"))
	}},
}

// toolOptions are a chat with one tool, new for each screen.
func toolOptions(like *scriptTool) func(t *testing.T) Options {
	return func(*testing.T) Options {
		tool := *like
		return Options{Tools: []session.Tool{&tool}, Approval: NewApproval()}
	}
}

func putChat(store records.Store, id string, at time.Time, questions ...string) {
	m := newModel(context.Background(), Options{Model: script()})
	m.record.id, m.record.changed = id, at
	for _, question := range questions {
		a := newAnswer(m.palette, m.now, 0)
		a.finish(m.now, "", 0)
		m.talk.conversation.ask(question, 0, a)
	}
	k := saver{store: store}
	k.queue(m.snapshot())
	k.flush()
}

// earlierChats are conversations of some minutes to more than a year ago.
func earlierChats(t *testing.T) records.Store {
	store := diskStore(t)
	for i, c := range []struct {
		ago       time.Duration
		questions []string
	}{{400 * 24 * time.Hour, []string{"Trip to Lisbon"}},
		{50 * time.Hour, []string{"Explain the paged cache of this engine, and why a page has 32"}},
		{20 * time.Hour, []string{"日本語の要約", "もっと短く"}},
		{2 * time.Hour, slices.Repeat([]string{"Refactor the parser"}, 12)},
		{5 * time.Minute, []string{"Parse a CSV in Go", "and in Python?", "and faster?"}}} {
		putChat(store, fmt.Sprintf("0123abc%d", i), newClock().read().Add(-c.ago), c.questions...)
	}
	return store
}

var took = regexp.MustCompile(`→ python · (failed after )?[0-9.]+ s`)

// Every state, on four screens, as a terminal shows it.
func TestStates(t *testing.T) {
	for _, state := range states {
		t.Run(state.name, func(t *testing.T) {
			var all strings.Builder
			for _, size := range [][2]int{{80, 24}, {110, 34}, {160, 50}, {40, 12}} {
				o := Options{}
				if state.o != nil {
					o = state.o(t)
				}
				s := newStage(t, size[0], size[1], o, state.turns...)
				state.play(s)
				screen := screentest.New(size[0], size[1])
				fmt.Fprint(screen, strings.ReplaceAll(s.m.View(), "\n", "\r\n"))
				if len(screen.Unknown()) > 0 {
					t.Errorf("unknown sequences %q", screen.Unknown())
				}
				fmt.Fprintf(&all, "== %dx%d\n%s", size[0], size[1], screen)
			}
			// how long a tool took is the machine's
			whole := took.ReplaceAllString(all.String(), "→ python · ${1}0.0 s")
			compare(t, "state-"+state.name+".screen", whole)
		})
	}
}
