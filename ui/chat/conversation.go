// The conversation as a tree, from which each turn's history is taken. Editing a question begins a
// branch; the other branches stay reachable. A long conversation continues from its summary.

package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// A conversation is a tree: regenerating an answer or editing a question begins a branch, and the
// old one stays. current is the end of the visible branch.
type conversation struct {
	first   []*exchange
	current *exchange // nil: empty
}

// An exchange is one question with the model's answer.
type exchange struct {
	question string
	entry    int // index of the question in the transcript
	answer   *answer
	messages []session.Message
	// summary replaces all earlier exchanges; an exchange with one has no question
	summary string
	context int             // tokens in use after it
	page    json.RawMessage // savedExchange.Page

	prev *exchange // nil: the first of the conversation
	next []*exchange
}

func (c *conversation) ask(question string, entry int, a *answer) *exchange {
	e := &exchange{question: question, entry: entry, answer: a,
		messages: []session.Message{session.User(question)}}
	if c.current != nil {
		e.context = c.current.context
	}
	c.add(e, c.current)
	return e
}

// add adds e after another exchange, or as a first one, and moves there.
func (c *conversation) add(e, prev *exchange) {
	e.prev = prev
	list := c.siblings(e)
	*list = append(*list, e)
	c.current = e
}

// siblings are the branches from the same point as e, including e.
func (c *conversation) siblings(e *exchange) *[]*exchange {
	if e.prev == nil {
		return &c.first
	}
	return &e.prev.next
}

// drop removes the last exchange, which got no answer, and moves to another one.
func (c *conversation) drop(to *exchange) {
	list := c.siblings(c.current)
	*list = (*list)[:len(*list)-1]
	c.current = to
}

func (c *conversation) path() []*exchange {
	var path []*exchange
	for e := c.current; e != nil; e = e.prev {
		path = append(path, e)
	}
	slices.Reverse(path)
	return path
}

func (c *conversation) questions() []*exchange {
	return slices.DeleteFunc(c.path(), func(e *exchange) bool { return e.answer == nil })
}

// fork is the last exchange of the visible branch with siblings, or nil.
func (c *conversation) fork() *exchange {
	e := c.current
	for e != nil && len(*c.siblings(e)) < 2 {
		e = e.prev
	}
	return e
}

// undo goes back before the last exchange, which becomes a branch once another question follows.
func undo(m *Model) tea.Cmd {
	if m.busy() {
		return nil
	}
	t := &m.talk
	e := t.conversation.current
	if e == nil {
		return m.note("Nothing to undo.")
	}
	m.transcript.entries, t.editing = m.transcript.entries[:e.entry], nil
	if t.conversation.current, t.context = e.prev, 0; e.prev != nil {
		t.context = e.prev.context
	}
	m.input.history.add(e.question) // Up brings it back
	m.save()
	return m.note("Undone. Up brings the question back, /undo again goes further.")
}

// branch is the place of e among its branches, "" if it has no other.
func (c *conversation) branch(e *exchange) string {
	list := *c.siblings(e)
	if len(list) < 2 {
		return ""
	}
	place := fmt.Sprintf("%d of %d", slices.Index(list, e)+1, len(list))
	if e == c.fork() {
		place += ", /branch shows the next"
	}
	return place
}

// newQuestion is the question of an exchange in the transcript, with its place among branches.
func (m *Model) newQuestion(e *exchange) *markedText {
	text := e.question
	if strings.HasPrefix(text, "!") { // with the command's output
		_, output, _ := strings.Cut(e.messages[0].Text(), "\n")
		text = strings.ReplaceAll(text+"\n"+output, "\n```", "")
	}
	q := newQuestion(m.palette, strings.TrimSpace(text))
	q.branch = func() string { return m.talk.conversation.branch(e) }
	return q
}

func (c *conversation) messages() []session.Message {
	var all []session.Message
	for _, e := range c.path() {
		if e.summary != "" {
			all = nil
		}
		all = append(all, e.messages...)
	}
	return all
}

// code is the code blocks of the branch up to and including e.
func (e *exchange) code() []string {
	if e == nil {
		return nil
	}
	all := e.prev.code()
	if e.answer != nil {
		all = append(all, e.answer.code()...)
	}
	return all
}

func (c *conversation) lastAnswer() string {
	for e := c.current; e != nil; e = e.prev {
		if e.answer != nil {
			if text := e.answer.text(); text != "" {
				return text
			}
		}
	}
	return ""
}

// document is the visible branch as markdown, for /export.
func (c *conversation) document(model, system string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Chat with %s\n", model)
	if system != "" {
		fmt.Fprintf(&b, "\n## System\n\n%s\n", system)
	}
	for _, e := range c.path() {
		if e.summary != "" {
			fmt.Fprintf(&b, "\n## Summary of what was said before\n\n%s\n", e.summary)
			continue
		}
		fmt.Fprintf(&b, "\n## You\n\n%s\n\n## %s\n", e.question, model)
		for _, p := range e.answer.parts {
			switch p := p.(type) {
			case *reasoningText:
				fmt.Fprintf(&b, "\n<details><summary>%s</summary>\n\n%s\n\n</details>\n", p.head(),
					p.text.text.String())
			case *answerText:
				fmt.Fprintf(&b, "\n%s\n", p.text.Text())
			case *call:
				b.WriteString(p.document())
			}
		}
	}
	return b.String()
}

// editQuestion puts a question into the editor; sending it begins a branch in its place.
func editQuestion(m *Model, number string) tea.Cmd {
	if m.busy() {
		return nil
	}
	questions := m.talk.conversation.questions()
	n, ok := nth(number, len(questions), len(questions))
	if !ok {
		return m.showError(fmt.Sprintf("Nothing to edit: no question %s of %d. /edit alone edits "+
			"the last.", number, len(questions)))
	}
	m.talk.editing = questions[n-1]
	m.input.editor.set(m.talk.editing.question)
	return m.note(fmt.Sprintf("Question %d of %d. Enter sends it in a new branch, Esc leaves it.",
		n, len(questions)))
}

func showBranch(m *Model, number string) tea.Cmd {
	if m.busy() {
		return nil
	}
	fork := m.talk.conversation.fork()
	if fork == nil {
		return m.showNotice("No branches yet. /edit and /regenerate create one.")
	}
	list := *m.talk.conversation.siblings(fork)
	n, ok := nth(number, len(list), (slices.Index(list, fork)+1)%len(list)+1)
	if !ok {
		return m.showError(fmt.Sprintf("No branch %s. There are %s.", number,
			term.Count(len(list), "branch")))
	}
	m.transcript.entries = m.transcript.entries[:fork.entry]
	m.talk.conversation.current, _ = list[n-1].end()
	m.talk.context = m.talk.conversation.current.context
	m.show(fork.prev)
	m.save()
	return m.note(fmt.Sprintf("Branch %d of %d.", n, len(list)))
}

// end is the latest exchange after e, and the number of exchanges up to it, both included.
func (e *exchange) end() (latest *exchange, length int) {
	for length = 1; len(e.next) > 0; length++ {
		e = e.next[len(e.next)-1]
	}
	return e, length
}

// busy reports, with a note for the person, that the conversation cannot change now.
func (m *Model) busy() bool {
	switch {
	case m.talk.live != nil:
		m.note("An answer is being written. Esc stops it.")
	case m.talk.compacting != nil:
		m.note("The conversation is being summarised. Esc stops it.")
	case m.talk.preparing != "":
		m.note("A message is being sent. Esc gives it back.")
	default:
		return false
	}
	return true
}

// compact asks the model for a summary, with which the conversation continues.
func compact(m *Model) tea.Cmd {
	messages := m.talk.conversation.messages()
	if m.busy() {
		return nil
	}
	if len(messages) == 0 {
		return m.note("Nothing to summarise yet.")
	}
	ctx, cancel := context.WithCancel(m.ctx)
	m.talk.compacting = cancel
	m.showNotice("Summarising " + term.Count(len(messages), "message") + ".")
	runner := m.options.Model
	req := m.request()
	return m.background.run(func() tea.Msg {
		defer cancel()
		active, err := m.tools.ready()
		if err != nil {
			return compacted{err: err}
		}
		s, err := session.Compact(ctx, runner, session.WithTools(req, active))
		return compacted{s, len(messages), err}
	})
}

// compacted is the summary of count messages.
type compacted struct {
	summary session.Summary
	count   int
	err     error
}

func (c compacted) apply(m *Model) tea.Cmd {
	if m.talk.compacting = nil; c.err != nil {
		m.showError("Nothing was summarised: " + reason(c.err) + ".")
		return m.nextQueued(false)
	}
	t := &m.talk
	t.context = c.summary.Usage.Completion
	e := &exchange{summary: c.summary.Text, entry: len(m.transcript.entries), context: t.context,
		messages: []session.Message{c.summary.Message()}}
	t.conversation.add(e, t.conversation.current)
	m.transcript.add(newSummary(m.palette, e.summary))
	text := fmt.Sprintf("The conversation continues from this summary of %s. They stay "+
		"on the screen and in /export.", term.Count(c.count, "message"))
	if c.summary.Dropped > 0 {
		text += fmt.Sprintf(" The %d oldest did not fit and are not in it.", c.summary.Dropped)
	}
	m.showNotice(text)
	m.save()
	return m.nextQueued(true)
}
