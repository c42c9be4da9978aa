// The screen of ossrun chat PROMPT. Stdout and stderr are usually one terminal: reasoning, tools,
// the progress line and the answer appear on it in turn, each from the start of a row.
//
// What must stay true: rows are redrawn only by the text that wrote them, so a text is ended before
// another begins; the progress line is shown only between texts, on a terminal, and vanishes;
// nothing is redrawn with --plain.

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	xterm "github.com/charmbracelet/x/term"
	"github.com/muesli/termenv"

	"github.com/ossrun/ossrun/ui/chat"
	"github.com/ossrun/ossrun/ui/chat/term"
)

type onceText int

const (
	noText onceText = iota
	reasoningText
	answerText
	noteText
)

// growingText is a text while it is written; *chat.Page is one.
type growingText interface {
	Push(text string) error
	End() error
}

type onceScreen struct {
	Terminal
	palette term.Palette
	plain   bool
	kind    onceText // of the text being written
	text    growingText
	answer  growingText // in a pipe: one text, whatever is on stderr meanwhile
	hasText bool        // an earlier text is on the screen

	mu      sync.Mutex // guards the progress line
	awaited string     // "": no progress line
	waits   bool       // the progress line is on the screen
	close   func()
}

// newOnceScreen begins with the progress line of a prompt that is read. close must follow; it also
// prints the notices that came meanwhile.
func newOnceScreen(t Terminal, notices <-chan string, p term.Palette, plain bool) *onceScreen {
	s := &onceScreen{Terminal: t, palette: p, plain: plain, awaited: "Reading"}
	s.answer = &flowingText{w: t.Out}
	width, _, ok := screenOf(t.Err)
	ok = ok && !plain
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		start, tick := time.Now(), time.NewTicker(waitShown)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				s.wait("")
				return
			case now := <-tick.C:
				if ok {
					s.drawWait(width, now.Sub(start))
				}
			}
		}
	}()
	s.close = sync.OnceFunc(func() {
		close(stop)
		<-done
		for len(notices) > 0 {
			t.report("%s", <-notices)
		}
	})
	return s
}

// waitShown is the interval of the progress line, and the shortest wait with one.
const waitShown = 400 * time.Millisecond

func (s *onceScreen) drawWait(width int, waited time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.awaited != "" {
		s.waits = true
		line := fmt.Sprintf("%s, %.0f s. Ctrl+C stops.", s.awaited, waited.Seconds())
		fmt.Fprintf(s.Err, "\r\x1b[K%s", term.Cut(line, width-1))
	}
}

// wait sets what the progress line names; a text that is open on the terminal has none.
func (s *onceScreen) wait(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text != nil && s.text != s.answer {
		what = ""
	}
	if s.awaited = what; what == "" && s.waits {
		s.waits = false
		_, _ = io.WriteString(s.Err, "\r\x1b[K")
	}
}

func (s *onceScreen) push(kind onceText, text string) error {
	s.begin(kind)
	return s.text.Push(text)
}

// begin ends the text before, if another kind begins, and the progress line.
func (s *onceScreen) begin(kind onceText) {
	if s.kind == kind {
		return
	}
	s.finish()
	out, onScreen := s.Err, isTerminal(s.Err)
	if kind == answerText {
		out, onScreen = s.Out, isTerminal(s.Out)
	}
	if s.wait(""); onScreen && s.hasText {
		fmt.Fprintln(out)
	}
	s.kind, s.hasText = kind, s.hasText || onScreen
	width, height, ok := screenOf(out)
	switch ok = ok && !s.plain; {
	case kind == answerText && ok:
		s.text = chat.NewPage(out, s.palette, width, height)
	case kind == answerText && !onScreen:
		s.text = s.answer
	case ok:
		s.text = chat.NewReasoningPage(out, s.palette, width, height)
	default:
		s.text = &flowingText{w: out, terminal: onScreen}
	}
}

// finish ends the text being written, unless it is the answer in a pipe.
func (s *onceScreen) finish() {
	if s.text != nil && s.text != s.answer {
		_ = s.text.End() // a fault of the answer's output is returned by its next text
	}
	s.text, s.kind = nil, noText
}

// end ends the last text, and the answer in a pipe.
func (s *onceScreen) end() (err error) {
	s.wait("")
	if s.text != nil {
		err = s.text.End()
	}
	s.text, s.kind = nil, noText
	return errors.Join(err, s.answer.End())
}

// note shows lines of this program.
func (s *onceScreen) note(lines ...string) {
	if len(lines) > 0 {
		s.finish()
		_ = s.push(noteText, strings.Join(lines, "\n"))
		s.finish()
	}
}

// flowingText is a text that is only added to.
type flowingText struct {
	w        io.Writer
	terminal bool
	open     bool // its last line has no end
}

func (f *flowingText) Push(text string) error {
	if text == "" {
		return nil
	}
	f.open = !strings.HasSuffix(text, "\n")
	_, err := io.WriteString(f.w, printable(text, f.terminal))
	return err
}

func (f *flowingText) End() error {
	if !f.open {
		return nil
	}
	f.open = false
	_, err := fmt.Fprintln(f.w)
	return err
}

// screenOf is the size of a terminal that can redraw rows.
func screenOf(out io.Writer) (width, height int, ok bool) {
	f, isFile := out.(*os.File)
	if !isFile || !isTerminal(f) || os.Getenv("TERM") == "dumb" {
		return 0, 0, false
	}
	width, height, err := xterm.GetSize(f.Fd())
	if err == nil { // Windows consoles need this for escape sequences
		_, err = termenv.EnableVirtualTerminalProcessing(termenv.NewOutput(f))
	}
	return width, height, err == nil && width > 0
}
