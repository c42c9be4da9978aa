// The chat for terminals that can only print lines (TERM=dumb, an editor's shell, a screen reader).
//
// It drives the same Model: lines are typed into its editor, and new transcript entries are
// printed. So a command or a tool exists once.

package chat

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
)

const plainWidth = 80

// RunPlain is Run line by line, without a screen. It ends with the end of o.In, /quit, or ctx.
func RunPlain(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	o.NoColor = true
	m := newModel(ctx, o)
	m.clipboard, m.plain = o.Out, true
	m.width, m.height, m.laidOut = plainWidth, 24, plainWidth
	defer func() { m.releaseLock() }()
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
				if !m.isAnswering() {
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
			if lines == nil && !m.isAnswering() {
				return p.flush()
			}
		case <-ctx.Done():
			m.save()
			return ctx.Err()
		}
	}
	return p.flush()
}

// isAnswering reports whether a message is being answered or about to be.
func (m *Model) isAnswering() bool { return m.live != nil || m.preparing != "" }

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
	if m.confirming != nil {
		p.start(m.answerConfirmation(strings.TrimSpace(text)))
		return
	}
	if m.asking != nil && wasAsked { // otherwise the question is printed again
		m.approve(strings.TrimSpace(text))
		return
	}
	if rest, ok := strings.CutSuffix(text, `\`); ok {
		p.typed += rest + "\n"
		p.hasPrompt = true
		return
	}
	m.now = m.clock()
	m.typed++
	m.message = ""
	m.editor.set("")
	m.editor.insert(p.typed + text)
	p.typed = ""
	if p.sent = ""; !m.isAnswering() {
		p.sent = strings.TrimSpace(m.editor.text)
	}
	p.start(m.send())
	p.skipTyped()
	m.editor.set("")
}

// skipTyped skips the question just typed on the last line.
func (p *linePrinter) skipTyped() {
	if l := p.model.live; l != nil && l.exchange.question == p.sent {
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
	if m.message != "" {
		fmt.Fprintf(p.out, "[%s]\n", m.message)
		m.message = ""
	}
	switch {
	case m.confirming != nil && !p.hasPrompt:
		fmt.Fprintf(p.out, "\n%s (y deletes, anything else keeps) ", m.confirming.text)
		p.hasPrompt = true
	case m.asking != nil && !p.hasPrompt && m.live != nil && m.live.answer.hasRunningCall():
		fmt.Fprintf(p.out, "\n%s\n", m.asking.head())
		for _, row := range m.palette.PaintAll(formatArguments(m.asking.arguments, plainWidth-2)) {
			fmt.Fprintln(p.out, "  "+strings.TrimRight(ansi.Strip(row), " "))
		}
		fmt.Fprint(p.out, "y allow, a allow in this chat, n refuse, d refuse in this chat: ")
		p.hasPrompt = true
	case !m.isAnswering() && !p.hasPrompt && !m.quitting:
		fmt.Fprint(p.out, "\n> ")
		p.hasPrompt = true
	}
	return p.out.Flush()
}

func (p *linePrinter) rows(e entry) {
	l := layout{palette: p.model.palette, width: plainWidth, wide: plainWidth, height: 24,
		unfolded: p.model.unfolded, now: p.model.now, notices: p.model.notices}
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

// print writes the new text of a part.
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
		if t.started.IsZero() && !complete {
			return // its arguments are incomplete
		}
		p.text("-> " + t.name + " " + strings.TrimSpace(t.arguments) + "\n" + t.output)
		if complete && t.failed != "" {
			fmt.Fprint(p.out, "\n[failed: "+t.failed+"]")
		} else if complete && t.endTime.After(t.started) {
			took := t.endTime.Sub(t.started).Round(time.Millisecond)
			fmt.Fprintf(p.out, "\n[%s]", formatDuration(took))
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
