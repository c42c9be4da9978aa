// Package chat is the conversation in a terminal that `ossrun chat` opens.
//
// There is one Bubble Tea model, Model; its parts (screen, modes, input, talk, tools, record) are
// plain structs with methods. What must stay true:
//
//   - Update and View never block: no file, no store, no tool, no lock that is held for long.
//     Goroutines work on the turn, files and the clipboard and answer with messages, each a type
//     with a name, and Run returns only after the last of them has ended;
//   - View is a function of the Model's state, the clock included; its fields are only caches;
//   - tokens of a turn are batched and shown at most framesPerSecond times a second, and a frame
//     renders only the unfinished text;
//   - text of a model or a person is cleaned before it is stored (package term), so that it cannot
//     command the terminal.
//
// Packages: term (safe text, width, styles) and markdown (a streaming renderer).
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

	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/quiet"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// Bubble Tea is initialised here, without querying the terminal.
func init() { quiet.Restore() }

// Options are the options of a chat. Model, In and Out are required.
type Options struct {
	Model session.Runner
	// Endpoint is the address of Model's server; "": it runs on this machine.
	Endpoint string
	Request  session.Request // of every turn, with Messages; an unknown Effort means medium
	Format   string          // how the prompt states Request's Final or Schema
	Loading  *Loading        // of Model; nil: it is loaded
	// Switch opens another model for /model; nil: there is only one.
	Switch func(ctx context.Context, name string) (session.Runner, error)
	// Models lists the models that Switch can open; nil: unknown.
	Models func(ctx context.Context) []session.ModelInfo
	Tools  []session.Tool // the model's; the caller closes them after Run
	// ReplaceTools replaces the tools for another conversation; nil: they have no state.
	ReplaceTools func() ([]session.Tool, error)
	Pictures     string    // folder for pictures of tools; "": not copied
	Graphics     Graphics  // of the terminal
	Approval     *Approval // for tools that need approval; nil: none do

	In          io.Reader     // a terminal
	Out         io.Writer     // a terminal
	HistoryPath string        // file of earlier questions for Up and Down; "": none
	NoColor     bool          // set by NO_COLOR: attributes such as bold stay
	NoNotify    bool          // no sign of a long answer's end in a window that is not in front
	NoMouse     bool          // the mouse stays the terminal's
	Theme       term.Theme    // colours
	Notice      string        // one line under the greeting, such as about the demo model
	Store       records.Store // of conversations; nil: not saved
	Resume      string        // a saved conversation, as Find takes it; "": a new one
	// Claim locks a conversation against other chats until release; ok is false if another one has
	// it. It is safe for concurrent use. nil: there are no others.
	Claim   func(id string) (release func(), ok bool)
	Notices <-chan string // for the person, during the chat
}

// Run shows the chat until the person leaves it (nil) or ctx ends (its error).
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	out := &terminal{w: o.Out}
	out.File, _ = o.Out.(*os.File)
	if os.Getenv("TERM") != "linux" { // a console would print it
		out.enable, out.disable = enableKeys, disableKeys
	}
	m := newModel(ctx, o)
	m.clipboard, m.caret = out, &out.caret
	defer func() { m.record.releaseLock() }()
	defer m.background.Wait()
	defer cancel()
	mouse := tea.WithMouseCellMotion()
	if o.NoMouse {
		mouse = func(*tea.Program) {}
	}
	program := tea.NewProgram(m,
		tea.WithInput(keyInput(o.In)), tea.WithOutput(out), tea.WithAltScreen(), mouse,
		tea.WithReportFocus(), tea.WithoutSignalHandler(), tea.WithFPS(framesPerSecond*2))
	// Not tea.WithContext: a killed program leaves its reader running.
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

// farewell is printed at the end: the last question and answer, and how to resume.
func (m *Model) farewell() string {
	e := m.talk.conversation.current
	if e == nil || m.width == 0 {
		m.save()
		return ""
	}
	for e.answer == nil && e.prev != nil { // a summary
		e = e.prev
	}
	l := layout{palette: m.palette, width: min(m.width, maxTextWidth), wide: m.width,
		height: m.height, now: m.now}
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
	if m.record.saver.store != nil {
		b.WriteString(l.dim(m.resumeHint(), m.width) + "\n")
	}
	return b.String()
}

// A terminal makes writes atomic, so that a clipboard sequence never lands inside a frame. Bubble
// Tea asks File for the terminal's size; File is nil for other outputs.
//
// On the alternate screen the hidden cursor is put at the caret after each frame, because input
// methods write there. A frame starts at the top, wherever the cursor is.
type terminal struct {
	*os.File
	mu        sync.Mutex
	w         io.Writer
	enable    string // written after entering the alternate screen: extended keys on
	disable   string
	altScreen bool // the alternate screen is shown
	caret     atomic.Pointer[position]
}

// position is a row and a column of the screen, from 1.
type position struct{ row, column int }

// WriteString overrides the file's.
func (t *terminal) WriteString(s string) (int, error) { return t.Write([]byte(s)) }

func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := b
	switch caret := t.caret.Load(); {
	case bytes.Contains(b, []byte("\x1b[?1049h")):
		t.altScreen = true
		out = slices.Concat(b, []byte(t.enable))
	case bytes.Contains(b, []byte("\x1b[?1049l")):
		t.altScreen = false
		out = slices.Concat([]byte(t.disable), b)
	case t.altScreen && caret != nil:
		out = fmt.Appendf(slices.Clone(b), "\x1b[%d;%dH", caret.row, caret.column)
	}
	if _, err := t.w.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}
