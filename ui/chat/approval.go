// Approval of a tool call: the tool asks, the person answers.
//
// What must stay true: the full call is shown before it can be answered, and nothing in it can hide
// or imitate a part of the question; letters typed into a text never answer it.

package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// An Approval carries questions of tools to its chat. It remembers decisions made for the whole
// chat.
type Approval struct {
	asks chan approvalAsk

	mu      sync.Mutex
	decided map[string]bool // by server and tool
}

// approvalAsk is one question. reply is buffered for the answer.
type approvalAsk struct {
	server, tool, arguments string
	reply                   chan bool
	inTranscript            bool      // long arguments are shown there
	since                   time.Time // when it appeared or the last key was pressed
}

// settleTime is how long a question must be visible without a keypress before a key answers it: a
// person who is typing has not read it.
const settleTime = 400 * time.Millisecond

func NewApproval() *Approval {
	return &Approval{asks: make(chan approvalAsk), decided: map[string]bool{}}
}

// Ask asks the person whether a tool of a server may run with these arguments. It returns the
// answer, or an error at the end of ctx.
func (a *Approval) Ask(ctx context.Context, server, tool, arguments string) (bool, error) {
	ask := approvalAsk{server: server, tool: tool, arguments: arguments, reply: make(chan bool, 1)}
	a.mu.Lock()
	allowed, ok := a.decided[ask.key()]
	a.mu.Unlock()
	if ok {
		return allowed, nil
	}
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

func (a approvalAsk) key() string { return a.server + "\x00" + a.tool }

func (m *Model) nextAsk() tea.Cmd {
	if m.options.Approval == nil {
		return nil
	}
	return receive(m.ctx, m.options.Approval.asks, func(a approvalAsk) tea.Msg { return a })
}

// answerable reports whether a key would answer the open question. Keys typed into a text do not.
func (m *Model) answerable() bool {
	return m.asking != nil && m.editor.text == "" && m.now.Sub(m.asking.since) >= settleTime
}

// approvalKeys are the keys that answer.
var approvalKeys = []struct {
	key, does       string
	allowed, always bool
	done            string // format for the tool's name
}{
	{"y", "allow", true, false, "%s was allowed once."},
	{"a", "allow in this chat", true, true, "%s is allowed in this chat."},
	{"n", "refuse", false, false, "%s was refused once. The model continues without it."},
	{"d", "refuse in this chat", false, true, "%s is refused in this chat."},
}

// approve handles a key as an answer to the open question, and reports whether it is one.
func (m *Model) approve(key string) bool {
	for _, d := range approvalKeys {
		if d.key != key {
			continue
		}
		if a := m.options.Approval; d.always {
			a.mu.Lock()
			a.decided[m.asking.key()] = d.allowed
			a.mu.Unlock()
		}
		if m.live != nil {
			m.live.answer.callAllowed(m.clock())
		}
		name := strings.TrimSpace(m.asking.server + " " + m.asking.tool)
		m.note(fmt.Sprintf(d.done, escapeHidden(name)))
		m.asking.reply <- d.allowed
		m.asking = nil
		return true
	}
	return false
}

// openAsk opens a question. Arguments taller than a third of the screen are shown in the
// transcript, where they scroll, while the question is open.
func (m *Model) openAsk(a approvalAsk) {
	m.asking = &a
	a.since = m.clock()
	rows := len(formatArguments(a.arguments, m.askWidth()))
	a.inTranscript = !m.plain && rows > max(m.height/3, 4)
	if a.inTranscript {
		m.appendEntry(&fullArguments{m, &a})
	}
}

// fullArguments are long arguments in the transcript.
type fullArguments struct {
	model *Model
	ask   *approvalAsk
}

func (e *fullArguments) runs(l layout) []run {
	if e.model.asking != e.ask {
		return nil
	}
	rows := formatArguments(e.ask.arguments, max(l.width-2, 1))
	return []run{{l.dim("│ ", 2), l.palette.PaintAll(rows)}}
}

func (a approvalAsk) head() string {
	if a.server == "" {
		return escapeHidden(a.tool) + " wants to run"
	}
	return escapeHidden(a.server) + " wants to run " + escapeHidden(a.tool)
}

func (m *Model) askWidth() int { return max(m.width-2*m.margin()-2, 1) }

func (m *Model) askRows() []term.Row {
	if m.asking == nil {
		return nil
	}
	width, keys := m.askWidth(), term.Dim
	if m.answerable() {
		keys = term.Bold
	}
	var hints []term.Span
	for _, d := range approvalKeys {
		hints = append(hints, term.Span{Text: d.key, Style: keys},
			term.Span{Text: " " + d.does + "   "})
	}
	if m.editor.text != "" {
		hints = []term.Span{{Text: "Send or clear your text to answer.", Style: term.Yellow}}
	}
	arguments := formatArguments(m.asking.arguments, width)
	if n := len(arguments); m.asking.inTranscript {
		hint := fmt.Sprintf("… all %s are above, PgUp scrolls", formatCount(n, "row"))
		arguments = append(arguments[:2:2], term.Row{{Text: term.Cut(hint, width),
			Style: term.Yellow}})
	}
	edge := func(mark string) term.Span {
		return term.Span{Text: strings.Repeat(" ", m.margin()) + mark, Style: term.Yellow}
	}
	head := []term.Span{{Text: m.asking.head(), Style: term.Bold | term.Yellow}}
	rows := term.Prefix(term.Wrap(head, width), edge("╭ "), edge("│ "))
	rows = append(rows, term.Prefix(arguments, edge("│ "), edge("│ "))...)
	return append(rows, term.Prefix(term.Wrap(hints, width), edge("╰ "), edge("  "))...)
}

// formatArguments returns the full arguments of a call: a row for each member of an object, other
// text as the model wrote it.
func formatArguments(arguments string, width int) (rows []term.Row) {
	all, ok := members(arguments)
	if !ok {
		return term.Wrap([]term.Span{{Text: escapeHidden(arguments)}}, width)
	}
	wide := 0
	for _, a := range all {
		wide = max(wide, term.Width(a.name))
	}
	wide = min(wide, width/3)
	for _, a := range all {
		name, indent := term.Span{Text: pad(a.name, wide) + "  ", Style: term.Cyan},
			term.Span{Text: strings.Repeat(" ", wide+2)}
		if term.Width(a.name) > wide || strings.Contains(a.name, "\n") {
			name.Text = a.name
			rows, name = append(rows, term.Wrap([]term.Span{name}, width)...), indent
		}
		rows = append(rows, term.Prefix(term.Wrap(a.text, max(width-wide-2, 1)), name,
			indent)...)
	}
	if len(all) == 0 {
		rows = []term.Row{{{Text: "without arguments", Style: term.Dim}}}
	}
	return rows
}

// members returns the members of a JSON object in order, duplicates included.
func members(text string) (all []line, ok bool) {
	d := json.NewDecoder(strings.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		name, err := d.Token()
		var raw json.RawMessage
		if err = errors.Join(err, d.Decode(&raw)); err != nil {
			return nil, false
		}
		value := string(raw)
		var s string
		if json.Unmarshal(raw, &s) == nil && s != "" {
			value = s
		}
		all = append(all, plainLine(escapeHidden(fmt.Sprint(name)), escapeHidden(value)))
	}
	if _, err := d.Token(); err != nil {
		return nil, false
	}
	_, err := d.Token()
	return all, errors.Is(err, io.EOF)
}

// escapeHidden returns text with everything quoted that a terminal would not show.
func escapeHidden(text string) string {
	if term.Clean(text) == text {
		return text
	}
	return strconv.QuoteToASCII(text)
}
