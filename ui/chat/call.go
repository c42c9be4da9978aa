// A call of a tool on the screen, and in an export. It has the form of the question for approval:
// the tool's one name, a row for each argument, and how it ended.
//
// What must stay true: a call has one name everywhere; folded, its result is one line; a call that
// the person refused is no failure.

package chat

import (
	"cmp"
	"fmt"
	"html"
	"path/filepath"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/markdown"
	"github.com/ossrun/ossrun/ui/chat/term"
)

const (
	// argumentRows and outputRows are how many rows of a folded call are shown, the output's while
	// it runs.
	argumentRows = 6
	outputRows   = 6

	// refusal is the error that the model sees for a call that the person refused.
	refusal = "the user did not allow this call"
)

// maxSavedOutput is how many bytes of a call's output are saved with the conversation for the
// screen; the model's history has all of it.
const maxSavedOutput = 32 << 10

// A call is the model asking for a tool.
type call struct {
	index     int    // in the turn
	id        string // "" in a restored conversation
	name      string
	resolved  bool // the name has its server
	arguments string
	clean     term.Cleaner

	output        string // printed so far, or its result
	outputCleaner term.Cleaner
	files         []string // written by it
	failed        string   // the error that the model was told
	started       time.Time
	endTime       time.Time // zero: running, or not run here
	running       bool
}

// toolResolved is the event of a call whose tool was found; only a server's tool has a server.
type toolResolved struct {
	session.CallEnd  // it makes this an event
	id, server, tool string
}

// toolName is a tool's name in calls, questions and exports.
func toolName(server, tool string) string {
	name := term.Clean(tool)
	if server != "" && server != tool {
		name = term.Clean(server) + ": " + name
	}
	return name
}

// recipientName is the name of a tool whose server is not known yet.
func recipientName(recipient string) string {
	space, tool, ok := strings.Cut(strings.TrimPrefix(recipient, "functions."), ".")
	if !ok {
		return toolName("", space)
	}
	return toolName(space, tool)
}

func (c *call) end(time.Time) {}

func (c *call) recordResult(e session.ToolEnd, now time.Time) {
	c.running, c.started, c.endTime = false, now.Add(-e.Took), now
	if e.Err != nil {
		c.failed = term.Clean(e.Err.Error())
	}
	var written strings.Builder // first, because a folded result is its beginning
	for _, f := range e.Result.Files {
		written.WriteString("wrote " + term.Clean(f) + "\n")
	}
	c.output = written.String() + term.Clean(cmp.Or(e.Result.Title, c.output, e.Result.Text))
	c.files = e.Result.Files
}

func (c *call) save() savedPart {
	output := c.output
	if cut := len(output) - maxSavedOutput; cut > 0 {
		output = "…" + strings.ToValidUTF8(output[cut:], "")
	}
	return savedPart{Kind: "call", Name: c.name, Text: c.arguments, Output: output,
		Files: c.files, Failed: c.failed, Seconds: c.endTime.Sub(c.started).Seconds()}
}

// state says how far the call is, or how it ended.
func (c *call) state(l layout) string {
	switch {
	case c.running && l.asking:
		return "waits for your answer"
	case c.running:
		return "running, " + formatDuration(l.now.Sub(c.started))
	case c.failed == refusal:
		return "refused"
	case c.failed != "" && c.endTime.After(c.started):
		return "failed after " + formatDuration(c.endTime.Sub(c.started))
	case c.failed != "":
		return "failed"
	case !c.endTime.IsZero() && c.endTime.After(c.started):
		return formatDuration(c.endTime.Sub(c.started))
	}
	return ""
}

// result returns the call's output, and its error unless it was refused.
func (c *call) result() (output, failed string) {
	if failed = c.failed; failed == refusal {
		failed = ""
	}
	return strings.TrimSpace(c.output), failed
}

func (c *call) runs(l layout, _ bool) []run {
	name := term.Cut("→ "+c.name, l.width)
	row := term.Row{{Text: name, Style: term.Cyan}}
	if state := c.state(l); state != "" {
		row = append(row, term.Span{Text: term.Cut(" · "+state, max(l.width-term.Width(name), 0)),
			Style: term.Dim})
	}
	out := []run{{rows: []string{l.palette.Paint(row)}}}
	bar, width := l.dim("│ ", 2), max(l.width-2, 1)
	if rows := c.argumentRows(width, l.unfolded); len(rows) > 0 {
		out = append(out, run{prefix: bar, rows: c.fold(l, rows, argumentRows, false)})
	}
	output, failed := c.result()
	if !c.running && !l.unfolded {
		text, style := cmp.Or(failed, output), term.Dim
		if failed != "" {
			style = term.Red
		} else if len(c.files) > 1 {
			text = "wrote " + strings.Join(c.fileNames(), ", ")
		}
		if text != "" {
			row := l.palette.Paint(term.Row{{Text: c.oneLine(text, width), Style: style}})
			out = append(out, run{prefix: l.dim("╰ ", 2), rows: []string{row}})
		}
		return out
	}
	for _, part := range []struct {
		text  string
		style term.Style
	}{{output, term.Dim}, {failed, term.Red}} {
		if part.text == "" {
			continue
		}
		text := part.text
		if lines := strings.Split(text, "\n"); !l.unfolded && len(lines) > 4*outputRows {
			text = strings.Join(lines[len(lines)-4*outputRows:], "\n") // enough for the last rows
		}
		rows := term.Wrap([]term.Span{{Text: text, Style: part.style}}, width)
		out = append(out, run{prefix: bar, rows: c.fold(l, rows, outputRows, true)})
	}
	return out
}

func (c *call) fileNames() (names []string) {
	for _, f := range c.files {
		names = append(names, term.Clean(filepath.Base(f)))
	}
	return names
}

// oneLine is a result in one row, with the number of lines if it has more.
func (c *call) oneLine(text string, width int) string {
	note := ""
	if lines := strings.Count(text, "\n") + 1; lines > 1 {
		note = " · " + term.Count(lines, "line")
	}
	text = strings.Join(strings.Fields(text), " ")
	if term.Width(text)+term.Width(note) <= width || term.Width(note) > width/2 {
		return term.Cut(text, width)
	}
	return term.Cut(text, width-term.Width(note)) + note
}

// argumentRows are the arguments as the question for approval has them, code in colours. While they
// are written, or folded, long ones are cut.
func (c *call) argumentRows(width int, unfolded bool) (rows []term.Row) {
	text, code := strings.TrimSpace(c.arguments), c.language()
	written := !c.started.IsZero()
	if lines := strings.Split(text, "\n"); !unfolded && len(lines) > 4*argumentRows &&
		(code != "" || !written) {
		text = strings.Join(lines[:4*argumentRows], "\n")
	}
	all, isObject := members(text)
	switch {
	case text == "" || isObject && len(all) == 0:
	case code != "":
		for _, line := range markdown.Code(code, text) {
			rows = append(rows, term.Chop(line, width, term.Span{Text: "↪ ", Style: term.Dim})...)
		}
	case written:
		return formatArguments(text, width)
	default:
		return term.Wrap([]term.Span{{Text: text[:min(len(text), longestLine)],
			Style: term.Dim}}, width)
	}
	return rows
}

// language is the language of the arguments, "" unless they are code.
func (c *call) language() string {
	if c.name == "python" {
		return c.name
	}
	return ""
}

// fold paints the first or last rows, or all while unfolded.
func (c *call) fold(l layout, rows []term.Row, limit int, last bool) []string {
	if !l.unfolded && len(rows) > limit {
		hint := term.Row{{Text: term.Cut("… Ctrl+T shows all", max(l.width-2, 1)), Style: term.Dim}}
		if last {
			rows = append([]term.Row{hint}, rows[len(rows)-limit+1:]...)
		} else {
			rows = append(rows[:limit-1:limit-1], hint)
		}
	}
	return l.palette.PaintAll(rows)
}

// document is the call in an export: one line, which opens to its arguments and its result.
func (c *call) document() string {
	output, failed := c.result()
	head := c.name
	for _, text := range []string{c.state(layout{}), c.oneLine(cmp.Or(failed, output), 60)} {
		if text != "" {
			head += " · " + text
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n<details><summary>%s</summary>\n", html.EscapeString(head))
	var arguments []string
	for _, row := range (term.Palette{NoColor: true}).PaintAll(c.argumentRows(maxTextWidth, true)) {
		arguments = append(arguments, strings.TrimRight(ansi.Strip(row), " "))
	}
	text := strings.Join(arguments, "\n")
	if c.language() != "" {
		text = strings.TrimSpace(c.arguments)
	}
	for _, block := range [][2]string{{c.language(), text}, {"", output}, {"", failed}} {
		if block[1] == "" {
			continue
		}
		b.WriteString("\n" + fenced(block[0], block[1]) + "\n")
	}
	return b.String() + "\n</details>\n"
}

// fenced is text as a block of code, after a fence that is not in it.
func fenced(language, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + text + "\n" + fence
}
