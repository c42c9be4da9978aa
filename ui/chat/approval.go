// The question whether a tool may run, which the tool asks and the person answers.

package chat

import (
	"context"
	"fmt"
	"strings"
	"sync"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// An Approval carries questions of tools to the chat that is given it. It remembers what the person
// allowed or forbade for as long as it lives.
type Approval struct {
	asks chan approvalAsk

	mu      sync.Mutex
	decided map[string]bool // by server and tool
}

// approvalAsk is one question. reply has room for the answer.
type approvalAsk struct {
	key, text string
	reply     chan bool
}

// NewApproval returns one on which nothing was decided.
func NewApproval() *Approval {
	return &Approval{asks: make(chan approvalAsk), decided: map[string]bool{}}
}

// Ask asks the person whether a tool of a server may run with these arguments, and waits for the
// answer or the end of ctx.
func (a *Approval) Ask(ctx context.Context, server, tool, arguments string) (bool, error) {
	key := server + "\x00" + tool
	a.mu.Lock()
	allowed, known := a.decided[key]
	a.mu.Unlock()
	if known {
		return allowed, nil
	}
	name := tool
	if server != "" {
		name = server + " " + tool
	}
	ask := approvalAsk{key: key, reply: make(chan bool, 1),
		text: name + ": " + strings.Join(strings.Fields(arguments), " ")}
	select {
	case a.asks <- ask:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	select {
	case allowed = <-ask.reply:
		return allowed, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// decide answers a question: once, or for as long as the chat lasts.
func (a *Approval) decide(ask approvalAsk, allowed, always bool) {
	if always {
		a.mu.Lock()
		a.decided[ask.key] = allowed
		a.mu.Unlock()
	}
	ask.reply <- allowed
}

// nextAsk waits for the next question.
func (m *Model) nextAsk() tea.Cmd {
	if m.options.Approval == nil {
		return nil
	}
	return func() tea.Msg {
		select {
		case ask := <-m.options.Approval.asks:
			return ask
		case <-m.ctx.Done():
			return nil
		}
	}
}

// approve takes a key while a question is open, and reports whether it was an answer.
func (m *Model) approve(key string) bool {
	always, allowed := false, false
	switch key {
	case "y", "o":
		allowed = true
	case "a":
		allowed, always = true, true
	case "n":
	case "N", "v":
		always = true
	default:
		return false
	}
	m.options.Approval.decide(*m.asking, allowed, always)
	m.asking = nil
	return true
}

// askRows are the question over the editor.
func (m *Model) askRows() []term.Row {
	if m.asking == nil {
		return nil
	}
	rows := term.Wrap([]term.Span{{Text: "May this run?  ", Style: term.Bold | term.Yellow},
		{Text: term.Cut(term.Clean(m.asking.text), 4*m.width)}}, max(m.width-2*m.margin(), 1))
	rows = append(rows, term.Row{{Text: "y", Style: term.Bold}, {Text: " once · "},
		{Text: "a", Style: term.Bold}, {Text: " always · "}, {Text: "n", Style: term.Bold},
		{Text: " not now · "}, {Text: "N", Style: term.Bold}, {Text: " never"}})
	margin := term.Span{Text: strings.Repeat(" ", m.margin())}
	return term.Prefix(rows, margin, margin)
}

// tools lists what the model may call.
func (m *Model) listTools() tea.Cmd {
	if len(m.tools.now()) == 0 {
		m.inform("the model has no tools here: --tools browser,python gives it some")
		return nil
	}
	var rows []line
	for _, o := range offered(m.tools.now()) {
		rows = append(rows, line{term.Clean(o.name), term.Row{{Text: term.Clean(o.does)}}})
	}
	m.transcript.add(&block{lines: append([]line{{text: term.Row{{Text: fmt.Sprintf(
		"The model may call %d tools", len(rows)), Style: term.Bold}}}}, rows...)})
	m.transcript.follow = true
	return nil
}
