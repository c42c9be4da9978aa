// Conversations saved in a session.Store, so that a chat can be closed, killed and resumed.
//
// A conversation is one record, written as a whole: after every question and answer, at every
// change of name or branch, and at most once a second during an answer. What must stay true: a
// message is in the store before the screen shows it as sent, and a kill -9 loses at most the last
// second; only the question to the model waits for the disk, and at most keepPatience.

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

// keepEvery is how often a conversation is saved during an answer.
const keepEvery = time.Second

// keepPatience bounds the wait for the store, whose disk may hang.
const keepPatience = 2 * time.Second

// A savedChat is the value of a conversation's record.
type savedChat struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Model     string         `json:"model"`
	Effort    string         `json:"effort"`
	System    string         `json:"system,omitempty"`
	Began     time.Time      `json:"began"`
	Changed   time.Time      `json:"changed"`
	At        int            `json:"at"` // the exchange at the end of the visible branch
	Exchanges []keptExchange `json:"exchanges"`
	Queued    []string       `json:"queued,omitempty"` // sent, waiting for an answer's end
	Pastes    []string       `json:"pastes,omitempty"` // the texts of chips
}

type keptExchange struct {
	Before   int               `json:"before"` // its index in the list; -1: none
	Question string            `json:"question"`
	Summary  string            `json:"summary,omitempty"`
	Context  int               `json:"context"` // tokens in use after it
	Messages []session.Message `json:"messages"`
	Parts    []keptPart        `json:"parts"`
	Sources  []source          `json:"sources,omitempty"`
	Ending   string            `json:"ending,omitempty"`
	Live     bool              `json:"live,omitempty"` // the answer was unfinished
}

// A savedPart is reasoning, answer text, an aside or a call.
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
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// title is a conversation's default name: the beginning of its first question.
func title(question string) string { return term.Cut(firstLine(question), 50) }

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

// unsent are the messages that were sent but never asked, oldest first: queued, or given back to
// the editor.
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

// A resumed conversation is locked by this chat.
type resumed struct {
	kept    *savedChat
	of      *savedChat // the original of a copy; nil: it is no copy
	release func()
}

// setID gives the visible conversation a new, unique ID.
func (m *Model) isNow(id string) {
	m.owns(id, func() func() { return m.claim(&savedChat{ID: id}, "").release })
}

// owns releases the previous conversation's lock and takes another. Claims are files, so they are
// handled one after the other in the background.
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

// releaseLock unlocks the conversation for other chats.
func (m *Model) letGo() {
	if m.held != nil {
		m.held()
		m.held = nil
	}
}

// claim locks a conversation for this chat, or a copy of it if another chat has it open: two
// writers would lose each other's messages. currentID is the conversation that this chat has.
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

// restore shows a saved conversation and continues it.
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

// rebuild restores the conversation tree.
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

// answerOf restores a saved answer.
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

// show puts the current branch on the screen. Entries up to and including the exchange from are
// kept; nil: only the greeting.
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

// keep saves the conversation in the background; done is closed once it is stored.
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

// kept saves what the person has just sent. The returned function waits, outside Update, until it
// is stored, and reports whether it is.
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

// howToContinue is the line after the last frame of a saved conversation.
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

// A saver writes the latest snapshot of each conversation; a snapshot replaced before it was
// written is skipped.
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
			// Unsaved reports what is not stored
			_ = k.store.Put(session.Record{Kind: session.KindChat, Key: s.ID, Value: value})
		}
	}
}

// savedChats returns the readable conversations of a store, latest first.
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

// find finds a saved conversation by its ID, an ID prefix, or its name; "" is the latest.
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

// words is all text of a conversation in lower case, for searching.
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
