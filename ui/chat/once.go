// One question without the screen, for `ossrun chat PROMPT`: it continues a saved conversation or
// begins one, and is saved with its answer. A terminal shows the answer as Markdown.
//
// What must stay true: a question without an answer leaves the conversation unchanged; a Page never
// writes above its first row.

package chat

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/markdown"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// A Question is asked without the screen.
type Question struct{ model *Model }

// Ask adds a question to the conversation o.Resume, or begins one. Close must follow.
func Ask(ctx context.Context, o Options, text string) (*Question, session.Request) {
	m := newModel(ctx, o)
	m.now = m.clock()
	m.changed = m.now
	a := newAnswer(m.palette, m.now, len(m.conversation.current.code()))
	a.tools = len(o.Tools) > 0
	m.live = &live{answer: a, started: m.now, prev: m.conversation.current}
	m.live.exchange = m.conversation.ask(text, 0, a)
	return &Question{m}, m.request()
}

func (q *Question) Take(e session.Event) {
	m := q.model
	m.now = m.clock()
	if d, ok := e.(session.Done); ok {
		m.finishTurn(d)
		return
	}
	m.live.answer.take(e, m.now)
}

// Save saves the question with its answer, or returns why it cannot.
func (q *Question) Save(r session.Result) error {
	m, l := q.model, q.model.live
	if m.saver.store == nil || len(l.answer.parts) == 0 {
		return nil
	}
	l.exchange.messages = append(l.exchange.messages, r.Messages...)
	l.answer.cite(r.Answer, r.Citations, false)
	m.live = nil
	m.save()
	m.background.Wait()
	return m.saver.store.Unsaved(records.KindChat, m.id)
}

// Close unlocks the conversation for other chats.
func (q *Question) Close() {
	q.model.background.Wait()
	q.model.releaseLock()
}

// A Page is Markdown on a terminal while it is written. Finished rows stay; the rows of the
// unfinished block below them are redrawn.
type Page struct {
	out           io.Writer
	text          *markdown.Stream
	clean         term.Cleaner
	width, height int
	stable, tail  int // rows already written
	complete      bool
}

// NewPage begins a page at the start of a row on a terminal of width x height.
func NewPage(out io.Writer, p term.Palette, width, height int) *Page {
	return &Page{out: out, text: markdown.New(p, 0), width: width, height: height}
}

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
