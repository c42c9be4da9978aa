// The transcript: all entries from the greeting to the last answer, and the scroll position.

package chat

import (
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// maxTextWidth is the maximum width of text on wide screens.
const maxTextWidth = 104

// maxQuestionRows is how many rows of a long question are shown.
const maxQuestionRows = 16

// A layout is the screen's properties for entries.
type layout struct {
	palette  term.Palette
	width    int       // columns for an entry
	wide     int       // columns for code
	height   int       // visible rows of the transcript
	plain    bool      // without escape sequences
	unfolded bool      // reasoning and long questions are shown in full
	now      time.Time // for running times
	asking   bool      // the running call waits for approval
	notices  int       // number of the visible notices
	loading  string    // why a turn has no token yet; "": prompt processing
}

func (l layout) dim(text string, width int) string {
	return l.palette.Paint(term.Row{{Text: term.Cut(text, width), Style: term.Dim}})
}

// An entry is one piece of the transcript. Its rows are in runs, so that a long answer is not
// copied for every frame; prefix precedes every row of a run.
type entry interface {
	runs(l layout) []run
}

type run struct {
	prefix string
	rows   []string
}

// A transcript is a list of entries and a scroll position.
type transcript struct {
	entries []entry
	top     int  // first visible row, unless following
	follow  bool // the end stays visible
	total   int  // rows in all, and on the screen, at the last view
	height  int
}

func (t *transcript) add(e entry) { t.entries = append(t.entries, e) }

// scroll moves by rows, up if negative. At the end it follows again.
func (t *transcript) scroll(rows int) {
	last := max(t.total-t.height, 0)
	if t.follow {
		t.top = last
	}
	t.top = min(max(t.top+rows, 0), last)
	t.follow = t.top == last
}

// A page, such as /help, is shown instead of the transcript.
type page struct{ transcript }

func (m *Model) visibleTranscript() *transcript {
	if p := m.modes.page(); p != nil {
		return &p.transcript
	}
	return &m.transcript
}

func (m *Model) showPage(rows []line) tea.Cmd {
	if m.plain {
		return m.appendEntry(&block{lines: rows})
	}
	m.modes.open(&page{transcript{entries: []entry{&block{lines: rows}}}})
	return nil
}

// key closes the page by any key except the scrolling ones.
func (p *page) key(m *Model, _ tea.KeyMsg, name string) (cmd tea.Cmd, ok bool) {
	typed := m.input.editor.text != ""
	switch name {
	case "pgup", "pgdown", "shift+up", "shift+down", "ctrl+home", "ctrl+end":
		return nil, false
	case "up", "down":
		if !typed {
			p.scroll(map[string]int{"up": -1, "down": 1}[name])
			return nil, true
		}
	}
	m.modes.close(pageRank)
	return nil, name == "esc" || !typed && (name == "enter" || name == "?")
}

// rowsBelow is the number of rows below the visible ones.
func (t *transcript) rowsBelow() int {
	if t.follow {
		return 0
	}
	return max(t.total-t.height-t.top, 0)
}

// view returns exactly l.height rows.
func (t *transcript) view(l layout) []string {
	var all []run
	total := 0
	for _, e := range t.entries {
		runs := e.runs(l)
		if len(runs) == 0 {
			continue
		}
		if len(all) > 0 {
			all = append(all, run{rows: blankRow})
			total++
		}
		for _, r := range runs {
			total += len(r.rows)
		}
		all = append(all, runs...)
	}
	t.total, t.height = total, l.height
	top := t.top
	if last := max(total-l.height, 0); t.follow || top > last {
		top = last
	}
	out := make([]string, 0, l.height)
	for _, r := range all {
		if top >= len(r.rows) {
			top -= len(r.rows)
			continue
		}
		for _, row := range r.rows[top:] {
			if len(out) == l.height {
				return out
			}
			out = append(out, r.prefix+row)
		}
		top = 0
	}
	for len(out) < l.height {
		out = append(out, "")
	}
	return out
}

var blankRow = []string{""}

// A markedText is text after a mark: the person's message, or one of the chat itself, such as an
// error and its remedy.
type markedText struct {
	mark  term.Span
	text  *prose
	folds bool // only the beginning of a long text is shown
	// branch is the place of a question among its branches; nil or "": it has no other
	branch func() string
}

func newQuestion(p term.Palette, text string) *markedText {
	return &markedText{term.Span{Text: "❯ ", Style: term.Bold | term.Green},
		newProse(p, term.Plain, text), true, nil}
}

func newSummary(p term.Palette, text string) *markedText {
	return &markedText{term.Span{Text: "≡ ", Style: term.Bold | term.Magenta},
		newProse(p, term.Dim, "Summary of what was said before:\n"+term.Clean(text)), true, nil}
}

func (r *markedText) runs(l layout) []run {
	stable, tail := r.text.rows(max(l.width-2, 1))
	rows := append(stable[:len(stable):len(stable)], tail...)
	if len(rows) == 0 {
		if !r.folds {
			return nil
		}
		rows = blankRow
	}
	var hint []run
	if r.folds && len(rows) > maxQuestionRows && !l.unfolded {
		note := fmt.Sprintf("… %s, Ctrl+T shows them",
			term.Count(len(rows)-maxQuestionRows+2, "more row"))
		rows = rows[:maxQuestionRows-2]
		hint = []run{{"  ", []string{l.dim(note, l.width-2)}}}
	}
	if r.branch != nil && r.branch() != "" {
		hint = append(hint, run{"  ", []string{l.dim(r.branch(), l.width-2)}})
	}
	return append([]run{{l.palette.Paint(term.Row{r.mark}), rows[:1]}, {"  ", rows[1:]}}, hint...)
}

// A block is rows of spans that are wrapped to the screen: the greeting and /help.
type block struct {
	lines []line
	width int
	rows  []string
}

// A line of a block may have a name, followed by its text in a second column.
type line struct {
	name string
	text term.Row
}

func plainLine(name, text string) line { return line{name, term.Row{{Text: text}}} }

func styledLine(s term.Style, text string) line {
	return line{text: term.Row{{Text: text, Style: s}}}
}

// nameWidth is the column of the text after a name; on narrow screens the text is below it.
const nameWidth = 27

func (b *block) runs(l layout) []run {
	if b.width != l.width {
		b.width, b.rows = l.width, nil
		for _, line := range b.lines {
			b.rows = append(b.rows, l.palette.PaintAll(line.wrap(l.width))...)
		}
	}
	return []run{{rows: b.rows}}
}

func (n line) wrap(width int) []term.Row {
	if n.name == "" {
		return term.Wrap(n.text, width)
	}
	name := term.Span{Text: "  " + n.name, Style: term.Cyan}
	if width < 2*nameWidth {
		indent := term.Span{Text: "    "}
		return append(term.Chop(term.Row{name}, width, indent),
			term.Prefix(term.Wrap(n.text, max(width-4, 1)), indent, indent)...)
	}
	name.Text = fmt.Sprintf("%-*s", nameWidth, name.Text)
	return term.Prefix(term.Wrap(n.text, width-nameWidth), name,
		term.Span{Text: strings.Repeat(" ", nameWidth)})
}

// longestLine is where an endless line is cut, so that frames stay cheap.
const longestLine = 4 << 10

// A prose is plain text in one style that may still grow: reasoning, a question, a notice. Complete
// lines are wrapped once per width; only the last line is wrapped again.
type prose struct {
	style   term.Style
	palette term.Palette
	text    strings.Builder

	width  int
	done   int // bytes of text whose rows are in stable
	stable []string
	tail   []string
	tailAt int
}

func newProse(p term.Palette, s term.Style, text string) *prose {
	t := &prose{palette: p, style: s, tailAt: -1}
	t.push(text)
	return t
}

func (p *prose) push(text string) { p.text.WriteString(text) }

// rows returns the rows of complete lines and those of the last.
func (p *prose) rows(width int) (stable, tail []string) {
	if width != p.width {
		p.width, p.done, p.stable, p.tailAt = width, 0, nil, -1
	}
	all := p.text.String()
	for {
		line, size := term.FirstLine(all[p.done:], longestLine)
		if size == 0 {
			break
		}
		p.stable = append(p.stable, p.paint(line)...)
		p.done += size
		p.tailAt = -1
	}
	if p.tailAt != len(all) {
		p.tailAt, p.tail = len(all), nil
		if p.done < len(all) {
			p.tail = p.paint(all[p.done:])
		}
	}
	return p.stable, p.tail
}

func (p *prose) paint(line string) []string {
	return p.palette.PaintAll(term.Wrap([]term.Span{{Text: line, Style: p.style}}, p.width))
}
