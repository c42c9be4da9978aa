//go:build unix

package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/screentest"
	"github.com/ossrun/ossrun/ui/chat/term"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // dates in golden files
	goleak.VerifyTestMain(m)
}

// A window is a chat in a terminal: the real program over a pty, with a small emulator on the other
// side.
type window struct {
	t      *testing.T
	file   *os.File
	mu     sync.Mutex
	screen *screentest.Screen
	ended  chan error
	reader sync.WaitGroup
}

func open(t *testing.T, ctx context.Context, width, height int, o Options) *window {
	t.Helper()
	master, terminal, err := pty.Open()
	if err != nil {
		t.Skip("no pty here: ", err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Cols: uint16(width),
		Rows: uint16(height)}); err != nil {
		t.Fatal(err)
	}
	w := &window{t: t, file: master, screen: screentest.New(width, height),
		ended: make(chan error, 1)}
	o.In, o.Out = terminal, terminal
	go func() {
		err := Run(ctx, o)
		terminal.Close()
		w.ended <- err
	}()
	w.reader.Go(func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			w.mu.Lock()
			_, _ = w.screen.Write(buf[:n])
			w.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		master.Close()
		w.reader.Wait()
	})
	return w
}

func (w *window) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.screen.String()
}

func (w *window) typing(text string) {
	w.t.Helper()
	if _, err := w.file.WriteString(text); err != nil {
		w.t.Fatal(err)
	}
}

func (w *window) until(what string) {
	w.t.Helper()
	hosttest.Until(w.t, func() string {
		return fmt.Sprintf("no %q on the screen:\n%s", what, w.text())
	}, func() bool { return strings.Contains(w.text(), what) })
}

// compare holds the screen to a file of testdata. What a terminal shows may be half a frame, so it
// waits for the whole one.
func (w *window) compare(name string) {
	w.t.Helper()
	want, err := os.ReadFile(filepath.Join("testdata", name))
	if err == nil && !*update {
		hosttest.Until(w.t, func() string {
			return fmt.Sprintf("%s differs\ngot:\n%s\nwant:\n%s", name, w.text(), want)
		}, func() bool { return stamps(w.text()) == string(want) })
		return
	}
	compare(w.t, name, stamps(w.text()))
}

func (w *window) wait() error {
	w.t.Helper()
	select {
	case err := <-w.ended:
		w.reader.Wait() // Run has closed the terminal: what it wrote is read, then that ends
		return err
	case <-time.After(2 * time.Minute):
		w.t.Fatalf("the chat does not end:\n%s", w.text())
		return nil
	}
}

func TestInATerminal(t *testing.T) {
	history := filepath.Join(t.TempDir(), "history")
	w := open(t, t.Context(), 80, 24,
		Options{HistoryPath: history, Model: script(
			turn(reasoning(thinking), answering(paged+"\n日本語 👩‍👩‍👧 done."),
				[]session.Event{stopped(93, 120)}),
			turn(answering("This one never "), []session.Event{nil}))})
	w.until("Ask something")
	w.typing("How does the \x1b[200~paged\ncache\x1b[201~ work?\r")
	w.until("done.")
	w.until("context <1 %")
	w.compare("terminal.screen")
	w.typing("\x14") // Ctrl+T
	w.until("│ The user asks")
	w.typing("another\r")
	w.until("This one never")
	w.typing("\x1b")
	w.until("stopped")
	if err := pty.Setsize(w.file, &pty.Winsize{Cols: 40, Rows: 10}); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.screen.Resize(40, 10)
	w.mu.Unlock()
	w.typing("\x1b[Z") // Shift+Tab: a frame after the resize
	w.until("Effort: high")
	w.typing("/quit\r")
	if err := w.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if w.screen.Mode("1049") || w.screen.Mode("1002") || w.screen.Mode("2004") ||
		!w.screen.Mode("25") {
		t.Error("the terminal is not put back as it was")
	}
	if got := newHistory(history).entries; len(got) != 3 ||
		got[0] != "How does the paged\ncache work?" {
		t.Errorf("history %q", got)
	}
}

// stamps replaces what the clock says, which is the machine's here.
func stamps(screen string) string {
	rows := strings.Split(screen, "\n")
	for i, r := range rows {
		if before, after, ok := strings.Cut(r, "thought for "); ok {
			_, rest, _ := strings.Cut(after, " s,")
			rows[i] = before + "thought for N s," + rest
		}
	}
	return strings.Join(rows, "\n")
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := open(t, ctx, 60, 20, Options{Model: script([]session.Event{nil})})
	w.until("Ask something")
	w.typing("q\r")
	w.until("reading the prompt")
	cancel()
	if err := w.wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
}

func TestLeavingStopsTheTurn(t *testing.T) {
	w := open(t, t.Context(), 60, 20, Options{Model: script([]session.Event{nil})})
	w.until("Ask something")
	w.typing("q\r")
	w.until("reading the prompt")
	w.typing("\x04")
	if err := w.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// Tokens that come faster than frames are gathered; the first after a pause is shown at once.
func TestFramesGatherTokens(t *testing.T) {
	box := newEventQueue()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() {
		runner := script(turn(reasoning(strings.Repeat("x ", 5000)),
			[]session.Event{stopped(1, 5000)}))
		box.run(func() (session.Turn, error) {
			return runner.Start(ctx, session.Request{})
		}, time.Now, "")
	})
	defer all.Wait()
	var last time.Time
	frames, events, began := 0, 0, time.Now()
	for over := false; !over; frames++ {
		f := box.next(ctx, 1, last, time.Now)().(frame)
		if gap := f.time.Sub(last); gap < time.Second/framesPerSecond {
			t.Errorf("frames %v apart", gap)
		}
		last, over = f.time, f.done
		events += len(f.events)
	}
	if events != 5002 {
		t.Errorf("%d events, want 5002", events)
	}
	if most := 2 + int(time.Since(began)*framesPerSecond/time.Second); frames > most {
		t.Errorf("%d frames in %v", frames, time.Since(began))
	}
	cancel()
	if msg := newEventQueue().next(ctx, 1, last, time.Now)(); msg != nil {
		t.Errorf("a cancelled wait gives %v", msg)
	}
}

// Ctrl+G passes the typed text to the person's editor on the terminal, and reads the result.
func TestEditorProgram(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR",
		`sh -c 'test -t 0 && grep -q "a draft" "$1" && printf "written\nthere\n" > "$1"' --`)
	runner := script(fine("Read."))
	w := open(t, t.Context(), 80, 20, Options{Model: runner})
	w.until("Ask something")
	w.typing("a draft\x07") // Ctrl+G
	w.until("❯ written")
	w.typing("\r")
	w.until("Read.")
	t.Setenv("EDITOR", "false")
	w.typing("kept\x07")
	w.until("the editor failed: exit status 1")
	w.until("❯ kept")
	w.typing("\x15/quit\r")
	if err := w.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if got := runner.Requests[0].Messages[0].Text(); got != "written\nthere" {
		t.Errorf("the editor's text was sent as %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "ossrun-*.md")); len(left) > 0 {
		t.Errorf("the editor's files stay: %v", left)
	}
}

// Whose the mouse is, and which colours there are.
func TestLooks(t *testing.T) {
	for _, c := range []struct {
		o              Options
		mouse          bool
		colour, absent uint8
	}{
		{Options{}, true, 7, 0}, // cyan
		{Options{NoMouse: true}, false, 7, 0},
		{Options{Theme: term.Light}, true, 5, 7}, // blue in cyan's place
		{Options{Theme: term.Theme{term.Cyan: term.Red}}, true, 2, 7},
		{Options{NoColor: true}, true, 0, 7},
	} {
		c.o.Model = script()
		w := open(t, t.Context(), 60, 12, c.o)
		w.until("Ask something")
		w.mu.Lock()
		if got := w.screen.Mode("1002"); got != c.mouse {
			t.Errorf("%+v: the mouse is the chat's: %v", c.o, got)
		}
		found := map[uint8]bool{}
		for _, row := range w.screen.Rows() {
			for _, cell := range row {
				found[cell.Style.Foreground] = true
			}
		}
		if !found[c.colour] || c.absent != 0 && found[c.absent] {
			t.Errorf("%+v: the colours are %v", c.o, found)
		}
		w.mu.Unlock()
		w.typing("\x03")
		if err := w.wait(); err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// /show gives the terminal to a picture, and Enter takes it back.
func TestShowPicture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figure-1.png")
	painted(t, path, 20, 10)
	tool := &scriptTool{result: session.ToolResult{Text: "ok", Files: []string{path}}}
	w := open(t, t.Context(), 80, 24, Options{Tools: []session.Tool{tool}, Graphics: Kitty,
		Model: script(calling(fine("Drawn."))...)})
	w.until("Ask something")
	w.typing("draw\r")
	w.until("Drawn.")
	w.typing("/show\r")
	w.until("Enter goes back to the chat.")
	w.typing("\r")
	w.until("Ask something")
	w.typing("/quit\r")
	if err := w.wait(); err != nil {
		t.Errorf("Run: %v", err)
	}
}
