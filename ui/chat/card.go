// A call of a tool as it is shown: what was called, with what, what it says while it runs, and how
// it ended.

package chat

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/markdown"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// How many rows of a call are shown while reasoning is folded.
const (
	argumentRows = 6
	outputRows   = 6
)

// keptOutput is how many bytes of a call's output are kept with the conversation, for the screen;
// what the model read is kept whole.
const keptOutput = 32 << 10

// A call is the model asking for a tool.
type call struct {
	index     int // in the turn
	name      string
	arguments string
	clean     term.Cleaner

	output  string // what it said, or its result
	said    term.Cleaner
	files   []string // that it wrote
	failed  string   // what the model was told went wrong
	started time.Time
	ended   time.Time // zero: it runs, or nobody runs it
	running bool
}

func (c *call) end(time.Time) {}

// returned takes the end of a call that this process ran.
func (c *call) returned(e session.ToolEnd, at time.Time) {
	c.running, c.ended = false, at
	c.started = at.Add(-e.Took)
	switch {
	case errors.Is(e.Err, session.ErrNeedsApproval):
		c.failed = "it was not allowed"
	case e.Err != nil:
		c.failed = term.Clean(e.Err.Error())
	}
	if c.output == "" {
		c.output = term.Clean(e.Result.Text)
	}
	if e.Result.Title != "" {
		c.output = term.Clean(e.Result.Title)
	}
	c.files = e.Result.Files
	for _, f := range e.Result.Files {
		c.output = strings.TrimRight(c.output, "\n") + "\nwrote " + term.Clean(f)
	}
}

func (c *call) keep() keptPart {
	output := c.output
	if cut := len(output) - keptOutput; cut > 0 {
		output = "…" + strings.ToValidUTF8(output[cut:], "")
	}
	return keptPart{Kind: "call", Name: c.name, Text: c.arguments, Output: output,
		Files: c.files, Failed: c.failed, Seconds: c.ended.Sub(c.started).Seconds()}
}

// state is how the call stands.
func (c *call) state(now time.Time) string {
	switch {
	case c.running:
		return " · running, " + seconds(now.Sub(c.started))
	case c.failed != "":
		return " · failed after " + seconds(c.ended.Sub(c.started))
	case !c.ended.IsZero() && c.ended.After(c.started):
		return " · " + seconds(c.ended.Sub(c.started))
	}
	return ""
}

func (c *call) runs(l layout, _ bool) []run {
	arguments := strings.TrimSpace(c.arguments)
	flat := strings.Join(strings.Fields(arguments), " ")
	name := term.Cut("→ "+c.name, l.width)
	state := term.Cut(c.state(l.now), max(l.width-term.Width(name), 0))
	row := term.Row{{Text: name, Style: term.Cyan}}
	room := l.width - term.Width(name) - term.Width(state) - 1
	code := c.language()
	lines := strings.Contains(arguments, "\n") ||
		l.unfolded && (term.Width(flat) > room || code != "" && flat != "")
	if room > 3 && flat != "" && !lines {
		row = append(row, term.Span{Text: " " + term.Cut(flat, room), Style: term.Dim})
	}
	out := []run{{rows: []string{l.palette.Paint(append(row, term.Span{Text: state,
		Style: term.Dim}))}}}
	bar := l.dim("│ ", 2)
	if lines {
		out = append(out, run{bar, c.rows(l, code, arguments, term.Plain, argumentRows, false)})
	}
	if text := strings.TrimRight(c.output, "\n"); text != "" {
		out = append(out, run{bar, c.rows(l, "", text, term.Dim, outputRows, true)})
	}
	if c.failed != "" {
		out = append(out, run{bar, c.rows(l, "", c.failed, term.Red, outputRows, false)})
	}
	return out
}

// language is what the arguments are code of, "" where they are none.
func (c *call) language() string {
	if c.name == "python" {
		return c.name
	}
	return ""
}

// rows are the first or the last rows of a text, or all of them while nothing is folded; code names
// the language that it is written in, if any.
func (c *call) rows(l layout, code, text string, style term.Style, most int, last bool) []string {
	whole := strings.Count(text, "\n") + 1 // of which not all is wrapped
	if lines := strings.Split(text, "\n"); !l.unfolded && len(lines) > 4*most {
		if last {
			text = strings.Join(lines[len(lines)-4*most:], "\n")
		} else {
			text = strings.Join(lines[:4*most], "\n")
		}
	}
	var rows []term.Row
	if width := max(l.width-2, 1); code == "" {
		rows = term.Wrap([]term.Span{{Text: text, Style: style}}, width)
	} else {
		for _, line := range markdown.Code(code, text) {
			rows = append(rows, term.Chop(line, width, term.Span{Text: "↪ ", Style: term.Dim})...)
		}
	}
	if !l.unfolded && len(rows) > most {
		more := term.Row{{Text: fmt.Sprintf("… Ctrl+T shows all of %s lines",
			thousands(whole)), Style: term.Dim}}
		if last {
			rows = append([]term.Row{more}, rows[len(rows)-most+1:]...)
		} else {
			rows = append(rows[:most-1:most-1], more)
		}
	}
	return l.palette.PaintAll(rows)
}
