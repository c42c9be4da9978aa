// Output for people: rows in columns, wrapped lines, numbers with units. In a pipe or a file each
// fact of a report is one line, however long.

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// columns aligns tab-separated text into columns on Flush.
func columns(w io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(cleanWriter{w}, 0, 4, 2, ' ', 0)
}

// report is rows of a label and a fact, separated by a tab.
type report struct {
	io.Writer
	label string // of the previous row
}

// row writes a fact; a repeated label is left out.
func (r *report) row(label, format string, args ...any) {
	text := label
	if r.label == label {
		text = ""
	}
	r.label = label
	fmt.Fprintf(r, "%s\t%s\n", text, fmt.Sprintf(format, args...))
}

// screenStyles are the parts of lines that a terminal shows in the chat's styles.
var screenStyles = []struct {
	part  *regexp.Regexp
	style term.Style
}{
	{regexp.MustCompile(`^(ossrun |MODEL |Not installed|No gpt-oss|Next:).*`), term.Bold},
	{regexp.MustCompile(`^(✓|\S+ is ready)`), term.Green},
	{regexp.MustCompile(`^!`), term.Yellow},
	{regexp.MustCompile(`^–.*`), term.Dim},
	{regexp.MustCompile(`^ {0,2}\d `), term.Bold | term.Cyan},
	{regexp.MustCompile(`^ {0,2}(This machine|gpt-oss-\w+|[A-Z][a-z]+)(:|  )`), term.Bold},
}

// styled paints text for a terminal; another output gets it as it is.
func styled(out io.Writer, text string) string {
	if _, _, ok := screenOf(out); !ok {
		return text
	}
	p := term.Palette{NoColor: os.Getenv("NO_COLOR") != "", Theme: term.Dark}
	var b strings.Builder
	for line := range strings.Lines(text) {
		for _, s := range screenStyles {
			if part := s.part.FindString(strings.TrimSuffix(line, "\n")); part != "" {
				b.WriteString(p.Paint(term.Row{{Text: part, Style: s.style}}))
				line = line[len(part):]
				break
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

func writeJSON(w io.Writer, report any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}

func writeJSONLine(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

var (
	yesNo    = map[bool]string{true: "yes", false: "no"}
	verdicts = map[bool]string{true: "passed", false: "FAILED"}
)

// textOutput is the output for people: none with --json.
func textOutput(c *cli.Context) io.Writer {
	if c.Bool("json") {
		return io.Discard
	}
	return c.App.Writer
}

func mapSlice[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, item := range list {
		out[i] = f(item)
	}
	return out
}

func gb(n int64) float64 { return float64(n) / 1e9 }

// gigabytes formats a number of bytes; size has one more digit.
func gigabytes(n int64) string { return inUnits(n, 0) }
func size(n int64) string      { return inUnits(n, 1) }

func inUnits(n int64, digits int) string {
	if n < 1e9 {
		return fmt.Sprintf("%.*f MB", digits, float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", gb(n))
}

func formatSeconds(seconds float64) string {
	if seconds < 90 {
		return fmt.Sprintf("%.0f s", seconds)
	}
	return fmt.Sprintf("%.0f min", seconds/60)
}

// speeds are the tokens a second to expect: 3, 3 to 8, or up to 8 if none were measured; busyNote
// explains low ones.
func speeds(expected, most float64) string {
	one := func(rate float64) string {
		if rate < 0.95 {
			return fmt.Sprintf("%.1f", rate)
		}
		return fmt.Sprintf("%.0f", rate)
	}
	low := one(expected)
	switch {
	case expected == 0:
		return "up to " + one(most)
	case low != one(most):
		return low + " to " + one(most)
	}
	return low
}

const busyNote = "measured while other programs use the CPU; run again when idle"

func shortDuration(d time.Duration) string {
	if d < time.Hour {
		return max(d, 0).Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// reportWidth is the width of the narrowest usual terminal.
const reportWidth = 80

// foldLines wraps each line of text at width. Continuation lines are indented to the second column,
// or to the text if there is none.
func foldLines(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if utf8.RuneCountInString(line) <= width {
			b.WriteString(line + "\n")
			continue
		}
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if first, rest, two := strings.Cut(line[indent:], "  "); two {
			indent += len(first) + 2 + len(rest) - len(strings.TrimLeft(rest, " "))
		}
		b.WriteString(line[:indent])
		column := utf8.RuneCountInString(line[:indent])
		writeWords(&b, line[indent:], column, column+2, width)
	}
	return b.String()
}

// writeWords writes the words of text from column on, and in further lines from indent on, all
// within width. Gaps stay, so that columns do.
func writeWords(b *strings.Builder, text string, column, indent, width int) {
	for i := 0; text != ""; i++ {
		word := strings.TrimLeft(text, " ")
		gap := text[:len(text)-len(word)]
		word, _, _ = strings.Cut(word, " ")
		text = text[len(gap)+len(word):]
		n := utf8.RuneCountInString(word)
		if i > 0 && column+len(gap)+n > width {
			gap, column = "\n"+strings.Repeat(" ", indent), -1 // the line feed has no width
		}
		b.WriteString(gap + word)
		column += len(gap) + n
	}
	b.WriteByte('\n')
}

// progressLine is a progress bar, created by the first draw. Callers hold mu, except for clear.
type progressLine struct {
	mu          sync.Mutex
	progressBar *progressbar.ProgressBar
}

// draw shows the bar at done of total, followed by text. The text has rate and remaining time,
// since the library would count earlier work too.
func (d *progressLine) draw(w io.Writer, text string, done, total int64) {
	if d.progressBar == nil {
		d.progressBar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetWidth(24),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionSetElapsedTime(false),
			progressbar.OptionShowDescriptionAtLineEnd(),
			progressbar.OptionUseANSICodes(true),
			progressbar.OptionEnableColorCodes(true),
			progressbar.OptionSetTheme(barTheme()))
	}
	if columns, _, ok := screenOf(w); ok { // a wider line would stay when the next is drawn
		text = term.Cut(text, columns-9)
	}
	d.progressBar.Describe(text)
	_ = d.progressBar.Set64(min(done, total)) // a bar that cannot be drawn must not stop the work
}

// barTheme is the bar's look: in the chat's colours, or without.
func barTheme() progressbar.Theme {
	if os.Getenv("NO_COLOR") != "" {
		return progressbar.ThemeASCII
	}
	return progressbar.Theme{Saucer: "[cyan]━[reset]", SaucerPadding: "[dim]━[reset]"}
}

// erase clears the bar's line until the next draw.
func (d *progressLine) erase() {
	if d.progressBar != nil {
		_ = d.progressBar.Clear()
	}
}

func (d *progressLine) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.erase()
	d.progressBar = nil
}

// barAfter is the shortest work with a bar.
const barAfter = time.Second

func showProgress(t Terminal) func(what string) (show func(done, total int64), done func()) {
	return func(what string) (show func(done, total int64), done func()) {
		s := &workScreen{terminal: t, what: what, start: time.Now()}
		return s.progress, s.clear
	}
}

type countBar struct {
	progressLine
	c        *cli.Context
	what     string
	note     string // follows the count
	disabled bool
	since    time.Time
	last     time.Time
}

func newCountBar(c *cli.Context, what string) *countBar {
	return &countBar{c: c, what: what, disabled: !isTerminal(c.App.ErrWriter), since: time.Now()}
}

func (b *countBar) count(done, total int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if b.disabled || done < total && now.Sub(b.last) < 100*time.Millisecond {
		return
	}
	b.last = now
	rate := float64(done) / max(now.Sub(b.since).Seconds(), 1e-3)
	b.draw(b.c.App.ErrWriter, strings.TrimSpace(fmt.Sprintf("%d of %d %s  %.2f/s  %s", done, total,
		b.what, rate, b.note)), int64(done), int64(total))
}

type workScreen struct {
	progressLine
	terminal Terminal
	what     string
	start    time.Time
	started  bool
	initial  int64 // done at the first report: an earlier run's
}

func (s *workScreen) progress(done, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.started, s.initial = true, done
	}
	if !isTerminal(s.terminal.Err) || time.Since(s.start) < barAfter {
		return
	}
	s.draw(s.terminal.Err, s.line(done, total), done, total)
}

// line describes the work so far, its rate, and the remaining time.
func (s *workScreen) line(done, total int64) string {
	seconds := max(time.Since(s.start).Seconds(), 1e-3)
	n := done - s.initial
	line := fmt.Sprintf("%s  %.2f of %.2f GB  %.1f GB/s", s.what, gb(done), gb(total),
		gb(n)/seconds)
	if n > 0 {
		line += "  " + formatSeconds(seconds*float64(total-done)/float64(n)) + " left"
	}
	return line
}
