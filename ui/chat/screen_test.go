package chat

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sched"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/runtime/session/sessiontest"
	"github.com/ossrun/ossrun/ui/chat/term"
)

var update = flag.Bool("update", false, "write the golden files anew")

// A stage drives a Model without a terminal and without goroutines of its own: the clock moves only
// explicitly, and turns are played event by event.
type stage struct {
	t      *testing.T
	m      *Model
	runner *sessiontest.Model
	clock  *clock
}

// A clock moves only explicitly.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) read() time.Time { return c.advance(0) }

func (c *clock) advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	return c.now
}

func newStage(t *testing.T, width, height int, o Options, turns ...[]session.Event) *stage {
	t.Helper()
	s := &stage{t: t, runner: script(turns...), clock: newClock()}
	o.Model = s.runner
	ctx, cancel := context.WithCancel(context.Background())
	s.m = newModel(ctx, o)
	s.m.clock = s.clock.read
	s.m.tools.inspect()
	t.Cleanup(func() { cancel(); s.m.background.Wait() })
	s.send(tea.WindowSizeMsg{Width: width, Height: height})
	return s
}

func (s *stage) send(msg tea.Msg) tea.Cmd {
	_, cmd := s.m.Update(msg)
	s.check()
	return cmd
}

// check holds what must be true of every screen.
func (s *stage) check() {
	s.t.Helper()
	view := s.m.View()
	if view == "" {
		return
	}
	rows := strings.Split(view, "\n")
	if len(rows) != s.m.height {
		s.t.Errorf("%d rows on a screen of %d", len(rows), s.m.height)
	}
	for _, row := range rows {
		if w := ansi.StringWidth(row); w > s.m.width {
			s.t.Errorf("row of %d columns on a screen of %d: %q", w, s.m.width, row)
		}
	}
}

func (s *stage) text() string {
	rows := strings.Split(ansi.Strip(s.m.View()), "\n")
	for i, r := range rows {
		rows[i] = strings.TrimRight(r, " ")
	}
	return strings.Join(rows, "\n") + "\n"
}

func (s *stage) keys(names ...string) {
	for _, n := range names {
		s.send(key(n))
	}
}

func (s *stage) typing(text string) { s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text)}) }

func key(name string) tea.KeyMsg {
	alt := strings.HasPrefix(name, "alt+")
	types := map[string]tea.KeyType{
		"enter": tea.KeyEnter, "esc": tea.KeyEsc, "tab": tea.KeyTab, "up": tea.KeyUp,
		"down": tea.KeyDown, "left": tea.KeyLeft,
		"right": tea.KeyRight, "home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp,
		"pgdown":    tea.KeyPgDown,
		"backspace": tea.KeyBackspace, "delete": tea.KeyDelete, "ctrl+c": tea.KeyCtrlC,
		"ctrl+d": tea.KeyCtrlD, "ctrl+j": tea.KeyCtrlJ,
		"ctrl+r": tea.KeyCtrlR, "shift+tab": tea.KeyShiftTab, "ctrl+g": tea.KeyCtrlG, "ctrl+t": tea.KeyCtrlT, "ctrl+w": tea.KeyCtrlW,
		"ctrl+k": tea.KeyCtrlK, "ctrl+p": tea.KeyCtrlP, "ctrl+u": tea.KeyCtrlU, "ctrl+s": tea.KeyCtrlS,
		"ctrl+left": tea.KeyCtrlLeft, "ctrl+right": tea.KeyCtrlRight, "shift+up": tea.KeyShiftUp,
	}
	if t, ok := types[strings.TrimPrefix(name, "alt+")]; ok {
		return tea.KeyMsg{Type: t, Alt: alt}
	}
	if len(name) == 1 {
		return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name)}
	}
	panic("no key " + name)
}

// ask types a question and sends it. The turn then waits in its event queue.
func (s *stage) ask(text string) {
	s.typing(text)
	if cmd := s.send(key("enter")); s.m.talk.preparing != "" || s.m.talk.unsaved > 0 {
		s.send(cmd()) // when it is kept
	}
}

// play shows what the turn has said so far: it waits until the event queue holds n events, or the
// turn's end where n is 0, stamps them a step apart and takes them as one frame.
func (s *stage) play(n int, step time.Duration) tea.Cmd {
	s.t.Helper()
	if s.m.talk.live == nil {
		s.t.Fatal("no turn is under way")
	}
	box := s.m.talk.live.queue
	hosttest.Until(s.t, "the turn goes on", func() bool {
		box.mu.Lock()
		defer box.mu.Unlock()
		return box.done || n > 0 && len(box.events) >= n
	})
	box.mu.Lock()
	f := frame{number: s.m.talk.live.number}
	if n == 0 || n > len(box.events) {
		n = len(box.events)
		f.done, f.result, f.err = box.done, box.result, box.err
	}
	f.events = append(f.events, box.events[:n]...)
	box.events = box.events[n:]
	box.mu.Unlock()
	for i := range f.events {
		f.events[i].time = s.clock.read()
		s.clock.advance(step)
	}
	f.time = s.clock.read()
	return s.send(f)
}

func (s *stage) golden(name string) {
	s.t.Helper()
	compare(s.t, name+".screen", s.text())
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

const step = 50 * time.Millisecond

const thinking = "The user asks how the cache works. I should say what a page is, show a line of " +
	"code and be short. " +
	"A page holds the keys and values of 32 positions. Window layers give pages back."

const paged = "The cache is cut into **pages** of 32 positions:\n\n" +
	"```go\nfunc page(position int) int {\n\treturn position / 32 // whole pages\n}\n```\n\n" +
	"- full layers keep every page\n- window layers keep the last 128 positions\n"

func turn(events ...[]session.Event) []session.Event {
	var all []session.Event
	for _, e := range events {
		all = append(all, e...)
	}
	return all
}

func TestStart(t *testing.T) {
	s := newStage(t, 80, 16,
		Options{Notice: "a tiny model trained for this demonstration: it knows little"})
	s.golden("start")
}

func TestReasoningThenAnswer(t *testing.T) {
	s := newStage(t, 80, 24, Options{}, turn(reasoning(thinking), answering(paged),
		[]session.Event{stopped(93, 120)}))
	s.ask("How does the paged cache work?")
	s.golden("waiting")
	s.play(20, step)
	s.golden("reasoning")
	s.play(len(strings.Fields(thinking))-20+16, step)
	s.golden("code-streaming")
	s.play(0, step)
	s.golden("folded")
	s.keys("ctrl+t")
	s.golden("unfolded")
	compare(t, "unfolded.ansi", strings.ReplaceAll(s.m.View(), "\x1b", "␛")+"\n")
	s.keys("ctrl+t")
	s.send(tea.WindowSizeMsg{Width: 40, Height: 10})
	s.golden("narrow")
	s.send(tea.WindowSizeMsg{Width: 200, Height: 60})
	s.golden("wide")
	for _, size := range [][2]int{{1, 1}, {2, 2}, {5, 3}, {10, 4}, {300, 100}} {
		s.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
	}
}

func TestNoColor(t *testing.T) {
	s := newStage(t, 60, 20, Options{NoColor: true},
		turn(reasoning("Short."), answering("Use `go run` for **that**."),
			[]session.Event{stopped(9, 9)}))
	s.ask("how?")
	s.play(0, step)
	view := s.m.View()
	compare(t, "nocolor.ansi", strings.ReplaceAll(view, "\x1b", "␛")+"\n")
	for _, seq := range strings.Split(view, "\x1b[")[1:] {
		for p := range strings.SplitSeq(seq[:strings.IndexByte(seq, 'm')], ";") {
			if len(p) == 2 {
				t.Errorf("colour %q without colours", p)
			}
		}
	}
}

func TestStop(t *testing.T) {
	s := newStage(t, 60, 16, Options{}, turn(answering("It begins with "), []session.Event{nil}),
		turn(answering("Yes."), []session.Event{stopped(90, 2)}))
	s.ask("tell me a story")
	s.play(4, step)
	s.keys("esc")
	s.golden("stopping")
	s.play(0, step)
	s.golden("stopped")
	if s.m.talk.live != nil {
		t.Fatal("the turn goes on after Esc")
	}
	s.ask("and now?")
	s.play(0, step)
	var said []string
	for _, m := range s.runner.Requests[1].Messages {
		said = append(said, m.Text())
	}
	if got, want := strings.Join(said, "|"),
		"tell me a story|It begins with |and now?"; got != want {
		t.Errorf("the model was given %q, want %q", got, want)
	}
}

func TestErrors(t *testing.T) {
	s := newStage(t, 70, 18, Options{},
		turn(answering("Half an "),
			[]session.Event{session.Done{Finish: session.FinishError,
				Err: errors.New("the step failed: out of pages")}}))
	s.ask("first")
	s.play(0, step)
	s.runner.Refuse = &sched.ContextLengthError{Max: 131072, Needed: 140000}
	s.ask("a very long question")
	s.play(0, step)
	s.golden("errors")
	if s.m.input.editor.text != "a very long question" {
		t.Errorf("the refused question is not back in the editor but %q", s.m.input.editor.text)
	}
	if n := len(s.m.talk.conversation.messages()); n != 2 {
		t.Errorf("%d messages, want the first question and its half answer", n)
	}
	s.runner.Refuse = nil
	s.runner.Turns = [][]session.Event{turn(answering("Fine."), []session.Event{stopped(10, 2)})}
	s.keys("enter")
	s.play(0, step)
	if !strings.Contains(s.text(), "Fine.") {
		t.Errorf("the chat does not go on after an error:\n%s", s.text())
	}
}

func TestEndings(t *testing.T) {
	for want, done := range map[string]session.Done{
		"Answer cut off after 13 tokens (--max-tokens)": {Finish: session.FinishLength,
			Usage: session.Usage{Prompt: 5, Completion: 13}},
		"The engine stopped unexpectedly. Type /regenerate": {Finish: session.FinishError},
		"Answer cut off after 12 tokens (limit set by the server)": {Finish: session.FinishLength,
			Usage: session.Usage{Prompt: 5, Completion: 12}},
		"The context is full. Type /compact": {Finish: session.FinishLength,
			Usage: session.Usage{Prompt: 131000, Completion: 72}},
		"The model called a tool, and none is": {Finish: session.FinishToolCalls},
	} {
		o := Options{}
		if strings.Contains(want, "--max-tokens") {
			o.Request.MaxTokens = 13
		}
		s := newStage(t, 90, 18, o, turn([]session.Event{
			session.CallStart{Name: "weather", Recipient: "functions.weather"},
			session.CallArguments{Text: "{\"city\":"}, session.CallArguments{Text: " \"Paris\"}"},
			session.CallEnd{}, done}))
		s.ask("why?")
		s.play(0, step)
		if text := s.text(); !strings.Contains(text, want) ||
			!strings.Contains(text, "→ weather\n   │ city  Paris\n") {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
}

func TestHelp(t *testing.T) {
	s := newStage(t, 80, 34, Options{})
	s.typing("/")
	s.golden("commands")
	s.typing("help")
	s.keys("enter")
	s.golden("help")
	if text := s.text(); !strings.Contains(text, "Ctrl+J") || !strings.Contains(text, "↓ ") {
		t.Errorf("it does not open at its beginning:\n%s", text)
	}
}

// A page covers the conversation until it is closed, shows all its rows, and loses none of the
// conversation's.
func TestPages(t *testing.T) {
	s := newStage(t, 80, 24, Options{Tools: []session.Tool{&scriptTool{}}},
		fine("Four."),
		fine("Five."))
	s.ask("What is two and two?")
	s.play(0, step)
	before := s.text()
	s.m.Update(key("?"))
	if view := ansi.Strip(s.m.View()); !strings.Contains(view, "Esc closes · ↓ 20 more rows") {
		t.Errorf("its first frame:\n%s", view)
	}
	s.keys("?")
	for name, close := range map[string]string{"esc": "esc", "enter": "enter", "?": "?"} {
		s.keys("?")
		if text := s.text(); !strings.Contains(text, "Keys") || strings.Contains(text, "Four.") ||
			!strings.Contains(text, "Esc closes · ↓ ") {
			t.Fatalf("? shows\n%s", text)
		}
		s.keys("pgdown", "up", "down", "pgdown", "pgdown")
		if text := s.text(); !strings.Contains(text, "/quit") || strings.Contains(text, "Keys") ||
			strings.Contains(text, "more row") {
			t.Errorf("its end is\n%s", text)
		}
		if s.keys(close); s.text() != before {
			t.Errorf("after %s:\n%s", name, s.text())
		}
	}
	s.command("/tools")
	if text := s.text(); !strings.Contains(text, "The model may call 1 tool") {
		t.Errorf("/tools shows\n%s", text)
	}
	s.typing("is it? ")
	s.keys("?")
	if text := s.text(); s.m.input.editor.text != "is it? ?" || !strings.Contains(text, "Four.") {
		t.Errorf("typing leaves %q and\n%s", s.m.input.editor.text, text)
	}
	s.ask("")
	s.keys("?")
	s.play(0, step)
	if s.keys("esc"); !strings.Contains(s.text(), "Five.") {
		t.Errorf("what came behind a page:\n%s", s.text())
	}
}

func TestWideCharacters(t *testing.T) {
	s := newStage(t, 40, 14, Options{},
		turn(answering("日本語のテキストは折り返されます。👩‍👩‍👧‍👦 と 🎉🎉🎉 も。\n\n| 名前 | 値 |\n|---|---|\n| 日本 | 🇯🇵 |\n"),
			[]session.Event{stopped(9, 30)}))
	s.ask("これは長い質問で、一行に収まりませんから折り返されるはずです。")
	s.play(0, step)
	s.golden("wide-characters")
}

// An address in a link is text too: of a query nothing is escaped.
func TestHostileLinks(t *testing.T) {
	for address, linked := range map[string]bool{"https://go.dev/a?b=c": true,
		"https://go.dev/\u009b31m\u202e": true, "https://go\u009b31m.dev/": true,
		"https://go.dev/?q=\u009b31m": false, "https://go.dev/?\u202e": false,
		"https://go.dev?q=\ufeff#x": false, "https://go.dev/?q=ü": true,
		"javascript:alert(1)": false} {
		got := link(address, "x")
		if strings.Contains(got, "\x1b]8;;h") != linked ||
			strings.ContainsAny(got, "\u009b\u202e\ufeff") {
			t.Errorf("%q: %q", address, got)
		}
	}
}

// FuzzLink: nothing of an address ends the sequence that it is in, or is hidden in it.
func FuzzLink(f *testing.F) {
	f.Add("https://go.dev/?q=\u009b31m\x1b\\x")
	f.Add("http://a:b@[::1%25\u202e]:80/%zz?\xff#\x07")
	f.Fuzz(func(t *testing.T, address string) {
		painted := link(address, "x")
		inner, linked := strings.CutPrefix(painted, "\x1b]8;;http")
		inner, ended := strings.CutSuffix(inner, "\x1b\\x\x1b]8;;\x1b\\")
		if painted != "x" && (!linked || !ended || term.Clean(inner) != inner ||
			strings.ContainsAny(inner, "\n\t")) {
			t.Fatalf("%q is painted as %q", address, painted)
		}
	})
}

func TestHostileText(t *testing.T) {
	evil := "\x1b[2J\x1b]0;owned\x07 \u009b31m \x00\b\u202e &#27;[31m " +
		"`\x1b[5m`\n\n```\n\x1b[1;1H\r\n```\n| \x1b[m | x |\n|---|---|\n"
	s := newStage(t, 60, 24, Options{}, turn(reasoning(evil), answering(evil), []session.Event{
		session.CallStart{Recipient: "functions.\x1b[2J"}, session.CallArguments{Text: evil},
		session.Done{Finish: session.FinishError, Err: errors.New(evil)}}))
	s.m.unfolded = true
	s.send(tea.KeyMsg{Type: tea.KeyRunes,
		Runes: []rune("pasted \x1b[31mred\x1b[m \x1b]52;c;aGk=\x07 \b" + evil), Paste: true})
	s.keys("enter")
	s.play(0, step)
	for _, seq := range strings.Split(s.m.View(), "\x1b")[1:] {
		end := strings.IndexByte(seq, 'm')
		if seq[0] != '[' || end < 0 || strings.Trim(seq[1:end], "0123456789;") != "" {
			t.Errorf("a sequence reaches the terminal: %q", seq[:min(len(seq), 20)])
		}
	}
	if strings.ContainsAny(ansi.Strip(s.m.View()), "\x00\b\r\a\u009b\u202e") {
		t.Error("a control character reaches the terminal")
	}
}
