package chat

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
)

func diskStore(t *testing.T) records.Store {
	t.Helper()
	store, err := records.Open(records.Options{
		File: filepath.Join(t.TempDir(), "kept.db"), TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// command types a line, runs what it starts and takes the answer.
func (s *stage) command(line string) {
	s.t.Helper()
	s.m.input.editor.set(line)
	if cmd := s.send(key("enter")); cmd != nil {
		s.send(cmd())
	}
}

// choose types a command whose values are read, and takes them.
func (s *stage) choose(line string) {
	s.t.Helper()
	s.typing(line)
	s.send(s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(" ")})())
}

// The screen of a second before the process was killed is restored.
func TestAKilledChatGoesOn(t *testing.T) {
	store := diskStore(t)
	s := newStage(t, 80, 24, Options{Store: store},
		turn(reasoning("Let me see."), answering("The first:\n```go\nx := 1\n```\n answer."),
			[]session.Event{stopped(9, 2)}),
		turn(answering("The second answer is cut right here by the kill"), []session.Event{nil}))
	s.m.record.id = "0123abcd"
	s.ask("first question")
	s.play(0, step)
	s.ask("second question")
	s.play(5, 300*time.Millisecond)
	hosttest.Until(t, "the half answer is kept", func() bool {
		k, err := find(store, "")
		return err == nil && len(k.Exchanges) == 2 && len(k.Exchanges[1].Parts) == 1
	})
	next := newStage(t, 80, 24, Options{Store: store, Resume: s.m.record.id}, fine("Yes."))
	next.golden("resumed")
	next.ask("third question")
	next.play(0, step)
	var said []string
	for _, m := range next.runner.Requests[0].Messages {
		said = append(said, m.Text())
	}
	if got := strings.Join(said, "|"); !strings.HasPrefix(got,
		"first question|Let me see.|The first:\n```go\n") || !strings.HasSuffix(got, "|second question|The second answer is cut |third question") {
		t.Errorf("the model is given %q", got)
	}
	if next.m.record.id != s.m.record.id {
		t.Error("the conversation has become another one")
	}
}

// SECURITY.md: Conversations are kept on disk, readable by your user
// ([privacy](docs/guide/privacy.md)).
func TestSessions(t *testing.T) {
	store := diskStore(t)
	s := newStage(t, 80, 24, Options{Store: store},
		fine("pages of 32 positions"),
		fine("Paris"))
	s.choose("/sessions")
	s.keys("enter")
	if !strings.Contains(s.text(), "No other conversation is saved yet") {
		t.Errorf("none:\n%s", s.text())
	}
	s.keys("ctrl+u")
	s.ask("How does the cache work?")
	s.play(0, step)
	s.command("/rename the cache")
	s.command("/new")
	s.ask("The capital of France?")
	s.play(0, step)
	s.m.background.Wait()
	s.command("/new")
	s.choose("/sessions")
	if text := s.text(); !strings.Contains(text, "the cache  ") ||
		!strings.Contains(text, "The capital of France?  ") {
		t.Errorf("/sessions:\n%s", text)
	}
	s.typing("positions")
	if text := s.text(); !strings.Contains(text, "the cache  ") || strings.Contains(text, "France") {
		t.Errorf("/sessions positions:\n%s", text)
	}
	s.keys("ctrl+w")
	s.typing("nowhere")
	s.keys("enter")
	if !strings.Contains(s.text(), `No conversation contains "nowhere" (2 searched)`) {
		t.Errorf("/sessions nowhere:\n%s", s.text())
	}
	s.keys("ctrl+w", "down") // France is the latest, the cache the next
	s.send(s.send(key("enter"))())
	if text := s.text(); !strings.Contains(text, "pages of 32") || s.m.input.editor.text != "" {
		t.Errorf("the second row is not the one that is gone on with:\n%s", text)
	}
	s.command("/new")
	s.command("/resume The Cache")
	if text := s.text(); !strings.Contains(text, "pages of 32") || strings.Contains(text, "Paris") {
		t.Errorf("/resume:\n%s", text)
	}
	path := filepath.Join(t.TempDir(), "chat.json")
	s.command("/export " + path)
	var k savedChat
	if err := json.Unmarshal([]byte(read(t, path)), &k); err != nil || k.Name != "the cache" ||
		len(k.Exchanges) != 1 || len(k.Exchanges[0].Messages) != 2 {
		t.Errorf("exported %+v: %v", k, err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" &&
		info.Mode().Perm() != 0o600 {
		t.Errorf("exported for others too: %v, %v", info, err)
	}
	for _, name := range []string{"x.pdf", "x.docx", "x.html"} {
		path := filepath.Join(t.TempDir(), name)
		s.command("/export " + path)
		if _, err := os.Stat(path); err == nil || !strings.Contains(s.text(), "cannot be written") {
			t.Errorf("/export %s:\n%s", name, s.text())
		}
	}
	none := newStage(t, 80, 24, Options{})
	none.command("/sessions")
	if !strings.Contains(none.text(), "--no-history") {
		t.Errorf("without a store:\n%s", none.text())
	}
	if _, err := Find(store, "xyz"); err == nil {
		t.Error("an unknown name is found")
	}
}

func TestFarewell(t *testing.T) {
	s := newStage(t, 80, 24, Options{Store: diskStore(t), NoColor: true},
		fine("one"),
		fine("two **words**"))
	if got := s.m.farewell(); got != "" {
		t.Errorf("nothing was said, and %q stays", got)
	}
	s.m.record.id = "0123abcd"
	s.ask("first")
	s.play(0, step)
	s.ask("second")
	s.play(0, step)
	s.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	compare(t, "farewell.ansi", strings.ReplaceAll(s.m.farewell(), "\x1b", "␛"))
}

// Two chats that go on with one conversation: the second has a copy, and both are kept whole.
func TestTwoChatsOfOneConversation(t *testing.T) {
	store, open := diskStore(t), sync.Map{}
	claim := func(id string) (func(), bool) {
		if _, taken := open.LoadOrStore(id, true); taken {
			return nil, false
		}
		return func() { open.Delete(id) }, true
	}
	o := Options{Store: store, Claim: claim}
	one := newStage(t, 80, 24, o, fine("one"), fine("of the first chat"))
	one.ask("question")
	one.play(0, step)
	one.m.background.Wait()
	o.Resume = one.m.record.id
	two := newStage(t, 80, 24, o, fine("of the second chat"))
	if text := two.text(); !strings.Contains(text, "is open in another chat, so you are in a copy") ||
		!strings.Contains(text, "❯ question") || two.m.record.id == one.m.record.id {
		t.Errorf("the second chat is told:\n%s", text)
	}
	one.ask("more")
	one.play(0, step)
	two.ask("more")
	two.play(0, step)
	one.m.background.Wait()
	two.m.background.Wait()
	for _, c := range []struct {
		id, has, hasNot string
	}{{one.m.record.id, "of the first chat", "of the second"}, {two.m.record.id, "of the second", "of the first"}} {
		k, err := find(store, c.id)
		if err != nil || !strings.Contains(k.words(), c.has) || strings.Contains(k.words(), c.hasNot) {
			t.Errorf("%s keeps %+v: %v", c.id, k, err)
		}
	}
	id := one.m.record.id
	one.m.background.Wait()
	one.m.record.releaseLock()
	three := newStage(t, 80, 24, Options{Store: store, Claim: claim, Resume: id})
	if three.m.record.id != id || strings.Contains(three.text(), "copy") {
		t.Errorf("a conversation that was left is still another's:\n%s", three.text())
	}
	three.command("/new")
	three.m.background.Wait()
	_, old := open.Load(id)
	if _, now := open.Load(three.m.record.id); old || !now {
		t.Errorf("after /new the chat holds the one before: %v, its own: %v", old, now)
	}
}

// A message is in the store before the screen shows it: alone, after others, with an unread file,
// and refused.
func TestASentMessageIsKeptFirst(t *testing.T) {
	store := diskStore(t)
	held := func(want string) {
		t.Helper()
		k, err := find(store, "")
		if err != nil {
			t.Fatal(err)
		}
		all := k.Queued
		for _, e := range k.Exchanges {
			all = append(all, e.Question)
		}
		if got := strings.Join(all, "|"); got != want {
			t.Errorf("kept are %q, want %q", got, want)
		}
	}
	s := newStage(t, 80, 24, Options{Store: store}, fine("Yes."), turn(answering("It is "), []session.Event{nil}))
	file := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(file, []byte("a note"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.typing("what says @" + file)
	cmd := s.send(key("enter"))
	sent := func() string { return s.text()[:strings.LastIndex(s.text(), "──")] } // over the editor
	if text := s.text(); strings.Contains(sent(), "what says") || strings.Contains(text, "Ask some") {
		t.Errorf("the screen shows as sent what is not kept:\n%s", text)
	}
	s.m.background.Wait()
	held("what says @" + file)
	s.typing("quick")
	quick := s.send(key("enter"))
	if text := s.text(); strings.Contains(sent(), "quick") || strings.Contains(text, "Ask some") {
		t.Errorf("the screen shows as sent what is not kept:\n%s", text)
	}
	s.keys("esc") // both come back to the editor
	s.send(quick())
	s.send(cmd())
	if want := "what says @" + file + "\nquick"; s.m.input.editor.text != want || s.m.talk.live != nil {
		t.Errorf("the editor has %q, want %q:\n%s", s.m.input.editor.text, want, s.text())
	}
	s.m.input.editor.set("what says @" + file)
	cmd = s.send(key("enter"))
	s.ask("a second, meanwhile")
	held("what says @" + file + "|a second, meanwhile")
	s.send(cmd())
	s.m.record.saver.flush()
	held("a second, meanwhile|what says @" + file)
	s.send(s.play(0, step)())
	s.m.record.saver.flush()
	held("what says @" + file + "|a second, meanwhile")
	s.ask("a third")
	held("a third|what says @" + file + "|a second, meanwhile")
	s.keys("esc") // the third comes back to the editor
	s.play(0, step)
	s.m.background.Wait()
	held("a third|what says @" + file + "|a second, meanwhile")
	s.runner.Refuse = errors.New("no")
	s.ask("")
	s.play(0, step)
	s.m.background.Wait()
	held("a third|what says @" + file + "|a second, meanwhile")
}

// A first message that is given back to the editor before it is asked makes no conversation, not
// even for a chat that is killed then; a later one keeps its conversation.
func TestAMessageGivenBackIsNoConversation(t *testing.T) {
	store := diskStore(t)
	s := newStage(t, 80, 24, Options{Store: store}, fine("Yes."))
	giveBack := func(text string) {
		t.Helper()
		s.typing(text)
		s.send(key("enter"))
		s.m.background.Wait()
		if len(List(store)) != 1 {
			t.Error("a message that is sent is not kept")
		}
		s.send(key("esc"))
		s.m.background.Wait()
		if s.m.input.editor.text != text {
			t.Errorf("the editor has %q", s.m.input.editor.text)
		}
	}
	giveBack("first question")
	if all := List(store); len(all) != 0 {
		t.Errorf("given back, and still saved: %+v", all)
	}
	s.send(key("ctrl+u"))
	s.ask("second question")
	s.play(0, step)
	giveBack("third question")
	if all := List(store); len(all) != 1 || all[0].Name != "second question" {
		t.Errorf("saved: %+v", all)
	}
	s.m.quit()
	s.m.background.Wait()
	if all := List(store); len(all) != 1 {
		t.Errorf("at the end: %+v", all)
	}
}
