// Going back in a conversation: a question is edited and sent again, which begins a branch; the
// branches that were left stay and can be gone to; a long conversation goes on from its summary.

package chat

import (
	"context"
	"fmt"
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/session"
)

// edit puts a question into the editor; what is sent then begins a branch in its place.
func (m *Model) edit(number string) tea.Cmd {
	if m.busy() {
		return nil
	}
	asked := m.conversation.asked()
	n, ok := nth(number, len(asked), len(asked))
	if !ok {
		return m.complain(fmt.Sprintf("/edit %s: there are %d questions; /edit alone takes the "+
			"last", number, len(asked)))
	}
	m.editing = asked[n-1]
	m.editor.set(m.editing.question)
	return m.note(fmt.Sprintf("question %d of %d: Enter sends it in a new branch, Esc leaves it", n,
		len(asked)))
}

// branch goes to another branch where the conversation on the screen last divided.
func (m *Model) branch(number string) tea.Cmd {
	if m.busy() {
		return nil
	}
	fork := m.conversation.fork()
	if fork == nil {
		return m.inform("there is one branch: /edit and /regenerate begin others")
	}
	list := *m.conversation.beside(fork)
	n, ok := nth(number, len(list), (slices.Index(list, fork)+1)%len(list)+1)
	if !ok {
		return m.complain(fmt.Sprintf("/branch %s: there are %d branches", number, len(list)))
	}
	m.transcript.entries = m.transcript.entries[:fork.entry]
	m.conversation.at, _ = list[n-1].end()
	m.context = m.conversation.at.context
	m.show(fork.before)
	m.keep()
	return m.note(fmt.Sprintf("branch %d of %d: /branch goes to the next", n, len(list)))
}

// end is the latest exchange behind e, and how many there are on the way, both among them.
func (e *exchange) end() (latest *exchange, length int) {
	for length = 1; len(e.after) > 0; length++ {
		e = e.after[len(e.after)-1]
	}
	return e, length
}

// busy tells the person where the conversation cannot be changed now.
func (m *Model) busy() bool {
	switch {
	case m.live != nil:
		m.note("an answer is being written: Esc stops it")
	case m.compacting != nil:
		m.note("the conversation is being summarised: Esc stops it")
	case m.preparing != "":
		m.note("the files of a message are being read")
	default:
		return false
	}
	return true
}

// compact asks the model for a summary, from which the conversation goes on.
func (m *Model) compact() tea.Cmd {
	messages := m.conversation.messages()
	if m.busy() {
		return nil
	}
	if len(messages) == 0 {
		return m.note("nothing was said yet")
	}
	ctx, cancel := context.WithCancel(m.ctx)
	m.compacting = cancel
	m.inform(fmt.Sprintf("summarising %d messages", len(messages)))
	runner := m.options.Model
	req := session.Request{Messages: messages, Instructions: m.system, Params: m.options.Params}
	return m.do(func() outcome {
		defer cancel()
		s, err := session.Compact(ctx, runner, req)
		return func(m *Model) tea.Cmd {
			if m.compacting = nil; err != nil {
				m.complain("nothing was summarised: " + reason(err))
			} else {
				m.summarised(s, len(messages))
			}
			return m.nextQueued(err == nil)
		}
	})
}

// summarised puts the summary of so many messages where the conversation goes on.
func (m *Model) summarised(s session.Summary, of int) {
	m.context = s.Usage.Completion
	e := &exchange{summary: s.Text, entry: len(m.transcript.entries), context: m.context,
		messages: []session.Message{s.Message()}}
	m.conversation.add(e, m.conversation.at)
	m.transcript.add(newSummary(m.palette, e.summary))
	text := fmt.Sprintf("the model goes on from this summary of %d messages; they stay on the "+
		"screen and in /export", of)
	if s.Dropped > 0 {
		text += fmt.Sprintf("; the %d oldest did not fit and are not in it", s.Dropped)
	}
	m.inform(text)
	m.keep()
}
