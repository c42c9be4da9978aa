// The tools of the visible conversation, and approval of a call: the tool asks, the person answers.
//
// Tools keep a conversation's state, such as python's variables, so another conversation gets new
// ones: before its first turn, outside Update. Update and View call no method of a tool, since a
// tool may wait for a server: they show the model's last offer.
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
	"sync/atomic"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/term"
)

func listTools(m *Model) tea.Cmd {
	if len(m.tools.current()) == 0 {
		return m.showNotice("The model has no tools. Start ossrun with --tools browser,python " +
			"to add some.")
	}
	return m.background.run(func() tea.Msg {
		tools := m.tools.inspect()
		rows := pageRows{styledLine(term.Bold,
			"The model may call "+term.Count(len(tools), "tool"))}
		for _, o := range tools {
			rows = append(rows, plainLine(term.Clean(o.name), term.Clean(o.description)))
		}
		return rows
	})
}

type toolbox struct {
	replace func() ([]session.Tool, error) // nil: the tools have no state

	making    sync.Mutex // held while new ones are made
	tools     atomic.Pointer[[]session.Tool]
	stale     atomic.Bool // they have another conversation's state
	lastOffer atomic.Pointer[[]offer]
}

func (b *toolbox) current() []session.Tool { return *b.tools.Load() }

func (b *toolbox) offers() []offer {
	if all := b.lastOffer.Load(); all != nil {
		return *all
	}
	return nil
}

// inspect asks the tools what they offer, which may wait for a server.
func (b *toolbox) inspect() []offer {
	var r session.Request
	for _, t := range b.current() {
		t.Offer(&r)
	}
	return b.show(r)
}

func (b *toolbox) show(r session.Request) []offer {
	all := offersIn(r)
	b.lastOffer.Store(&all)
	return all
}

func (b *toolbox) recordOffers(model session.Runner) session.Runner {
	return session.WithStart(model, func(ctx context.Context, r session.Request) (session.Turn,
		error) {
		b.show(r)
		return model.Start(ctx, r)
	})
}

func (b *toolbox) markStale() { b.stale.Store(b.replace != nil && len(b.current()) > 0) }

// ready returns the tools for a turn, replacing stale ones.
func (b *toolbox) ready() ([]session.Tool, error) {
	b.making.Lock()
	defer b.making.Unlock()
	if !b.stale.Load() {
		return b.current(), nil
	}
	tools, err := b.replace()
	if err != nil {
		return nil, err
	}
	b.tools.Store(&tools)
	b.stale.Store(false)
	return tools, nil
}

// An offer is a tool as /tools lists it.
type offer struct{ name, description string }

func offersIn(r session.Request) (all []offer) {
	if r.Browser {
		all = append(all, offer{"browser", "searches the web, opens pages, finds text in them"})
	}
	if r.Python {
		all = append(all, offer{"python", "runs code in a sandbox and keeps its state"})
	}
	for _, f := range r.Functions {
		does, _, _ := strings.Cut(f.Description, "\n")
		all = append(all, offer{f.Name, does})
	}
	return all
}

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

// Ask asks the person whether a server's tool may run; other calls are allowed.
func (a *Approval) Ask(ctx context.Context, c session.Call) error {
	if a == nil || c.Server+c.Tool == "" {
		return nil
	}
	ask := approvalAsk{server: c.Server, tool: c.Tool, arguments: c.Arguments,
		reply: make(chan bool, 1)}
	a.mu.Lock()
	allowed, ok := a.decided[ask.call()]
	a.mu.Unlock()
	if !ok {
		select {
		case a.asks <- ask:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case allowed = <-ask.reply:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if !allowed {
		return errors.New(refusal)
	}
	return nil
}

func (a *approvalAsk) call() string { return a.server + "\x00" + a.tool }

func (a *Approval) next(ctx context.Context) tea.Cmd {
	if a == nil {
		return nil
	}
	return receive(ctx, a.asks, func(ask approvalAsk) tea.Msg { return ask })
}

// answerable reports whether a key would answer the question. Keys typed into a text do not.
func (a *approvalAsk) answerable(m *Model) bool {
	return m.input.editor.text == "" && m.now.Sub(a.since) >= settleTime
}

func (a *approvalAsk) key(m *Model, _ tea.KeyMsg, name string) (tea.Cmd, bool) {
	if a.answerable(m) && a.answer(m, name) {
		return nil, true
	}
	a.since = m.now
	return nil, false
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

// answer handles a key as an answer to the question, and reports whether it is one.
func (a *approvalAsk) answer(m *Model, key string) bool {
	for _, d := range approvalKeys {
		if d.key != key {
			continue
		}
		if all := m.options.Approval; d.always {
			all.mu.Lock()
			all.decided[a.call()] = d.allowed
			all.mu.Unlock()
		}
		if m.talk.live != nil {
			m.talk.live.answer.callAllowed(m.clock())
		}
		m.note(fmt.Sprintf(d.done, toolName(a.server, a.tool)))
		a.reply <- d.allowed
		m.modes.close(approvalRank)
		return true
	}
	return false
}

// open shows the question. Arguments taller than a third of the screen are shown in the transcript,
// which scrolls, while it is open.
func (a *approvalAsk) open(m *Model) {
	m.modes.open(a)
	a.since = m.clock()
	rows := len(formatArguments(a.arguments, m.askWidth()))
	a.inTranscript = !m.plain && rows > max(m.height/3, 4)
	if a.inTranscript {
		m.appendEntry(&fullArguments{m, a})
	}
}

// fullArguments are long arguments in the transcript.
type fullArguments struct {
	model *Model
	ask   *approvalAsk
}

func (e *fullArguments) runs(l layout) []run {
	if e.model.modes.ask() != e.ask {
		return nil
	}
	rows := formatArguments(e.ask.arguments, max(l.width-2, 1))
	return []run{{l.dim("│ ", 2), l.palette.PaintAll(rows)}}
}

func (a *approvalAsk) head() string {
	if a.server == "" {
		return escapeHidden(a.tool) + " wants to run"
	}
	return escapeHidden(a.server) + " wants to run " + escapeHidden(a.tool)
}

func (a *approvalAsk) rows(m *Model) []term.Row {
	if a == nil {
		return nil
	}
	width, keys := m.askWidth(), term.Dim
	if a.answerable(m) {
		keys = term.Bold
	}
	var hints []term.Span
	for _, d := range approvalKeys {
		hints = append(hints, term.Span{Text: d.key, Style: keys},
			term.Span{Text: " " + d.does + "   "})
	}
	if m.input.editor.text != "" {
		hints = []term.Span{{Text: "Send or clear your text to answer.", Style: term.Yellow}}
	}
	arguments := formatArguments(a.arguments, width)
	if n := len(arguments); a.inTranscript {
		hint := fmt.Sprintf("… all %s are above, PgUp scrolls", term.Count(n, "row"))
		arguments = append(arguments[:2:2], term.Row{{Text: term.Cut(hint, width),
			Style: term.Yellow}})
	}
	edge := func(mark string) term.Span {
		return term.Span{Text: m.indent() + mark, Style: term.Yellow}
	}
	head := []term.Span{{Text: a.head(), Style: term.Bold | term.Yellow}}
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
