// The chat without a screen. RunPlain is for terminals that can only print lines (TERM=dumb, an
// editor's shell, a screen reader): it drives the same Model, with lines typed into its editor, and
// prints new transcript entries. So a command or a tool exists once.
//
// Ask is for `ossrun chat PROMPT`: it continues a saved conversation or begins one, and is saved
// with its answer. A terminal shows the answer as Markdown.
//
// What must stay true: a question without an answer leaves the conversation unchanged; a Page never
// writes above its first row.

package chat

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/markdown"
	"github.com/ossrun/ossrun/ui/chat/term"
)

const plainWidth = 80

// RunPlain is Run line by line, without a screen. It ends with the end of o.In, /quit, or ctx.
func RunPlain(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	o.NoColor = true
	m := newModel(ctx, o)
	m.clipboard, m.plain = o.Out, true
	m.width, m.height, m.laidOut = plainWidth, 24, plainWidth
	defer func() { m.record.releaseLock() }()
	defer m.background.Wait()
	defer cancel()
	p := &linePrinter{model: m, out: bufio.NewWriter(o.Out), done: map[entry]bool{},
		messages: make(chan tea.Msg, 16)}
	p.start(m.Init())
	lines := make(chan string)
	go func() { // a read cannot be cancelled: it ends with the terminal or the process
		defer close(lines)
		for in := bufio.NewReader(o.In); ; {
			line, err := in.ReadString('\n')
			if err != nil && line == "" {
				return
			}
			select {
			case lines <- strings.TrimRight(line, "\r\n"):
			case <-ctx.Done():
				return
			}
		}
	}()
	for !m.quitting {
		if err := p.flush(); err != nil {
			return fmt.Errorf("chat: %w", err)
		}
		select {
		case line, ok := <-lines:
			if !ok {
				if !m.talk.isAnswering() {
					return ctx.Err()
				}
				lines = nil // only the answer is awaited
				continue
			}
			p.line(line)
		case msg := <-p.messages:
			_, cmd := m.Update(msg)
			p.skipTyped()
			p.start(cmd)
			if lines == nil && !m.talk.isAnswering() {
				return p.flush()
			}
		case <-ctx.Done():
			m.save()
			return ctx.Err()
		}
	}
	return p.flush()
}

type linePrinter struct {
	model    *Model
	out      *bufio.Writer
	messages chan tea.Msg

	done      map[entry]bool // already printed
	part      int            // of the answer being written
	offset    int            // printed bytes of that part
	hasPrompt bool           // the prompt is on the last line
	typed     string         // continued lines
	sent      string         // the last line, if it is asked once saved
}

// start runs a command of the Model and passes its message on.
func (p *linePrinter) start(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	ctx := p.model.ctx
	go func() {
		msg := cmd()
		if batch, ok := msg.(tea.BatchMsg); ok {
			for _, c := range batch {
				p.start(c)
			}
			return
		}
		if msg == nil {
			return
		}
		select {
		case p.messages <- msg:
		case <-ctx.Done():
		}
	}()
}

// line handles one typed line. A backslash at its end continues it.
func (p *linePrinter) line(text string) {
	m, wasAsked := p.model, p.hasPrompt
	p.hasPrompt = false
	if c := m.modes.confirmation(); c != nil {
		p.start(c.answer(m, strings.TrimSpace(text)))
		return
	}
	if a := m.modes.ask(); a != nil && wasAsked { // otherwise the question is printed again
		a.answer(m, strings.TrimSpace(text))
		return
	}
	if rest, ok := strings.CutSuffix(text, `\`); ok {
		p.typed += rest + "\n"
		p.hasPrompt = true
		return
	}
	m.now = m.clock()
	m.notices.keyTyped()
	m.input.editor.set("")
	m.input.editor.insert(p.typed + text)
	p.typed = ""
	if p.sent = ""; !m.talk.isAnswering() {
		p.sent = strings.TrimSpace(m.input.editor.text)
	}
	p.start(m.send())
	p.skipTyped()
	m.input.editor.set("")
}

// skipTyped skips the question just typed on the last line.
func (p *linePrinter) skipTyped() {
	if l := p.model.talk.live; l != nil && l.exchange.question == p.sent {
		p.done[l.question], p.sent = true, ""
	}
}

// flush prints new entries, and the prompt if input is expected.
func (p *linePrinter) flush() error {
	m := p.model
	for _, e := range m.transcript.entries {
		if p.done[e] {
			continue
		}
		if a, ok := e.(*answer); ok {
			if !p.answer(a) {
				break // later entries wait
			}
		} else {
			p.rows(e)
		}
		p.done[e] = true
	}
	if m.notices.message != "" {
		fmt.Fprintf(p.out, "[%s]\n", m.notices.message)
		m.notices.message = ""
	}
	switch c, a := m.modes.confirmation(), m.modes.ask(); {
	case c != nil && !p.hasPrompt:
		fmt.Fprintf(p.out, "\n%s (y %s, anything else %s) ", c.text, c.yes, c.no)
		p.hasPrompt = true
	case a != nil && !p.hasPrompt && m.talk.live != nil && m.talk.live.answer.hasRunningCall():
		fmt.Fprintf(p.out, "\n%s\n", a.head())
		for _, row := range m.palette.PaintAll(formatArguments(a.arguments, plainWidth-2)) {
			fmt.Fprintln(p.out, "  "+strings.TrimRight(ansi.Strip(row), " "))
		}
		fmt.Fprint(p.out, "y allow, a allow in this chat, n refuse, d refuse in this chat: ")
		p.hasPrompt = true
	case !m.talk.isAnswering() && !p.hasPrompt && !m.quitting:
		fmt.Fprint(p.out, "\n> ")
		p.hasPrompt = true
	}
	return p.out.Flush()
}

func (p *linePrinter) rows(e entry) {
	l := layout{palette: p.model.palette, width: plainWidth, wide: plainWidth, height: 24,
		unfolded: p.model.unfolded, now: p.model.now, notices: p.model.notices.number}
	for _, r := range e.runs(l) {
		for _, row := range r.rows {
			fmt.Fprintln(p.out, strings.TrimRight(ansi.Strip(r.prefix+row), " "))
		}
	}
}

// answer prints the new text of an answer, and reports whether it is complete.
func (p *linePrinter) answer(a *answer) bool {
	for ; p.part < len(a.parts); p.part++ {
		complete := !a.live || p.part < len(a.parts)-1
		if c, ok := a.parts[p.part].(*call); ok {
			complete = !c.running && (complete || !c.endTime.IsZero())
		}
		if p.print(a.parts[p.part], complete); !complete {
			return false
		}
		p.offset = 0
	}
	if a.live {
		return false
	}
	p.part = 0
	l := layout{palette: p.model.palette, width: plainWidth, plain: true}
	for _, row := range a.footnotes(l) {
		fmt.Fprintln(p.out, row)
	}
	if a.ending != "" {
		fmt.Fprintf(p.out, "[%s]\n", a.ending)
	}
	return true
}

func (p *linePrinter) print(item part, complete bool) {
	switch t := item.(type) {
	case *reasoningText:
		if p.model.unfolded {
			p.text(t.text.text.String())
		} else if complete {
			fmt.Fprintf(p.out, "[%s]", t.head())
		}
	case *answerText:
		p.text(t.text.Text())
	case *call:
		if t.started.IsZero() && !complete || t.running && !t.resolved {
			return // its arguments are incomplete, or its name
		}
		head := []string{"-> " + t.name}
		for _, row := range p.model.palette.PaintAll(t.argumentRows(plainWidth-2, true)) {
			head = append(head, "  "+strings.TrimRight(ansi.Strip(row), " "))
		}
		p.text(strings.Join(head, "\n") + "\n" + t.output)
		if _, failed := t.result(); complete && failed != "" {
			fmt.Fprint(p.out, "\n[failed: "+failed+"]")
		} else if state := t.state(layout{}); complete && state != "" {
			fmt.Fprint(p.out, "\n["+state+"]")
		}
	}
	if complete {
		fmt.Fprintln(p.out)
	}
}

func (p *linePrinter) text(all string) {
	if p.offset < len(all) {
		_, _ = io.WriteString(p.out, all[p.offset:]) // flush reports write errors
		p.offset = len(all)
	}
}

// A Question is asked without the screen.
type Question struct{ model *Model }

// Ask adds a question to the conversation o.Resume, or begins one. Close must follow.
func Ask(ctx context.Context, o Options, text string) (*Question, session.Request) {
	m := newModel(ctx, o)
	m.now = m.clock()
	m.record.changed = m.now
	a := newAnswer(m.palette, m.now, len(m.talk.conversation.current.code()))
	a.tools = len(o.Tools) > 0
	prev := m.talk.conversation.current
	m.talk.live = &live{answer: a, started: m.now, prev: prev,
		exchange: m.talk.conversation.ask(text, 0, a)}
	return &Question{m}, m.request()
}

func (q *Question) Take(e session.Event) {
	m := q.model
	m.now = m.clock()
	if d, ok := e.(session.Done); ok {
		m.finishTurn(d)
		return
	}
	m.talk.live.answer.take(e, m.now)
}

// Save saves the question with its answer, or returns why it cannot.
func (q *Question) Save(r session.Result) error {
	m, l := q.model, q.model.talk.live
	if m.record.saver.store == nil || len(l.answer.parts) == 0 {
		return nil
	}
	l.exchange.messages = append(l.exchange.messages, r.Messages...)
	l.answer.cite(r.Answer, r.Citations, false)
	m.talk.live = nil
	m.save()
	m.background.Wait()
	return m.record.saver.store.Unsaved(records.KindChat, m.record.id)
}

// Close unlocks the conversation for other chats.
func (q *Question) Close() {
	q.model.background.Wait()
	q.model.record.releaseLock()
}

// A Page is text on a terminal while it is written: Markdown, or reasoning. Finished rows stay; the
// rows of the unfinished block below them are redrawn.
type Page struct {
	out           io.Writer
	text          growing
	clean         term.Cleaner
	width, height int
	stable, tail  int // rows already written
	complete      bool
}

// growing is a text with its rows: complete ones, and those that more text may change.
type growing interface {
	Push(text string)
	End()
	Rows(width, wide int) (stable, tail []string)
}

// NewPage begins a page at the start of a row on a terminal of width x height.
func NewPage(out io.Writer, p term.Palette, width, height int) *Page {
	return &Page{out: out, text: markdown.New(p, 0), width: width, height: height}
}

// NewReasoningPage is NewPage for plain text, dimmed as the chat's reasoning.
func NewReasoningPage(out io.Writer, p term.Palette, width, height int) *Page {
	return &Page{out: out, text: dimmed{newProse(p, term.Dim, "")}, width: width, height: height}
}

type dimmed struct{ *prose }

func (t dimmed) Push(text string)                  { t.push(text) }
func (t dimmed) End()                              {}
func (t dimmed) Rows(width, _ int) (_, _ []string) { return t.rows(width) }

func (p *Page) Push(text string) error {
	p.text.Push(p.clean.Push(text))
	return p.draw()
}

func (p *Page) End() error {
	p.text.Push(p.clean.Flush())
	p.text.End()
	p.complete = true
	return p.draw()
}

func (p *Page) draw() error {
	stable, tail := p.text.Rows(min(p.width, maxTextWidth), p.width)
	if hiddenRows := len(tail) - max(p.height-1, 1); hiddenRows > 0 && !p.complete {
		tail = tail[hiddenRows:] // rows that scrolled off the screen cannot be redrawn
	}
	var b strings.Builder
	if p.tail > 0 {
		fmt.Fprintf(&b, "\r\x1b[%dA\x1b[J", p.tail)
	}
	for _, row := range slices.Concat(stable[p.stable:], tail) {
		b.WriteString(row + "\n")
	}
	p.stable, p.tail = len(stable), len(tail)
	_, err := io.WriteString(p.out, b.String())
	return err
}
