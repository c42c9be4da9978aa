// Conversations saved in a records.Store, so that a chat can be closed, killed and resumed, and so
// that `ossrun sessions` lists, shows, exports and deletes them.
//
// A conversation is one record, written as a whole: after every question and answer, at every
// change of name or branch, and at most once a second during an answer. What must stay true: a
// message is in the store before the screen shows it as sent, and a kill -9 loses at most the last
// second; only the question to the model waits for the disk, and at most saveTimeout.

package chat

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/markdown"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// saveInterval is how often a conversation is saved during an answer.
const saveInterval = time.Second

// saveTimeout bounds the wait for the store, whose disk may hang.
const saveTimeout = 2 * time.Second

// A record is where and how the conversation is saved.
type record struct {
	saver    saver
	lock     func(id string) (release func(), ok bool) // Options.Claim
	unlock   func()                                    // only the work of claiming accesses it
	claiming <-chan struct{}
	id, name string // of the conversation; name is "" until it is set
	// of a restored conversation, until another model answers in it; "": the chat's
	model, source, endpoint string
	startTime               time.Time
	changed                 time.Time       // when the conversation last got a message or token
	savedAt                 time.Time       // when the conversation was last saved
	exported                map[string]bool // files written by /export
}

// A savedChat is the value of a conversation's record.
type savedChat struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Model     string          `json:"model"`
	Source    string          `json:"source,omitempty"`   // session.SourceOf
	Endpoint  string          `json:"endpoint,omitempty"` // of the model; "": this machine
	Effort    string          `json:"effort"`
	System    string          `json:"system,omitempty"`
	Began     time.Time       `json:"began"`
	Changed   time.Time       `json:"changed"`
	Current   int             `json:"at"` // the exchange at the end of the visible branch
	Exchanges []savedExchange `json:"exchanges"`
	Queued    []string        `json:"queued,omitempty"` // sent, waiting for an answer's end
	Pastes    []string        `json:"pastes,omitempty"` // the texts of chips
}

type savedExchange struct {
	Prev     int               `json:"before"` // its index in the list; -1: none
	Question string            `json:"question"`
	Summary  string            `json:"summary,omitempty"`
	Context  int               `json:"context"` // tokens in use after it
	Messages []session.Message `json:"messages"`
	Parts    []savedPart       `json:"parts"`
	Sources  []source          `json:"sources,omitempty"`
	Ending   string            `json:"ending,omitempty"`
	Live     bool              `json:"live,omitempty"` // the answer was unfinished
	Page     json.RawMessage   `json:"page,omitempty"` // the chat page's form of it
}

// A savedPart is reasoning, answer text, an aside or a call.
type savedPart struct {
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
	r, t := &m.record, &m.talk
	k := &savedChat{ID: r.id, Name: r.name, Model: m.options.Model.ID(), Effort: t.effort,
		Source: session.SourceOf(m.options.Model), Endpoint: m.options.Endpoint, System: t.system,
		Began: r.startTime, Changed: r.changed, Current: -1, Exchanges: []savedExchange{},
		Queued: m.unsent(), Pastes: m.input.pastes}
	if r.model != "" {
		k.Model, k.Source, k.Endpoint = r.model, r.source, r.endpoint
	}
	var walk func(list []*exchange, prev int)
	walk = func(list []*exchange, prev int) {
		for _, e := range list {
			index := len(k.Exchanges)
			if e == t.conversation.current {
				k.Current = index
			}
			k.Exchanges = append(k.Exchanges, e.save(prev))
			walk(e.next, index)
		}
	}
	walk(t.conversation.first, -1)
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
	if m.talk.preparing != "" {
		all = append(all, m.talk.preparing)
	}
	all = append(all, m.talk.queued...)
	if m.input.returned != "" && m.input.editor.text == m.input.returned {
		all = append(all, m.input.returned)
	}
	return all
}

func (e *exchange) save(prev int) savedExchange {
	k := savedExchange{Prev: prev, Question: e.question, Summary: e.summary,
		Context: e.context, Messages: e.messages, Parts: []savedPart{}, Page: e.page}
	if e.answer == nil {
		return k
	}
	k.Ending, k.Live, k.Sources = e.answer.ending, e.answer.live, e.answer.sources
	if text := e.answer.text(); text != "" && len(e.messages) == 1 { // the turn is not over
		k.Messages = append(e.messages[:1:1], session.AssistantAnswer(text))
	}
	for _, p := range e.answer.parts {
		k.Parts = append(k.Parts, p.save())
	}
	return k
}

func (t *reasoningText) save() savedPart {
	end := t.endTime
	if end.IsZero() {
		end = t.latest
	}
	return savedPart{Kind: "thought", Text: t.text.text.String(), Tokens: t.tokens,
		Seconds: end.Sub(t.started).Seconds()}
}

func (s *answerText) save() savedPart {
	kind := "speech"
	if s.aside {
		kind = "aside"
	}
	return savedPart{Kind: kind, Text: s.text.Text()}
}

// A claimedChat is a conversation locked by this chat.
type claimedChat struct {
	chat     *savedChat
	original *savedChat // the original of a copy; nil: it is no copy
	release  func()
}

func (r *record) setID(id string, background *jobs) {
	r.setOwner(id, background, func() func() { return r.claim(&savedChat{ID: id}, "").release })
}

// setOwner releases the previous conversation's lock and takes another. Claims are files, so they
// are handled one after the other in the background.
func (r *record) setOwner(id string, background *jobs, take func() (release func())) {
	previous, done := r.claiming, make(chan struct{})
	r.id, r.claiming = id, done
	background.Go(func() {
		defer close(done)
		if previous != nil {
			<-previous
		}
		r.releaseLock()
		r.unlock = take()
	})
}

func (r *record) releaseLock() {
	if r.unlock != nil {
		r.unlock()
		r.unlock = nil
	}
}

// claim locks a conversation for this chat, or a copy of it if another chat has it open: two
// writers would lose each other's messages. currentID is the conversation that this chat has.
func (r *record) claim(k *savedChat, currentID string) claimedChat {
	if r.lock == nil || k.ID == currentID {
		return claimedChat{chat: k}
	}
	release, ok := r.lock(k.ID)
	if ok {
		return claimedChat{chat: k, release: release}
	}
	from := *k
	k.ID, k.Name = newID(), k.Name+" (copy)"
	release, _ = r.lock(k.ID)
	return claimedChat{chat: k, original: &from, release: release}
}

func (m *Model) restore(r claimedChat) {
	k := r.chat
	m.abandon()
	if k.ID != m.record.id {
		m.record.setOwner(k.ID, &m.background, func() func() { return r.release })
	}
	m.record.name, m.record.startTime, m.record.changed = k.Name, k.Began, k.Changed
	m.record.model, m.record.source, m.record.endpoint = k.Model, k.Source, k.Endpoint
	m.input.pastes = k.Pastes
	t := &m.talk
	t.system, t.queued, t.preparing, t.unsaved = k.System, k.Queued, "", 0
	t.shellAllowed, t.editing = false, nil
	t.conversation, t.context, t.rate = restoreConversation(k, m.palette, m.now), 0, 0
	if t.conversation.current != nil {
		t.context = t.conversation.current.context
	}
	m.show(nil)
	if len(t.queued) > 0 {
		m.returnQueued()
		m.note("Unsent messages are back in the editor. Enter sends them.")
	}
	if r.original != nil {
		m.showNotice(fmt.Sprintf("%q is open in another chat, so you are in a copy (%s). Changes "+
			"are not shared.", r.original.Name, k.ID))
		m.save()
	} else if len(k.Exchanges)+len(t.queued) > 0 {
		m.showNotice(fmt.Sprintf("Continuing %q (%s), last changed %s.", k.Name, k.ID,
			ago(k.Changed, m.clock())))
	}
}

// returnToModel makes the model of a restored conversation answer again, or reports which one does.
func (m *Model) returnToModel(k *savedChat) tea.Cmd {
	now, open := m.options.Model.ID(), m.options.Switch
	switch {
	case k.Endpoint != m.options.Endpoint:
		return m.showNotice(fmt.Sprintf("This conversation was with %s%s. The next answers come "+
			"from %s. To keep its model, leave and run: ossrun chat --resume %s", k.Model,
			atEndpoint(k.Endpoint), now, k.ID))
	case k.Model == now && k.Source == session.SourceOf(m.options.Model), k.Model == "",
		open == nil:
		return nil
	}
	return m.background.run(func() tea.Msg {
		model, err := open(m.ctx, cmp.Or(k.Source, k.Model))
		if err != nil {
			return failure{fmt.Errorf("this conversation was with %s: %w. The next answers come "+
				"from %s; /model NAME chooses another", k.Model, err, now)}
		}
		return modelOpened{model}
	})
}

func atEndpoint(url string) string {
	if url == "" {
		return " on this computer"
	}
	return " at " + url
}

func restoreConversation(k *savedChat, p term.Palette, now time.Time) (c conversation) {
	all := make([]*exchange, len(k.Exchanges))
	for i, ke := range k.Exchanges {
		var prev *exchange
		if ke.Prev >= 0 && ke.Prev < i {
			prev = all[ke.Prev]
		}
		e := &exchange{question: ke.Question, summary: ke.Summary, context: ke.Context,
			messages: ke.Messages, page: ke.Page}
		if ke.Summary == "" {
			e.answer = restoreAnswer(ke, p, now, len(prev.code()))
		}
		c.add(e, prev)
		all[i] = e
	}
	if c.current = nil; k.Current >= 0 && k.Current < len(all) {
		c.current = all[k.Current]
	}
	return c
}

func restoreAnswer(k savedExchange, palette term.Palette, now time.Time, codeOffset int) *answer {
	a := newAnswer(palette, time.Time{}, codeOffset)
	a.sources = k.Sources
	for _, p := range k.Parts {
		text := term.Clean(p.Text)
		took := time.Duration(p.Seconds * float64(time.Second))
		switch start := (time.Time{}).Add(time.Hour); p.Kind {
		case "thought":
			a.parts = append(a.parts, &reasoningText{text: newProse(palette, term.Dim, text),
				tokens: p.Tokens, started: start, endTime: start.Add(took)})
		case "call":
			a.parts = append(a.parts, &call{arguments: text,
				name:   strings.TrimPrefix(term.Clean(p.Name), "functions."), // of old releases
				output: term.Clean(p.Output), files: p.Files, failed: term.Clean(p.Failed),
				started: start, endTime: start.Add(took)})
		default:
			code := codeOffset + len(a.code())
			s := &answerText{text: markdown.New(palette, code), codeOffset: code,
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
	a.finish(now, term.Clean(ending), tone)
	return a
}

// show puts the current branch on the screen. Entries up to and including the exchange from are
// kept; nil: only the greeting.
func (m *Model) show(from *exchange) {
	path := m.talk.conversation.path()
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
		m.transcript.add(m.newQuestion(e))
		m.transcript.add(e.answer)
	}
	m.transcript.follow = true
}

// save saves the conversation in the background; done is closed once it is stored.
func (m *Model) save() (stored <-chan struct{}) {
	done := make(chan struct{})
	t := &m.talk
	isEmpty := len(t.conversation.first) == 0 && len(t.queued) == 0 && t.preparing == ""
	if m.record.saver.store == nil || isEmpty && m.record.savedAt.IsZero() {
		close(done)
		return done
	}
	m.record.savedAt = m.now
	k := m.snapshot()
	if isEmpty { // its only message was given back to the editor
		k.Queued, m.record.savedAt = nil, time.Time{}
	}
	m.record.saver.queue(k)
	m.background.Go(func() {
		m.record.saver.flush()
		close(done)
	})
	return done
}

// saveAndWait saves the last sent message. The returned function waits, outside Update, until it is
// stored, and reports whether it is.
func (m *Model) saveAndWait() (wait func() bool) {
	stored := m.save()
	return func() bool {
		select {
		case <-stored:
			return true
		case <-time.After(saveTimeout):
			return false
		}
	}
}

// resumeHint is the line after the last frame of a saved conversation.
func (m *Model) resumeHint() string {
	why := errors.New("the disk did not answer")
	if m.saveAndWait()() {
		why = m.record.saver.store.Unsaved(records.KindChat, m.record.id)
	}
	if why != nil {
		return "This conversation was not saved: " + why.Error() + "."
	}
	return "To continue: ossrun chat --resume " + m.record.id
}

// A saver writes the latest snapshot of each conversation; a snapshot replaced before it was
// written is skipped.
type saver struct {
	store records.Store

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
		if len(s.Exchanges)+len(s.Queued) == 0 {
			_, _ = k.store.Delete(records.KindChat, s.ID) // the next start lists it
			continue
		}
		if value, err := json.Marshal(s); err == nil { // texts and numbers
			// Unsaved reports a failure
			_ = k.store.Put(records.Record{Kind: records.KindChat, Key: s.ID, Value: value})
		}
	}
}

// savedChats returns the readable conversations of a store's owner, latest first.
func savedChats(store records.Store) (all []*savedChat) {
	if store == nil {
		return nil
	}
	for _, r := range store.List(records.KindChat) {
		var k savedChat
		if json.Unmarshal(r.Value, &k) == nil && k.ID == r.Key {
			all = append(all, &k)
		}
	}
	slices.SortStableFunc(all, func(a, b *savedChat) int { return b.Changed.Compare(a.Changed) })
	return all
}

// find finds a saved conversation by its ID, an ID prefix, or its name; "" is the latest.
func find(store records.Store, name string) (*savedChat, error) {
	var matches []*savedChat
	for _, k := range savedChats(store) {
		switch {
		case name == "", k.ID == name:
			return k, nil
		case strings.HasPrefix(k.ID, name), strings.EqualFold(k.Name, name):
			matches = append(matches, k)
		}
	}
	switch {
	case len(matches) == 1:
		return matches[0], nil
	case len(matches) > 1:
		return nil, fmt.Errorf("%d conversations are called %q. Use the ID that /sessions shows",
			len(matches), name)
	case name == "":
		return nil, errors.New("no conversation is saved yet")
	}
	return nil, fmt.Errorf("unknown conversation %q. Run /sessions or ossrun sessions list", name)
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

type Saved struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Model     string    `json:"model"`
	Source    string    `json:"source,omitempty"` // opens the model, if its name does not
	Endpoint  string    `json:"endpoint,omitempty"`
	Began     time.Time `json:"began"`
	Changed   time.Time `json:"changed"`
	Questions int       `json:"questions"`

	record *savedChat
}

func (k *savedChat) summary() Saved {
	s := Saved{ID: k.ID, Name: term.Clean(k.Name), Model: k.Model, Source: k.Source,
		Endpoint: k.Endpoint, Began: k.Began, Changed: k.Changed, record: k}
	for _, e := range k.Exchanges {
		if e.Summary == "" {
			s.Questions++
		}
	}
	return s
}

func List(store records.Store) []Saved {
	all := []Saved{}
	for _, k := range savedChats(store) {
		all = append(all, k.summary())
	}
	return all
}

// Find finds a saved conversation by its ID, an ID prefix, or its name; "" is the latest.
func Find(store records.Store, name string) (Saved, error) {
	k, err := find(store, name)
	if err != nil {
		return Saved{}, err
	}
	return k.summary(), nil
}

// Markdown is the visible branch, as /export writes it.
func (s Saved) Markdown() string {
	c := restoreConversation(s.record, term.Palette{}, time.Time{})
	return c.document(s.Model, s.record.System)
}

// Document is the conversation with every branch, as /export writes it to a .json file.
func (s Saved) Document() ([]byte, error) { return json.MarshalIndent(s.record, "", "  ") }

// Delete deletes the conversation and its traces in p, unless a chat has it open.
func (p Stores) Delete(s Saved) error { return p.eraseClosed(s.record) }
