// The models of one verb: opened with what the flags say, with what they have to say on stderr and
// a bar for long work.

package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/runtime/serve"
)

// openModels opens the device that the flags ask for.
func openModels(c *cli.Context, t Terminal, o *serve.Options) (*serve.Models, error) {
	o.Notify, o.Progress = notify(t), showProgress(t)
	m, err := serve.New(c.Context, *o)
	unwanted := c.IsSet("deterministic") && !o.Settings.Deterministic && !c.Bool("print-config")
	if err == nil && unwanted && !m.OnGPU() {
		o.Notify("--deterministic=false: the CPU engine always gives the same tokens for the " +
			"same seed")
	}
	return m, err
}

// printSettled is --print-config: the settings as they are on the device.
func printSettled(out io.Writer, c *cli.Context, o *serve.Options, m *serve.Models) error {
	settled := m.Settled()
	*o = settled.Options // the flags are bound to it
	device := "CPU"
	if m.OnGPU() {
		device = "GPU"
	}
	return printConfig(out, c, settled, device)
}

// notify tells the user what runtime/serve has to say.
func notify(t Terminal) func(string) {
	return func(line string) { fmt.Fprintf(t.Err, "ossrun: %s\n", line) }
}

// absentModel is what happens when no model is named and none is here: a person is asked where ask
// is set, anybody else gets the demo and one line that says so.
func absentModel(c *cli.Context, t Terminal, ask bool) func(free int64) (checkpoint.Found, error) {
	return func(free int64) (checkpoint.Found, error) {
		demo, err := checkpoint.Resolve("demo")
		if err != nil {
			return demo, err
		}
		if ask && isTerminal(t.In) && isTerminal(t.Out) {
			return offer(c.Context, t, free, demo)
		}
		fmt.Fprintln(t.Err, "ossrun: no gpt-oss model is on this machine yet, so the tiny "+
			"built-in demo answers; `ossrun pull 20b` gets a real one")
		return demo, nil
	}
}

// barAfter is how long work has to take before a bar is worth drawing.
const barAfter = time.Second

// showProgress draws a bar for a person.
func showProgress(t Terminal) func(what string) (show func(done, total int64), done func()) {
	return func(what string) (show func(done, total int64), done func()) {
		s := newWorkScreen(t, what)
		return s.progress, s.clear
	}
}

// workScreen is a bar for a person, from a while after the work began.
type workScreen struct {
	terminal Terminal
	what     string
	now      func() time.Time

	mu    sync.Mutex
	start time.Time
	shown *progressbar.ProgressBar
}

func newWorkScreen(t Terminal, what string) *workScreen {
	return &workScreen{terminal: t, what: what, now: time.Now, start: time.Now()}
}

func (s *workScreen) progress(done, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isTerminal(s.terminal.Err) || s.now().Sub(s.start) < barAfter {
		return
	}
	if s.shown == nil {
		s.shown = newBar(s.terminal.Err, total)
	}
	s.shown.Describe(s.line(done, total))
	_ = s.shown.Set64(min(done, total)) // a bar that cannot be drawn is no reason to stop
}

// line says how far the work is, its rate, and how long it would go on at that.
func (s *workScreen) line(done, total int64) string {
	seconds := max(s.now().Sub(s.start).Seconds(), 1e-3)
	line := fmt.Sprintf("%s  %.2f of %.2f GB  %.1f GB/s", s.what, gb(done), gb(total),
		gb(done)/seconds)
	if done > 0 {
		line += "  " + minutes(seconds*float64(total-done)/float64(done)) + " left"
	}
	return line
}

func (s *workScreen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown != nil {
		_ = s.shown.Clear()
		s.shown = nil
	}
}
