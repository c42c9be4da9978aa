// Bringing weights into memory, by several readers at once, before the engine takes them: files that are mapped into the page cache, GGUF files in the
// engine's order into memory of their own. Both take long with the real models and say how far they are.

package cli

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/q8"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/session"
)

// replaced is the 8-bit copy that a start with these dense weights will use in place of some of the others, if it was made.
func replaced(found checkpoint.Found, dense string) checkpoint.Replaced {
	if dense != engine.DenseQ8 {
		return checkpoint.Replaced{}
	}
	path := q8.Ready(found, denseCache())
	if path == "" {
		return checkpoint.Replaced{}
	}
	return checkpoint.Replaced{By: path, Does: q8.Replaces}
}

// readAhead reads what is found into the page cache, but for what is replaced. A GGUF model is left alone where fill will read it.
func readAhead(ctx context.Context, t Terminal, dev engine.Device, found checkpoint.Found, by checkpoint.Replaced) error {
	if found.GGUF != nil && !dev.Caps().Discrete {
		return nil
	}
	_, free := dev.Memory()
	show := newWorkScreen(t, "reading "+found.Name)
	err := found.ReadAhead(ctx, free, by, show.progress)
	show.clear()
	if ctx.Err() != nil {
		return context.Canceled
	}
	return err
}

// fill gives what loads a GGUF model's weights, but for what is replaced.
func fill(ctx context.Context, t Terminal, dev engine.Device, by checkpoint.Replaced) func(*checkpoint.Checkpoint) error {
	return func(ckpt *checkpoint.Checkpoint) error {
		_, free := dev.Memory()
		show := newWorkScreen(t, "reading "+ckpt.Spec.Name)
		err := ckpt.Load(ctx, free, by.Does, show.progress)
		show.clear()
		if ctx.Err() != nil {
			return context.Canceled
		}
		return err
	}
}

// loadOnto loads a model, with a bar for the copy to a GPU, which ends with ctx.
func loadOnto(ctx context.Context, t Terminal, found checkpoint.Found, dev engine.Device, o session.LoadOptions) (*session.Model, error) {
	show := newWorkScreen(t, "copying "+found.Name+" to the GPU")
	defer show.clear()
	o.Uploaded = func(done, total int64) error {
		show.progress(done, total)
		return ctx.Err()
	}
	return session.Load(found, dev, o)
}

// barAfter is how long work has to take before a bar is worth drawing.
const barAfter = time.Second

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
	line := fmt.Sprintf("%s  %.2f of %.2f GB  %.1f GB/s", s.what, gb(done), gb(total), gb(done)/seconds)
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
