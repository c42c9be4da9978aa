// The tools of the conversation on the screen, and the question whether one may run, which the tool
// asks and the person answers.
//
// Tools keep a conversation's state, such as python's variables, so another conversation gets new
// ones: before its first turn, outside Update. No method of a tool is called in Update or View,
// since a tool may wait for a server: what they show is what the model was last offered.

package chat

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/session"
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
	above     bool      // the text is in the transcript, since it is too long for a question
	still     time.Time // since then the question stands and no key was pressed
}

// settles is how long a question stands without a key before one answers it: whoever types a
// sentence as it appears has not read it.
const settles = 400 * time.Millisecond

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

// nextAsk waits for the next question.
func (m *Model) nextAsk() tea.Cmd {
	if m.options.Approval == nil {
		return nil
	}
	return await(m.ctx, m.options.Approval.asks, func(a approvalAsk) tea.Msg { return a })
}

// answerable reports whether a key would answer the open question: a letter of a text that is being
// typed does not.
func (m *Model) answerable() bool {
	return m.asking != nil && m.editor.text == "" && m.now.Sub(m.asking.still) >= settles
}

// approve takes a key as the answer to the open question, and reports whether it is one.
func (m *Model) approve(key string) bool {
	always, allowed := false, false
	switch key {
	case "y":
		allowed = true
	case "a":
		allowed, always = true, true
	case "n":
	case "N":
		always = true
	default:
		return false
	}
	if a := m.options.Approval; always {
		a.mu.Lock()
		a.decided[m.asking.key] = allowed
		a.mu.Unlock()
	}
	m.asking.reply <- allowed
	m.asking = nil
	return true
}

// mostAsked is how many lines of the screen a question takes.
const mostAsked = 4

// askWhole opens a question. What is asked is shown whole before it can be answered.
func (m *Model) askWhole(a approvalAsk) {
	m.asking = &a
	a.still = m.clock()
	if a.text = term.Clean(a.text); term.Width(a.text) > mostAsked*m.width {
		a.above = true
		// it stays, as what it is about does
		m.appendEntry(newNotice(m.palette, "·", term.Dim, a.text))
	}
}

// askRows are the question over the editor.
func (m *Model) askRows() []term.Row {
	if m.asking == nil {
		return nil
	}
	text := m.asking.text
	if m.asking.above {
		text = term.Cut(text, m.width) + " (whole above)"
	}
	keys := term.Dim
	if m.answerable() {
		keys = term.Bold
	}
	how := []term.Span{{Text: "y", Style: keys}, {Text: " allow · "},
		{Text: "a", Style: keys}, {Text: " allow in this chat · "}, {Text: "n", Style: keys},
		{Text: " refuse · "}, {Text: "N", Style: keys}, {Text: " refuse in this chat"}}
	if m.editor.text != "" {
		how = []term.Span{{Text: "Send or clear your text to answer.", Style: term.Yellow}}
	}
	width := max(m.width-2*m.margin(), 1)
	rows := append(term.Wrap([]term.Span{{Text: "May this run?  ", Style: term.Bold | term.Yellow},
		{Text: text}}, width), term.Wrap(how, width)...)
	margin := term.Span{Text: strings.Repeat(" ", m.margin())}
	return term.Prefix(rows, margin, margin)
}

func (m *Model) listTools() tea.Cmd {
	if len(m.tools.now()) == 0 {
		return m.showNotice("the model has no tools here: --tools browser,python gives it some")
	}
	return m.do(func() outcome {
		tools := m.tools.look()
		rows := []line{styledLine(term.Bold, "The model may call "+counted(len(tools), "tool"))}
		for _, o := range tools {
			rows = append(rows, plainLine(term.Clean(o.name), term.Clean(o.does)))
		}
		return func(m *Model) tea.Cmd { return m.appendEntry(&block{lines: rows}) }
	})
}

type toolbox struct {
	renew func() ([]session.Tool, error) // nil: the tools keep no state

	making sync.Mutex // held while new ones are made
	tools  atomic.Pointer[[]session.Tool]
	stale  atomic.Bool // they are another conversation's
	shown  atomic.Pointer[[]offer]
}

// now are the tools there are.
func (b *toolbox) now() []session.Tool { return *b.tools.Load() }

// offers are what the model was last offered.
func (b *toolbox) offers() []offer {
	if all := b.shown.Load(); all != nil {
		return *all
	}
	return nil
}

// look asks the tools what they offer. That may take what it takes to ask a server.
func (b *toolbox) look() []offer {
	var r session.Request
	for _, t := range b.now() {
		t.Offer(&r)
	}
	return b.show(r)
}

func (b *toolbox) show(r session.Request) []offer {
	all := offered(r)
	b.shown.Store(&all)
	return all
}

// watched is a model of which each turn shows what it is offered.
func (b *toolbox) watched(model session.Runner) session.Runner {
	return session.Starts(model, func(ctx context.Context, r session.Request) (session.Turn,
		error) {
		b.show(r)
		return model.Start(ctx, r)
	})
}

// markStale says that another conversation has begun.
func (b *toolbox) markStale() { b.stale.Store(b.renew != nil && len(b.now()) > 0) }

// ready are the tools for a turn.
func (b *toolbox) ready() ([]session.Tool, error) {
	b.making.Lock()
	defer b.making.Unlock()
	if !b.stale.Load() {
		return b.now(), nil
	}
	tools, err := b.renew()
	if err != nil {
		return nil, err
	}
	b.tools.Store(&tools)
	b.stale.Store(false)
	return tools, nil
}

// An offer is a tool as /tools lists it.
type offer struct{ name, does string }

// offered are the names under which tools are offered in a request.
func offered(r session.Request) (all []offer) {
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
