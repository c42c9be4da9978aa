// Conversations kept in a session.Store, so that a chat can be left, killed and gone on with.
//
// A conversation is one record, written as a whole: after every question and answer, at every
// change of name or branch, and at most once a second while an answer is written. What must stay
// true: a message that was sent is in the store before the screen shows it as sent, and what else
// was on the screen a second before a kill -9 is there too; only the question to the model waits
// for the disk, and that for keepPatience at most.

package chat

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/markdown"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// keepEvery is how often a conversation is kept while an answer is written.
const keepEvery = time.Second

// keepPatience bounds what a message waits for the store, which may lie on a disk that hangs.
const keepPatience = 2 * time.Second

// A savedChat conversation is the value of a record.
type savedChat struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Model     string         `json:"model"`
	Effort    string         `json:"effort"`
	System    string         `json:"system,omitempty"`
	Began     time.Time      `json:"began"`
	Changed   time.Time      `json:"changed"`
	At        int            `json:"at"` // the exchange at the end of the branch on the screen
	Exchanges []keptExchange `json:"exchanges"`
	Queued    []string       `json:"queued,omitempty"` // sent, and waiting for an answer's end
	Pastes    []string       `json:"pastes,omitempty"` // what chips stand for
}

type keptExchange struct {
	Before   int               `json:"before"` // its place in the list; -1: none
	Question string            `json:"question"`
	Summary  string            `json:"summary,omitempty"`
	Context  int               `json:"context"` // tokens in use behind it
	Messages []session.Message `json:"messages"`
	Parts    []keptPart        `json:"parts"`
	Sources  []source          `json:"sources,omitempty"`
	Ending   string            `json:"ending,omitempty"`
	Live     bool              `json:"live,omitempty"` // it was still being written
}

// A keptPart is reasoning, answer text, an aside or a call.
type keptPart struct {
	Kind    string   `json:"kind"`
	Text    string   `json:"text"` // of a call: its arguments
	Tokens  int      `json:"tokens,omitempty"`
	Seconds float64  `json:"seconds,omitempty"`
	Name    string   `json:"name,omitempty"`
	Output  string   `json:"output,omitempty"`
	Files   []string `json:"files,omitempty"`
	Failed  string   `json:"failed,omitempty"`
}

func newID() string {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// title is a conversation's name until it is given one: how its first question begins.
func title(question string) string { return term.Cut(firstLine(question), 50) }

// snapshot is the conversation as it is now.
func (m *Model) snapshot() *savedChat {
	k := &savedChat{ID: m.id, Name: m.name, Model: m.options.Model.ID(), Effort: m.effort,
		System: m.system, Began: m.began, Changed: m.changed, At: -1,
		Exchanges: []keptExchange{}, Queued: m.unsent(), Pastes: m.pastes}
	var walk func(list []*exchange, before int)
	walk = func(list []*exchange, before int) {
		for _, e := range list {
			at := len(k.Exchanges)
			if e == m.conversation.at {
				k.At = at
			}
			k.Exchanges = append(k.Exchanges, e.keep(before))
			walk(e.after, at)
		}
	}
	walk(m.conversation.first, -1)
	if k.Name == "" && len(k.Exchanges) > 0 {
		k.Name = title(k.Exchanges[0].Question)
	} else if k.Name == "" && len(k.Queued) > 0 {
		k.Name = title(k.Queued[0])
	}
	return k
}

// unsent is what the person has sent and the model was not asked, oldest first: it waits, or came
// back to the editor.
func (m *Model) unsent() (all []string) {
	if m.preparing != "" {
		all = append(all, m.preparing)
	}
	all = append(all, m.queued...)
	if m.returned != "" && m.editor.text == m.returned {
		all = append(all, m.returned)
	}
	return all
}

func (e *exchange) keep(before int) keptExchange {
	k := keptExchange{Before: before, Question: e.question, Summary: e.summary,
		Context: e.context, Messages: e.messages, Parts: []keptPart{}}
	if e.answer == nil {
		return k
	}
	k.Ending, k.Live, k.Sources = e.answer.ending, e.answer.live, e.answer.sources
	if said := e.answer.text(); said != "" && len(e.messages) == 1 { // the turn is not over
		k.Messages = append(e.messages[:1:1], session.AssistantAnswer(said))
	}
	for _, p := range e.answer.parts {
		k.Parts = append(k.Parts, p.keep())
	}
	return k
}

func (t *reasoningText) keep() keptPart {
	end := t.ended
	if end.IsZero() {
		end = t.latest
	}
	return keptPart{Kind: "thought", Text: t.text.text.String(), Tokens: t.tokens,
		Seconds: end.Sub(t.started).Seconds()}
}

func (s *answerText) keep() keptPart {
	kind := "speech"
	if s.aside {
		kind = "aside"
	}
	return keptPart{Kind: kind, Text: s.text.Text()}
}

// A resumed conversation is one that this chat owns.
type resumed struct {
	kept    *savedChat
	of      *savedChat // what it is a copy of; nil: it is none
	release func()
}

// isNow gives the conversation on the screen a new ID, which nobody else has.
func (m *Model) isNow(id string) {
	m.owns(id, func() func() { return m.claim(&savedChat{ID: id}, "").release })
}

// owns lets the conversation go that was on the screen, and takes another. Claims are files, and
// are worked on one after the other.
func (m *Model) owns(id string, take func() (release func())) {
	before, done := m.claiming, make(chan struct{})
	m.id, m.claiming = id, done
	m.background.Go(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		m.letGo()
		m.held = take()
	})
}

// letGo lets other chats have the conversation.
func (m *Model) letGo() {
	if m.held != nil {
		m.held()
		m.held = nil
	}
}

// claim takes a conversation for this chat, or a copy of it where another chat has it open: two
// that write one would lose each other's words.
// own is the conversation that it has.
func (m *Model) claim(k *savedChat, own string) resumed {
	if m.options.Claim == nil || k.ID == own {
		return resumed{kept: k}
	}
	release, ok := m.options.Claim(k.ID)
	if ok {
		return resumed{kept: k, release: release}
	}
	from := *k
	k.ID, k.Name = newID(), k.Name+" (copy)"
	release, _ = m.options.Claim(k.ID)
	return resumed{kept: k, of: &from, release: release}
}

// restore shows a kept conversation and goes on with it.
func (m *Model) restore(r resumed) {
	k := r.kept
	m.abandon()
	if k.ID != m.id {
		m.owns(k.ID, func() func() { return r.release })
	}
	m.name, m.began, m.changed, m.context, m.rate = k.Name, k.Began, k.Changed, 0, 0
	m.system, m.queued, m.pastes, m.preparing = k.System, k.Queued, k.Pastes, ""
	m.unkept = 0
	m.rebuild(k)
	m.show(nil)
	if len(m.queued) > 0 {
		m.unqueue()
		m.note("Unsent messages are back in the editor. Enter sends them.")
	}
	if r.of != nil {
		m.showNotice(fmt.Sprintf("%q is open in another chat, so you are in a copy (%s). Changes "+
			"are not shared.", r.of.Name, k.ID))
		m.keep()
	} else if len(k.Exchanges)+len(m.queued) > 0 {
		m.showNotice(fmt.Sprintf("Continuing %q (%s), last changed %s.", k.Name, k.ID,
			ago(k.Changed, m.clock())))
	}
}

// rebuild makes the conversation that was kept.
func (m *Model) rebuild(k *savedChat) {
	m.conversation = conversation{}
	all := make([]*exchange, len(k.Exchanges))
	for i, ke := range k.Exchanges {
		var before *exchange
		if ke.Before >= 0 && ke.Before < i {
			before = all[ke.Before]
		}
		e := &exchange{question: ke.Question, summary: ke.Summary, context: ke.Context,
			messages: ke.Messages}
		if ke.Summary == "" {
			e.answer = m.answerOf(ke, len(before.code()))
		}
		m.conversation.add(e, before)
		all[i] = e
	}
	if m.conversation.at = nil; k.At >= 0 && k.At < len(all) {
		m.conversation.at = all[k.At]
		m.context = all[k.At].context
	}
}

// answerOf is an answer as it was when it was kept.
func (m *Model) answerOf(k keptExchange, before int) *answer {
	a := newAnswer(m.palette, time.Time{}, before)
	a.sources = k.Sources
	for _, p := range k.Parts {
		text := term.Clean(p.Text)
		took := time.Duration(p.Seconds * float64(time.Second))
		switch start := (time.Time{}).Add(time.Hour); p.Kind {
		case "thought":
			a.parts = append(a.parts, &reasoningText{text: newProse(m.palette, term.Dim, text),
				tokens: p.Tokens, started: start, ended: start.Add(took)})
		case "call":
			a.parts = append(a.parts, &call{name: term.Clean(p.Name), arguments: text,
				output: term.Clean(p.Output), files: p.Files, failed: term.Clean(p.Failed),
				started: start,
				ended:   start.Add(took)})
		default:
			code := before + len(a.code())
			s := &answerText{text: markdown.New(m.palette, code), before: code,
				aside: p.Kind == "aside"}
			s.text.Push(text)
			s.text.End()
			a.parts = append(a.parts, s)
		}
	}
	ending, tone := k.Ending, term.Dim
	if k.Live {
		ending, tone = "The chat ended here. Type /regenerate to retry.", term.Yellow
	}
	a.finish(m.now, term.Clean(ending), tone)
	return a
}

// show puts the branch that ends in the conversation's at on the screen. What stands before and
// with the exchange that is given stays as it is; nil: only the greeting.
func (m *Model) show(from *exchange) {
	path := m.conversation.path()
	if from == nil {
		m.transcript = transcript{follow: true}
		m.transcript.add(&greeting{m})
	}
	for i, e := range path {
		if e == from {
			path = path[i+1:]
			break
		}
	}
	for _, e := range path {
		e.entry = len(m.transcript.entries)
		if e.summary != "" {
			m.transcript.add(newSummary(m.palette, e.summary))
			continue
		}
		m.transcript.add(newQuestion(m.palette, e.question))
		m.transcript.add(e.answer)
	}
	m.transcript.follow = true
}

// keep puts the conversation into the store, without waiting for it; kept is closed when it is
// there.
func (m *Model) keep() (kept <-chan struct{}) {
	done := make(chan struct{})
	if m.keeper.store == nil || len(m.conversation.first) == 0 && len(m.unsent()) == 0 {
		close(done)
		return done
	}
	m.keptAt = m.now
	m.keeper.queue(m.snapshot())
	m.background.Go(func() {
		m.keeper.flush()
		close(done)
	})
	return done
}

// kept keeps what the person has just sent. What it returns waits, outside Update, until it is
// there, and tells whether it is.
func (m *Model) kept() (wait func() bool) {
	kept := m.keep()
	return func() bool {
		patience := time.NewTimer(keepPatience)
		defer patience.Stop()
		select {
		case <-kept:
			return true
		case <-patience.C:
			return false
		}
	}
}

// howToContinue is what the person reads behind the last frame of a kept conversation.
func (m *Model) howToContinue() string {
	why := errors.New("the disk did not answer")
	if m.kept()() {
		why = m.keeper.store.Unsaved(session.KindChat, m.id)
	}
	if why != nil {
		return "This conversation was not saved: " + why.Error() + "."
	}
	return "To continue: ossrun chat --resume " + m.id
}

// A saver writes the latest snapshot of each conversation; one that is overtaken before it is
// written is left out.
type saver struct {
	store session.Store

	mu      sync.Mutex
	pending map[string]*savedChat // by ID
	writing sync.Mutex
}

func (k *saver) queue(s *savedChat) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pending == nil {
		k.pending = map[string]*savedChat{}
	}
	k.pending[s.ID] = s
}

func (k *saver) flush() {
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	all := k.pending
	k.pending = nil
	k.mu.Unlock()
	for _, s := range all {
		if value, err := json.Marshal(s); err == nil { // texts and numbers
			// what is not stored Unsaved tells of
			_ = k.store.Put(session.Record{Kind: session.KindChat, Key: s.ID, Value: value})
		}
	}
}

// keptChats are the conversations of a store that can be read, the latest first.
func keptChats(store session.Store) (all []*savedChat) {
	if store == nil {
		return nil
	}
	for _, r := range store.List(session.KindChat) {
		var k savedChat
		if json.Unmarshal(r.Value, &k) == nil && k.ID != "" {
			all = append(all, &k)
		}
	}
	slices.SortStableFunc(all, func(a, b *savedChat) int { return b.Changed.Compare(a.Changed) })
	return all
}

// find finds a kept conversation by its ID, the beginning of that, or its name; "" is the latest.
func find(store session.Store, name string) (*savedChat, error) {
	var found []*savedChat
	for _, k := range keptChats(store) {
		switch {
		case name == "", k.ID == name:
			return k, nil
		case strings.HasPrefix(k.ID, name), strings.EqualFold(k.Name, name):
			found = append(found, k)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("%d conversations are called %q. Use the ID that /sessions shows",
			len(found), name)
	case name == "":
		return nil, errors.New("no conversation is saved yet")
	}
	return nil, fmt.Errorf("no conversation is called %q. /sessions in a chat lists them", name)
}

// words is all text of a conversation in small letters, to search in.
func (k *savedChat) words() string {
	var b strings.Builder
	for _, text := range []string{k.Name, k.ID, k.Model} {
		b.WriteString(text + "\n")
	}
	for _, e := range k.Exchanges {
		b.WriteString(e.Question + "\n" + e.Summary + "\n")
		for _, p := range e.Parts {
			b.WriteString(p.Text + "\n" + p.Output + "\n")
		}
	}
	return strings.ToLower(b.String())
}
