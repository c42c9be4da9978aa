// What happens to a model between its choice and its loading: a GGUF file is converted once, and weights are read into memory by
// several readers at once, so that the engine finds them there. Both take long with the real models and say how far they are.

package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/engine"
)

// ready converts and reads ahead what is found.
func ready(ctx context.Context, t Terminal, dev engine.Device, found models.Found) (models.Found, error) {
	if found.Convert != nil {
		if err := convert(ctx, t, found.Convert); err != nil {
			return found, err
		}
		found.Convert = nil
	}
	_, free := dev.Memory()
	show := &workScreen{terminal: t, what: "reading " + found.Name, after: time.Second}
	err := found.ReadAhead(ctx, free, show.progress)
	show.clear()
	if ctx.Err() != nil {
		return found, context.Canceled
	}
	return found, err
}

// convert writes a GGUF model in the layout that the engine reads.
func convert(ctx context.Context, t Terminal, c *models.Conversion) error {
	fmt.Fprintf(t.Err, "ossrun: converting %s once: %.1f GB into %s\n", filepath.Base(c.Source), gb(c.Bytes), c.Folder)
	show := &workScreen{terminal: t, what: "converting"}
	err := c.Run(ctx, show.progress)
	show.clear()
	var space *models.SpaceError
	switch {
	case ctx.Err() != nil:
		return context.Canceled
	case errors.As(err, &space):
		return fail(exitFailure, "converting %s: %s", filepath.Base(c.Source), err)
	case err != nil:
		return fail(exitModel, "converting %s: %s", filepath.Base(c.Source), err)
	}
	return nil
}

// workScreen is a bar for a person, from a while after the work began.
type workScreen struct {
	terminal Terminal
	what     string
	after    time.Duration

	mu    sync.Mutex
	start time.Time
	shown *progressbar.ProgressBar
}

func (s *workScreen) progress(done, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.start.IsZero() {
		s.start = time.Now()
	}
	seconds := time.Since(s.start).Seconds()
	if !isTerminal(s.terminal.Err) || seconds < s.after.Seconds() {
		return
	}
	if s.shown == nil {
		s.shown = newBar(s.terminal.Err, total)
	}
	s.shown.Describe(fmt.Sprintf("%s  %.2f of %.2f GB  %.1f GB/s", s.what, gb(done), gb(total), gb(done)/max(seconds, 1e-3)))
	_ = s.shown.Set64(min(done, total)) // a bar that cannot be drawn is no reason to stop
}

func (s *workScreen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown != nil {
		_ = s.shown.Clear()
		s.shown = nil
	}
}
