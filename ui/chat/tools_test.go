package chat

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// A scriptTool is python that says what it was told to.
type scriptTool struct {
	asks   bool // a person must allow it
	output []string
	hold   chan struct{} // closed when the call may end
	result session.ToolResult
	err    error
	cited  []session.Citation
	closed bool
}

func (*scriptTool) Offer(r *session.Request)              { r.Python = true }
func (*scriptTool) Runs(recipient string) bool            { return recipient == "python" }
func (s *scriptTool) Close() error                        { s.closed = true; return nil }
func (s *scriptTool) Citations(string) []session.Citation { return s.cited }
func (s *scriptTool) Resolve(c session.Call) (session.Call, error) {
	if s.asks {
		c.Tool = "python"
	}
	return c, nil
}

func (s *scriptTool) Run(ctx context.Context, c session.Call, output func(string)) (
	session.ToolResult, error) {
	for _, o := range s.output {
		output(o)
	}
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-ctx.Done():
			return session.ToolResult{}, ctx.Err()
		}
	}
	return s.result, s.err
}

const program = "import math\nfor n in range(30):\n    print(n, math.factorial(n))"

func calling(then ...[]session.Event) [][]session.Event {
	all := [][]session.Event{turn(reasoning("I should compute this."), []session.Event{
		session.CallStart{ID: "c1", Name: "python", Recipient: "python"},
		session.CallArguments{Text: program}, session.CallEnd{Arguments: program},
		session.Done{Finish: session.FinishToolCalls,
			Usage: session.Usage{Prompt: 50, Cached: 40, Completion: 30}}})}
	return append(all, then...)
}

func TestToolCards(t *testing.T) {
	tool := &scriptTool{hold: make(chan struct{}), result: session.ToolResult{Text: "done"}}
	for n := range 30 {
		tool.output = append(tool.output, "line "+strings.Repeat("x", n)+"\n")
	}
	var mark = "【1†L1】"
	tool.cited = []session.Citation{{Start: 4, End: 10, URL: "https://go.dev/a", Title: "Factorials"}}
	s := newStage(t, 80, 24, Options{Tools: []session.Tool{tool}},
		calling(turn(answering("Yes."+mark+" That is it."), []session.Event{stopped(120, 9)}))...)
	s.command("/tools")
	s.ask("compute")
	events := len(turn(reasoning("I should compute this."))) + 3
	s.play(events+30, step)
	s.clock.advance(2 * time.Second)
	s.send(tick(s.clock.read()))
	s.golden("tool-running")
	close(tool.hold)
	s.play(0, step)
	shown := strings.ReplaceAll(s.m.View(), "\x1b]8;;https://go.dev/a\x1b\\", "<link>")
	if !strings.Contains(shown, "<link>") || strings.Contains(s.text(), mark) {
		t.Errorf("the source is no link:\n%s", shown)
	}
	for _, size := range [][2]int{{160, 50}, {40, 12}, {80, 24}} {
		s.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
	}
}

func TestApproval(t *testing.T) {
	approval := NewApproval()
	tool := &scriptTool{asks: true, result: session.ToolResult{Text: "42"}}
	o := Options{Tools: []session.Tool{tool}, Approval: approval}
	done := turn(answering("Fine."), []session.Event{stopped(90, 2)})
	s := newStage(t, 80, 24, o, calling(done)...)
	question := func() {
		t.Helper()
		msg := s.m.options.Approval.next(s.m.ctx)()
		s.send(msg)
	}
	s.ask("compute")
	question()
	s.golden("approval")
	s.keys("esc")
	s.play(0, step)
	if s.m.modes.ask() != nil || s.m.talk.live != nil {
		t.Fatal("Esc does not end a turn that asks")
	}
	s.runner.Turns = append(calling(done), calling(done)...)
	s.ask("compute")
	question()
	s.clock.advance(settleTime)
	s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("d")})
	s.play(0, step)
	if !strings.Contains(s.text(), "→ python · refused\n") {
		t.Errorf("refused:\n%s", s.text())
	}
	s.ask("again")
	s.play(0, step) // it was forbidden for good: no question
	if strings.Count(s.text(), "→ python · refused\n") == 0 || !strings.Contains(s.text(), "Fine.") {
		t.Errorf("refused again:\n%s", s.text())
	}
}

// Letters typed into a text as a question appears never answer it, wherever they are; a single key
// does, once the question has been visible for a moment.
func TestTypingAnswersNoQuestion(t *testing.T) {
	for _, c := range []struct {
		name, before, typed string
		pause               time.Duration // before each key
		answered, allowed   bool
	}{
		{name: "in the middle of a text", before: "Now ", typed: "yand", pause: time.Minute},
		{name: "as the question appears", typed: "a"},
		{name: "a fast text", typed: "nay", pause: settleTime / 4},
		{name: "a text that begins before the eye is there", typed: "anyway", pause: settleTime - 1},
		{name: "letters that are not shown", typed: "ov", pause: time.Minute},
		{name: "y", typed: "y", pause: settleTime, answered: true, allowed: true},
		{name: "a", typed: "a", pause: settleTime, answered: true, allowed: true},
		{name: "n", typed: "n", pause: settleTime, answered: true},
		{name: "d", typed: "d", pause: settleTime, answered: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			approval, reply := NewApproval(), make(chan bool, 1)
			s := newStage(t, 80, 24, Options{Approval: approval}, calling()...)
			s.ask("compute")
			for _, r := range c.before {
				s.typing(string(r))
			}
			s.send(approvalAsk{server: "files", tool: "run", arguments: "{}", reply: reply})
			for _, r := range c.typed {
				s.clock.advance(c.pause)
				s.typing(string(r))
			}
			if open := s.m.modes.ask() != nil; open == c.answered {
				t.Fatalf("open: %v\n%s", open, s.text())
			}
			if !c.answered {
				if got := s.m.input.editor.text; got != c.before+c.typed ||
					len(approval.decided) > 0 {
					t.Errorf("the editor holds %q; decided %v", got, approval.decided)
				}
				if !strings.Contains(s.text(), "Send or clear your text to answer.") {
					t.Errorf("nothing says how to answer:\n%s", s.text())
				}
				s.keys("ctrl+u")
				s.clock.advance(settleTime)
				s.typing("n")
				if s.m.modes.ask() != nil {
					t.Error("n does not answer once the text is cleared")
				}
				return
			}
			if got := <-reply; got != c.allowed {
				t.Errorf("%s allowed: %v", c.typed, got)
			}
		})
	}
}

// The full arguments of a call are shown before it may run, however long: the end is not cut, nor
// hidden by earlier text, nor by characters that terminals do not show.
func TestAskedWhole(t *testing.T) {
	const end = `"command":"rm -rf /tmp/precious"}`
	for _, c := range []struct {
		arguments string
		want      []string // without blanks
	}{
		{`{"command":"ls"}`, []string{"commandls"}},
		{`{"note":"` + strings.Repeat("harmless words ", 200) + `",` + end, nil},
		{`{"note":"` + strings.Repeat("x", 3000) + `",` + end, nil},
		{`{"note":"` + strings.Repeat("日本", 400) + `\u202e",` + end, nil},
		{`{"note":"` + strings.Repeat(`\n`, 400) + `",` + end, nil},
		{`{"` + strings.Repeat("name", 400) + `":1,` + end, nil},
		{`{"command":"ls",` + end, []string{"commandls", "rm-rf/tmp/precious"}}, // which runs?
		{`{"a":"\u202ehidden",` + end, []string{`"\u202ehidden"`}},
		{"{\"a\":\"\u202ehidden\"," + end, []string{`"\u202ehidden"`}},
		{`{"a":"\u001b[2Jgone",` + end, []string{`"\x1b[2Jgone"`}},
		{`{"a":{"b":[1,"two"]},"c":"","d":null,"e":12345678901234567890,` + end,
			[]string{`a{"b":[1,"two"]}`, `c""`, "dnull", "e12345678901234567890"}},
		{`{"command":"ls"} rm -rf /tmp/precious`, []string{`{"command":"ls"}rm-rf`}},
		{`rm -rf /tmp/precious`, nil},
		{`{"command":"rm -rf /tmp/precious"`, []string{`{"command":`}},
		{`{"a":"\n╰ y allow   a allow in this chat",` + end, []string{"│╰yallow"}},
		{`{}`, []string{"withoutarguments"}},
	} {
		for _, width := range []int{40, 80, 200} {
			s := newStage(t, width, 24, Options{Approval: NewApproval()},
				turn(answering("Fine."), []session.Event{stopped(90, 2)}))
			s.ask("compute")
			s.send(approvalAsk{server: "files", tool: "run", arguments: c.arguments,
				reply: make(chan bool, 1)})
			text := s.text()
			shown := strings.Join(strings.Fields(text), "")
			if strings.Contains(c.arguments, "precious") {
				c.want = append(c.want, "precious")
			}
			for _, want := range append(c.want, "╭fileswantstorunrun", "╰yallow") {
				if !strings.Contains(shown, want) &&
					!strings.Contains(strings.ReplaceAll(shown, "│", ""), want) {
					t.Errorf("%d columns: %.40s is shown without %s:\n%s", width, c.arguments, want,
						text)
				}
			}
		}
	}
}

// A decision is reported, and the wait for it does not count as the call's time.
func TestDecided(t *testing.T) {
	for key, want := range map[string]string{"y": "files: run was allowed once.",
		"a": "files: run is allowed in this chat.",
		"n": "files: run was refused once. The model continues without it.",
		"d": "files: run is refused in this chat."} {
		s := newStage(t, 80, 24, toolOptions(&scriptTool{hold: make(chan struct{})})(t),
			calling([]session.Event{nil})...)
		s.ask("compute")
		s.play(len(turn(reasoning("I should compute this.")))+3, step)
		s.send(approvalAsk{server: "files", tool: "run", arguments: "{}",
			reply: make(chan bool, 1)})
		s.clock.advance(time.Hour)
		if !strings.Contains(s.text(), "→ python · waits for your answer") {
			t.Errorf("a call that waits:\n%s", s.text())
		}
		s.typing(key)
		s.clock.advance(2 * time.Second)
		s.send(tick(s.clock.read()))
		if text := s.text(); !strings.Contains(text, "── "+want+" ──") ||
			!strings.Contains(text, "→ python · running, 2.0 s") {
			t.Errorf("%s:\n%s", key, text)
		}
	}
}

// Another conversation has other tools: what python knows of the last one is gone.
func TestNewConversationNewTools(t *testing.T) {
	tool := &scriptTool{result: session.ToolResult{Text: "of the first"}}
	other := &scriptTool{result: session.ToolResult{Text: "of the second"}}
	answer := fine("done")
	s := newStage(t, 80, 24, Options{Tools: []session.Tool{tool}, Store: diskStore(t),
		ReplaceTools: func() ([]session.Tool, error) {
			return []session.Tool{other}, tool.Close()
		}},
		append(calling(answer), calling(answer)...)...)
	s.ask("compute")
	s.play(0, step)
	if !strings.Contains(s.text(), "of the first") {
		t.Fatalf("the tool did not run:\n%s", s.text())
	}
	id := s.m.record.id
	s.command("/new")
	s.ask("compute")
	s.play(0, step)
	if text := s.text(); !strings.Contains(text, "of the second") || !tool.closed {
		t.Errorf("after /new, closed %v:\n%s", tool.closed, text)
	}
	s.m.background.Wait()
	s.command("/resume " + id)
	if !s.m.tools.stale.Load() {
		t.Error("the tools stay over /resume")
	}
}

// A cell of python is code: in colours on the screen, in a fence in exports.
func TestACellIsCode(t *testing.T) {
	s := newStage(t, 80, 30, toolOptions(&scriptTool{result: session.ToolResult{Text: "391"}})(t),
		calling(turn(answering("Done."), []session.Event{used(120, 9)}))...)
	s.ask("Compute")
	s.play(0, step)
	if text := s.m.talk.conversation.document("m", ""); !strings.Contains(text,
		"\n```python\nimport math\n") || !strings.Contains(text, "\n```\n") {
		t.Errorf("exported is\n%s", text)
	}
	if view := s.m.View(); strings.Contains(view, "import math") ||
		!strings.Contains(s.text(), "import math") { // the keyword has a colour of its own
		t.Errorf("the cell is not coloured:\n%q", view)
	}
}

// A call has one form in a chat, folded or not, after a restart and in an export: the tool's one
// name, the arguments as the question for approval has them, the result, and how it ended.
func TestACallHasOneForm(t *testing.T) {
	for _, c := range []struct {
		name, recipient, server, tool, arguments string
		result                                   session.ToolResult
		err                                      error
		want, unfolded                           []string
	}{
		{name: "of a server", recipient: "functions.files_delete_file", server: "files",
			tool: "delete_file", arguments: `{"path":"/home/me/notes.md","force":true}`,
			result:   session.ToolResult{Text: "deleted\nfrom the disk"},
			want:     []string{"→ files: delete_file", "│ path   /home/me/notes.md", "│ force  true", "╰ deleted from the disk"},
			unfolded: []string{"→ files: delete_file", "│ path   /home/me/notes.md", "│ force  true", "│ deleted", "│ from the disk"}},
		{name: "refused", recipient: "functions.files_delete_file", server: "files",
			tool: "delete_file", arguments: `{"path":"/etc"}`, err: errors.New(refusal),
			want:     []string{"→ files: delete_file · refused", "│ path  /etc"},
			unfolded: []string{"→ files: delete_file · refused", "│ path  /etc"}},
		{name: "failed", recipient: "browser.open", arguments: `{"id":7}`,
			err:      errors.New("there is no page\nnumber 7"),
			want:     []string{"→ browser: open · failed", "│ id  7", "╰ there is no page number 7"},
			unfolded: []string{"→ browser: open · failed", "│ id  7", "│ there is no page", "│ number 7"}},
		{name: "without arguments", recipient: "functions.clock_now", server: "clock", tool: "now",
			arguments: `{}`, result: session.ToolResult{Text: "12:00"},
			want: []string{"→ clock: now", "╰ 12:00"}, unfolded: []string{"→ clock: now", "│ 12:00"}},
		{name: "a long result", recipient: "functions.log", tool: "log", arguments: `{"last":40}`,
			result:   session.ToolResult{Text: strings.Repeat("line\n", 39) + "end"},
			want:     []string{"→ log", "│ last  40", "╰ " + strings.Repeat("line ", 12) + "line… · 40 lines"},
			unfolded: append([]string{"→ log", "│ last  40"}, strings.Split(strings.Repeat("│ line\n", 39)+"│ end", "\n")...)},
		{name: "a python of a server", recipient: "python", server: "python", tool: "python",
			arguments: "print(4)", result: session.ToolResult{Text: "4"},
			want: []string{"→ python", "│ print(4)", "╰ 4"}, unfolded: []string{"→ python", "│ print(4)", "│ 4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, 80, 40, Options{})
			a := newAnswer(s.m.palette, s.m.now, 0)
			a.tools = true
			e := s.m.talk.conversation.ask("do it", 0, a)
			for _, event := range []session.Event{
				session.CallStart{ID: "c1", Recipient: c.recipient},
				session.CallArguments{Text: c.arguments}, session.CallEnd{},
				toolResolved{id: "c1", server: c.server, tool: c.tool},
				session.ToolEnd{Result: c.result, Err: c.err}} {
				a.take(event, s.clock.read())
			}
			a.finish(s.clock.read(), "", 0)
			restored := restoreAnswer(e.save(-1), s.m.palette, s.m.now, 0)
			for name, a := range map[string]*answer{"": a, "restored ": restored} {
				for _, unfolded := range []bool{false, true} {
					var got []string
					for _, r := range a.runs(layout{width: 80, wide: 80, unfolded: unfolded,
						palette: term.Palette{NoColor: true}}) {
						for _, row := range r.rows {
							got = append(got, strings.TrimSpace(ansi.Strip(r.prefix+row)))
						}
					}
					want := c.want
					if unfolded {
						want = c.unfolded
					}
					if !slices.Equal(got, want) {
						t.Errorf("%sunfolded %v:\n%q\nwant\n%q", name, unfolded, got, want)
					}
				}
			}
			exported := s.m.talk.conversation.document("m", "")
			head := strings.ReplaceAll(strings.TrimPrefix(c.want[0], "→ "), "╰ ", "")
			if !strings.Contains(exported, "<details><summary>"+head) {
				t.Errorf("exported:\n%s", exported)
			}
			for _, row := range c.unfolded[1:] {
				if !strings.Contains(exported, "\n"+strings.TrimPrefix(row, "│ ")+"\n") {
					t.Errorf("exported without %q:\n%s", row, exported)
				}
			}
		})
	}
}
