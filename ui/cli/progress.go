// Progress bars, for downloads and for loading a model.

package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"
)

// drawing is a bar that appears with the first draw. Its owner's mutex protects it.
type drawing struct{ shown *progressbar.ProgressBar }

// draw shows the bar at done of total, with text behind it. Rate and time left are in the text: the
// library would count what was done before the start as if it had been done since.
func (d *drawing) draw(w io.Writer, text string, done, total int64) {
	if d.shown == nil {
		d.shown = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetWidth(24),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetElapsedTime(false),
			progressbar.OptionShowDescriptionAtLineEnd(),
			progressbar.OptionUseANSICodes(true),
			progressbar.OptionSetTheme(progressbar.ThemeASCII))
	}
	d.shown.Describe(text)
	_ = d.shown.Set64(min(done, total)) // work goes on even if the bar cannot be drawn
}

// erase clears the bar's line; the next draw shows the bar again.
func (d *drawing) erase() {
	if d.shown != nil {
		_ = d.shown.Clear()
	}
}

func (d *drawing) remove() {
	d.erase()
	d.shown = nil
}

// barAfter is how long work has to take before a bar is worth drawing.
const barAfter = time.Second

func showProgress(t Terminal) func(what string) (show func(done, total int64), done func()) {
	return func(what string) (show func(done, total int64), done func()) {
		s := &workScreen{terminal: t, what: what, now: time.Now, start: time.Now()}
		return s.progress, s.clear
	}
}

type countBar struct {
	drawing
	c     *cli.Context
	what  string
	note  string // stands behind the count
	off   bool
	since time.Time
	last  time.Time
}

func newCountBar(c *cli.Context, what string) *countBar {
	return &countBar{c: c, what: what, off: !isTerminal(c.App.ErrWriter), since: time.Now()}
}

func (b *countBar) count(done, total int) {
	now := time.Now()
	if b.off || done < total && now.Sub(b.last) < 100*time.Millisecond {
		return
	}
	b.last = now
	rate := float64(done) / max(now.Sub(b.since).Seconds(), 1e-3)
	b.draw(b.c.App.ErrWriter, strings.TrimSpace(fmt.Sprintf("%d of %d %s  %.2f/s  %s", done, total,
		b.what, rate, b.note)), int64(done), int64(total))
}

type workScreen struct {
	terminal Terminal
	what     string
	now      func() time.Time

	mu    sync.Mutex
	start time.Time
	drawing
}

func (s *workScreen) progress(done, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isTerminal(s.terminal.Err) || s.now().Sub(s.start) < barAfter {
		return
	}
	s.draw(s.terminal.Err, s.line(done, total), done, total)
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
	s.remove()
}
