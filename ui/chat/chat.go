// Package chat is the conversation in a terminal that `ossrun chat` opens.
//
// There is one Bubble Tea model, Model; what it is made of (transcript, editor, history, the live
// turn) are plain structs with methods. What must stay true:
//
//   - Update and View wait for nothing: no file, no store, no tool, no lock that is held for long.
//     The turn, files and the clipboard are worked on by goroutines that answer with messages, and
//     Run does not return before the last of them has ended;
//   - View is a function of the Model's state, the clock included; what it keeps are caches;
//   - the tokens of a turn are gathered and shown at most framesPerSecond times a second, and a
//     frame renders only what is still being written;
//   - text of a model or a person is cleaned before it is kept (package term) and so cannot
//     command the terminal.
//
// Pieces: term (safe text, width, styles) and markdown (a streaming renderer).
package chat

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/quiet"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// Bubble Tea has been initialised here, without asking the terminal.
func init() { quiet.Restore() }

// Options are what a chat starts with. Model, In and Out are needed.
type Options struct {
	Model   session.Runner
	Request session.Request // every turn's, with Messages; an Effort that is none is medium
	Format  string          // how the model is told of Request's Final or Schema
	Loading *Loading        // of Model; nil: it is loaded
	// Switch finds another model for /model; nil: there is only one.
	Switch func(ctx context.Context, name string) (session.Runner, error)
	// Models are those that Switch can find; nil: nobody knows.
	Models func(ctx context.Context) []session.ModelInfo
	Tools  []session.Tool // what the model may call; the caller closes them after Run
	// Renew closes the tools and makes others, for another conversation; nil: they keep no state.
	Renew    func() ([]session.Tool, error)
	Pictures string    // the folder for pictures that tools make; "": they stay theirs
	Graphics Graphics  // how the terminal shows them
	Approval *Approval // where tools ask whether they may run; nil: none asks

	In          io.Reader     // a terminal
	Out         io.Writer     // a terminal
	HistoryPath string        // where questions are kept for Up and Down; "": nowhere
	NoColor     bool          // as asked for by NO_COLOR: attributes such as bold stay
	NoMouse     bool          // the mouse stays the terminal's
	Theme       term.Theme    // other colours
	Notice      string        // one line under the greeting, such as what the demo model is
	Store       session.Store // where conversations are kept; nil: nowhere
	Resume      string        // a kept conversation, as Find takes it; "": a new one
	// Claim keeps other chats from writing a conversation until release; ok is false where another
	// one does. It is safe for concurrent use. nil: there is no other.
	Claim   func(id string) (release func(), ok bool)
	Notices <-chan string // lines for the person that come later
}

// Run shows the chat until the person leaves it, which is no error, or ctx ends, which is ctx's.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	out := &terminal{w: o.Out}
	out.File, _ = o.Out.(*os.File)
	if os.Getenv("TERM") != "linux" { // a console, which would show it
		out.ask, out.asked = askKeys, oldKeys
	}
	m := newModel(ctx, o)
	m.clipboard, m.caret = out, &out.caret
	defer func() { m.letGo() }()
	defer m.background.Wait()
	defer cancel()
	mouse := tea.WithMouseCellMotion()
	if o.NoMouse {
		mouse = func(*tea.Program) {}
	}
	program := tea.NewProgram(m,
		tea.WithInput(input(o.In)), tea.WithOutput(out), tea.WithAltScreen(), mouse,
		tea.WithoutSignalHandler(), tea.WithFPS(framesPerSecond*2))
	// Not tea.WithContext: a program that is killed leaves its reader behind.
	stop := context.AfterFunc(ctx, program.Quit)
	defer stop()
	if _, err := program.Run(); err != nil {
		return fmt.Errorf("chat: %w", err)
	}
	if _, err := io.WriteString(out, m.farewell()); err != nil {
		return fmt.Errorf("chat: %w", err)
	}
	return ctx.Err()
}

// farewell is what stays on the terminal: the last question and its answer, and how to go on.
func (m *Model) farewell() string {
	e := m.conversation.at
	if e == nil || m.width == 0 {
		m.keep()
		return ""
	}
	for e.answer == nil && e.before != nil { // a summary
		e = e.before
	}
	l := layout{palette: m.palette, width: min(m.width, widest), wide: m.width, height: m.height,
		now: m.now}
	var b strings.Builder
	write := func(runs []run) {
		for _, r := range runs {
			for _, row := range r.rows {
				b.WriteString(r.prefix + row + "\n")
			}
		}
	}
	if e.answer != nil {
		write(newQuestion(m.palette, e.question).runs(l))
		b.WriteByte('\n')
		write(e.answer.runs(l))
		b.WriteByte('\n')
	}
	if m.keeper.store != nil {
		b.WriteString(l.dim(m.howToContinue(), m.width) + "\n")
	}
	return b.String()
}

// A terminal makes writes atomic among each other, so that a clipboard sequence never lands inside
// a frame. Bubble Tea asks the file for its size; where the output is none, it is nil.
//
// On the other screen, the terminal's own cursor, which is hidden, stands at the caret after each
// frame: input methods write there. A frame begins at the top, wherever the cursor is.
type terminal struct {
	*os.File
	mu    sync.Mutex
	w     io.Writer
	ask   string // for more keys when the other screen comes, and no more when it goes
	asked string
	other bool // the other screen is shown
	caret atomic.Pointer[place]
}

// place is a row and a column of the screen, from 1.
type place struct{ row, column int }

// WriteString is not the file's.
func (t *terminal) WriteString(s string) (int, error) { return t.Write([]byte(s)) }

func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := b
	switch at := t.caret.Load(); {
	case bytes.Contains(b, []byte("\x1b[?1049h")):
		t.other = true
		out = slices.Concat(b, []byte(t.ask))
	case bytes.Contains(b, []byte("\x1b[?1049l")):
		t.other = false
		out = slices.Concat([]byte(t.asked), b)
	case t.other && at != nil:
		out = fmt.Appendf(slices.Clone(b), "\x1b[%d;%dH", at.row, at.column)
	}
	if _, err := t.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
