// Going back in a conversation: a question is edited and sent again, which begins a branch; the
// branches that were left stay and can be gone to; a long conversation goes on from its summary.

package chat

import (
	"context"
	"fmt"
	"strconv"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/session"
)

// compacted is the end of /compact.
type compacted struct {
	summary session.Summary
	of      int // messages
	err     error
}

// edit puts a question into the editor; what is sent then begins a branch in its place.
func (m *Model) edit(number string) tea.Cmd {
	if m.busy() {
		return nil
	}
	asked := m.conversation.asked()
	n, err := len(asked), error(nil)
	if number != "" {
		n, err = strconv.Atoi(number)
	}
	if err != nil || n < 1 || n > len(asked) {
		m.complain(fmt.Sprintf("/edit %s: there are %d questions; /edit alone takes the last",
			number, len(asked)))
		return nil
	}
	m.editing = asked[n-1]
	m.editor.set(m.editing.question)
	m.note(fmt.Sprintf("question %d of %d: Enter sends it in a new branch, Esc leaves it", n,
		len(asked)))
	return nil
}

// branch goes to another branch where the conversation on the screen last divided.
func (m *Model) branch(number string) tea.Cmd {
	if m.busy() {
		return nil
	}
	fork := m.conversation.fork()
	if fork == nil {
		m.inform("there is one branch: /edit and /regenerate begin others")
		return nil
	}
	list := *m.conversation.beside(fork)
	to := 0
	for i, e := range list {
		if e == fork {
			to = (i + 1) % len(list)
		}
	}
	if number != "" {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > len(list) {
			m.complain(fmt.Sprintf("/branch %s: there are %d branches", number, len(list)))
			return nil
		}
		to = n - 1
	}
	m.transcript.entries = m.transcript.entries[:fork.entry]
	m.conversation.at = list[to].end()
	m.context = m.conversation.at.context
	m.show(list[to].before)
	m.keep()
	m.note(fmt.Sprintf("branch %d of %d: /branch goes to the next", to+1, len(list)))
	return nil
}

// length is how many exchanges stand behind e on the way to its end, e among them.
func (e *exchange) length() int {
	n := 1
	for ; len(e.after) > 0; n++ {
		e = e.after[len(e.after)-1]
	}
	return n
}

// end is the latest exchange behind e.
func (e *exchange) end() *exchange {
	for len(e.after) > 0 {
		e = e.after[len(e.after)-1]
	}
	return e
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
		m.note("nothing was said yet")
		return nil
	}
	ctx, cancel := context.WithCancel(m.ctx)
	m.compacting = cancel
	m.inform(fmt.Sprintf("summarising %d messages", len(messages)))
	runner := m.options.Model
	req := session.Request{Messages: messages, Instructions: m.system, Params: m.options.Params}
	return m.do(func() tea.Msg {
		defer cancel()
		s, err := session.Compact(ctx, runner, req)
		return compacted{s, len(messages), err}
	})
}

// summarised puts the summary where the conversation goes on.
func (m *Model) summarised(c compacted) {
	if m.compacting = nil; c.err != nil {
		m.complain("nothing was summarised: " + reason(c.err))
		return
	}
	e := &exchange{summary: c.summary.Text, entry: len(m.transcript.entries),
		messages: []session.Message{c.summary.Message()}}
	m.conversation.add(e, m.conversation.at)
	m.transcript.add(newSummary(m.palette, e.summary))
	m.context = c.summary.Usage.Completion
	e.context = m.context
	text := fmt.Sprintf("the model goes on from this summary of %d messages; they stay on the "+
		"screen and in /export", c.of)
	if c.summary.Dropped > 0 {
		text += fmt.Sprintf("; the %d oldest did not fit and are not in it", c.summary.Dropped)
	}
	m.inform(text)
	m.keep()
}
