//go:build unix

// The first screens of the verbs, as a person meets them: stdout and stderr on one terminal of 40,
// 80 and 200 columns, in files that a person reads.

package cli

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/ui/chat/screentest"
)

// onTerminal returns the screen that work leaves on a terminal.
func onTerminal(t *testing.T, width uint16, work func(tty *os.File)) string {
	t.Helper()
	near, far, err := pty.Open()
	hosttest.Check(t, err)
	hosttest.Check(t, pty.Setsize(far, &pty.Winsize{Rows: 40, Cols: width}))
	screen := screentest.New(int(width), 40)
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(screen, near) }) // it ends with the other end
	work(far)
	far.Close()
	reading.Wait()
	near.Close()
	return strings.TrimRight(screen.String(), "\n") + "\n"
}

// figures are those of a machine, a moment or a build.
var figures = []struct {
	of *regexp.Regexp
	in string
}{
	{regexp.MustCompile(`(?m)^ossrun (?:\(devel\)|v?\d\S*) · .*$`), "ossrun VERSION · SYSTEM"},
	{regexp.MustCompile(`(?ms)^ossrun serve · demo · .*?^  API`), "ossrun serve · demo · DEVICE\n  API"},
	{regexp.MustCompile(`(?ms)^  Context .*?^$`), "  Context  FIGURES\n  Memory   FIGURES\n"},
	{regexp.MustCompile(`127\.0\.0\.\s*1:\d{5}|\b1:\d{5}`), "127.0.0.1:PPPPP"},
	{regexp.MustCompile(`(?m)^demo   \d\d\.\d MB`), "demo   NN.N MB"},
	{regexp.MustCompile(`Ready in \d+\.\d s`), "Ready in N s"},
}

// Each verb's first screen at three widths: no word is cut, and nothing is wider than the terminal.
func TestFirstScreensOfVerbs(t *testing.T) {
	verbs := []struct {
		name string
		show func(t *testing.T, tty *os.File)
	}{
		{"menu", func(t *testing.T, tty *os.File) {
			fmt.Fprint(tty, strings.ReplaceAll((&startMenu{}).View(), "\n", "\r\n"))
		}},
		{"doctor", func(t *testing.T, tty *os.File) {
			var out strings.Builder
			hosttest.Check(t, printSummary(&out, recordedMachine()))
			fmt.Fprint(tty, styled(tty, foldLines(out.String(), widthOf(tty))))
		}},
		{"pull", func(t *testing.T, tty *os.File) {
			const whole = 13_761_264_768
			s := &pullScreen{name: "gpt-oss-20b", terminal: Terminal{Out: tty, Err: tty}, bar: true}
			s.progress(hub.Progress{Bytes: whole, Done: 5e9, Rate: 250e6,
				Remaining: 35 * time.Second})
			s.note("no answer: connection refused; try 2 of 8 in 1.0 s")
			s.progress(hub.Progress{Bytes: whole, Done: whole, Rate: 250e6})
		}},
	}
	for _, v := range verbs {
		var all strings.Builder
		for _, width := range []uint16{40, 80, 200} {
			text := onTerminal(t, width, func(tty *os.File) { v.show(t, tty) })
			for _, f := range figures {
				text = f.of.ReplaceAllString(text, f.in)
			}
			fmt.Fprintf(&all, "== %d columns\n%s\n", width, text)
		}
		goldenScreen(t, "verb-"+v.name, all.String())
	}
}

// What the programs draw: list, and serve's block, whose last lines are to be pasted, not folded.
func TestFirstScreensOfPrograms(t *testing.T) {
	t.Parallel()
	for _, of := range []struct{ args, last string }{{"list", "safeguard-120b"},
		{"serve demo --port 0 --tools none", "Ctrl+C stops."}} {
		verb, _, _ := strings.Cut(of.args, " ")
		var all strings.Builder
		for _, width := range []uint16{40, 80, 200} {
			term, _ := runInTerminal(t, width, 40, ossrun(t, nil, strings.Fields(of.args)...))
			text := strings.TrimSpace(term.until(of.last, func(screen string) bool {
				return strings.Contains(screen, of.last)
			}))
			for _, f := range figures {
				text = f.of.ReplaceAllString(text, f.in)
			}
			fmt.Fprintf(&all, "== %d columns\n%s\n\n", width, text)
		}
		goldenScreen(t, "verb-"+verb, all.String())
	}
}
