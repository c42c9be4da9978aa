// Picture runs a terminal program, asks it questions as a person would, and draws the screen that
// it shows as an SVG file. docs/images/make-chat.sh makes the picture in the README with it:
//
//	go run ./ui/chat/picture -out docs/images/chat.svg -ask "..." ossrun chat --model demo
//
// The program runs in a terminal of its own (a pty), with an empty home, so the picture shows what
// a newcomer sees.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"

	"github.com/ossrun/ossrun/ui/chat/vt"
)

func main() {
	out := flag.String("out", "chat.svg", "the file to write")
	var asks []string
	flag.Func("ask", "what to type; Enter is pressed after it and the answer waited for (may be "+
		"given again)", func(s string) error {
		asks = append(asks, s)
		return nil
	})
	keys := flag.String("keys", "",
		"keys to press once the answer stands, as a Go string without quotes: \\x14 is Ctrl+T")
	width := flag.Int("width", 84, "columns")
	height := flag.Int("height", 24, "rows")
	title := flag.String("title", "ossrun chat", "what stands over the window")
	wait := flag.Duration("wait", 5*time.Minute, "how long the program may take")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *wait)
	defer cancel()
	if err := run(ctx, *out, asks, *keys, *title, *width, *height, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string, asks []string, keys, title string, width, height int,
	command []string) error {
	if len(command) == 0 {
		return errors.New("no program to run: give its command line")
	}
	home, err := os.MkdirTemp("", "picture")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(without(os.Environ(), "NO_COLOR="), "TERM=xterm-256color",
		"HOME="+home, "XDG_STATE_HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home)
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)})
	if err != nil {
		return fmt.Errorf("start %s: %w", command[0], err)
	}
	defer file.Close()
	w := &window{screen: vt.New(width, height)}
	go w.read(file)
	defer func() {
		_ = cmd.Process.Kill() // the picture is taken; nothing of the program is needed any more
		_ = cmd.Wait()
	}()

	if err := w.until(ctx,
		func(s string) bool { return strings.Contains(s, "Ask something") }); err != nil {
		return err
	}
	for _, ask := range asks {
		for _, c := range ask + "\r" {
			if _, err := file.WriteString(string(c)); err != nil {
				return err
			}
			time.Sleep(5 * time.Millisecond)
		}
		if err := w.until(ctx,
			func(s string) bool { return strings.Contains(s, "Esc stops") }); err != nil {
			return err
		}
		if err := w.until(ctx,
			func(s string) bool { return !strings.Contains(s, "Esc stops") }); err != nil {
			return err
		}
	}
	if keys != "" {
		if _, err := file.WriteString(unquote(keys)); err != nil {
			return err
		}
		time.Sleep(500 * time.Millisecond)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := os.WriteFile(out, []byte(svg(w.screen.Rows(), title)), 0o644); err != nil {
		return err
	}
	fmt.Print(w.screen)
	return nil
}

// A window reads what the program writes.
type window struct {
	mu     sync.Mutex
	screen *vt.Screen
	ended  bool
}

func (w *window) read(file *os.File) {
	buf := make([]byte, 32<<10)
	for {
		n, err := file.Read(buf)
		w.mu.Lock()
		_, _ = w.screen.Write(buf[:n]) // a Screen takes everything
		w.ended = err != nil
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// until waits for the screen to be as asked.
func (w *window) until(ctx context.Context, ok func(screen string) bool) error {
	for {
		w.mu.Lock()
		text, ended := w.screen.String(), w.ended
		w.mu.Unlock()
		switch {
		case ok(text):
			return nil
		case ended:
			return fmt.Errorf("the program ended; its last screen:\n%s", text)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; the screen is:\n%s", ctx.Err(), text)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// without removes the variables that begin with prefix.
func without(env []string, prefix string) []string {
	var kept []string
	for _, e := range env {
		if !strings.HasPrefix(e, prefix) {
			kept = append(kept, e)
		}
	}
	return kept
}

// unquote reads \xNN and the like.
func unquote(s string) string {
	var out string
	if _, err := fmt.Sscanf(`"`+s+`"`, "%q", &out); err != nil {
		return s
	}
	return out
}
