// One turn of the model on the screen: reasoning, text, and tool calls with their output. Parts are
// only appended, and an ended part does not change, except for the marks of cited sources. They
// become numbered footnotes, [1]; under the answer each source's title is a link that terminals
// open (OSC 8).

package chat

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
	"github.com/ossrun/ossrun/ui/chat/markdown"
	"github.com/ossrun/ossrun/ui/chat/term"
)

// An answer is one turn of the model: reasoning, text and calls in order of arrival.
type answer struct {
	palette    term.Palette
	parts      []part
	codeOffset int // code blocks of the conversation before this answer
	started    time.Time
	live       bool
	tools      bool // this process runs its calls
	prefill    session.Prefill
	sources    []source // of its citations
	ending     string   // one line under an answer that was cut short
	endStyle   term.Style
}

// A part is a stretch of one kind.
type part interface {
	runs(l layout, live bool) []run
	end(now time.Time)
	save() savedPart
}

func newAnswer(p term.Palette, now time.Time, codeOffset int) *answer {
	return &answer{palette: p, started: now, live: true, codeOffset: codeOffset}
}

func (a *answer) code() (all []string) {
	for _, p := range a.parts {
		if s, ok := p.(*answerText); ok {
			all = append(all, s.text.Code()...)
		}
	}
	return all
}

// take adds one event and reports whether it was a token.
func (a *answer) take(e session.Event, now time.Time) bool {
	switch e := e.(type) {
	case session.Reasoning:
		t, ok := a.last().(*reasoningText)
		if !ok {
			t = &reasoningText{text: newProse(a.palette, term.Dim, ""), started: now}
			a.push(t, now)
		}
		t.tokens++
		t.latest = now
		t.text.push(t.clean.Push(e.Text))
	case session.Prefill:
		a.prefill = e
		return false
	case session.Commentary:
		a.textPart(true, now).push(e.Text)
	case session.Answer:
		a.textPart(false, now).push(e.Text)
	case session.CallStart:
		a.push(&call{index: e.Index, id: e.ID, name: recipientName(e.Recipient)}, now)
		return false
	case toolResolved:
		for _, p := range a.parts {
			if c, ok := p.(*call); ok && c.id == e.id {
				if c.resolved = true; e.tool != "" {
					c.name = toolName(e.server, e.tool)
				}
			}
		}
		return false
	case session.CallEnd:
		c := a.call(e.Index)
		c.started, c.running = now, a.tools
		return false
	case session.ToolOutput:
		c := a.call(e.Index)
		c.output += c.outputCleaner.Push(e.Text)
		return false
	case session.ToolEnd:
		a.call(e.Index).recordResult(e, now)
		return false
	case session.CallArguments:
		if c, ok := a.last().(*call); ok {
			c.arguments += c.clean.Push(e.Text)
		}
	default:
		return false
	}
	return true
}

// call is the call with this index, or a throwaway.
func (a *answer) call(index int) *call {
	for _, p := range a.parts {
		if c, ok := p.(*call); ok && c.index == index {
			return c
		}
	}
	return &call{}
}

// hasRunningCall reports whether a call runs or waits for approval.
func (a *answer) hasRunningCall() bool {
	c, ok := a.last().(*call)
	return ok && c.running
}

// callAllowed restarts the time of a call that has waited for approval.
func (a *answer) callAllowed(now time.Time) {
	if c, ok := a.last().(*call); ok && c.running {
		c.started = now
	}
}

func (a *answer) last() part {
	if len(a.parts) == 0 {
		return nil
	}
	return a.parts[len(a.parts)-1]
}

func (a *answer) push(p part, now time.Time) {
	if l := a.last(); l != nil {
		l.end(now)
	}
	a.parts = append(a.parts, p)
}

func (a *answer) textPart(aside bool, now time.Time) *answerText {
	s, ok := a.last().(*answerText)
	if !ok || s.aside != aside {
		codeOffset := a.codeOffset + len(a.code())
		s = &answerText{text: markdown.New(a.palette, codeOffset), codeOffset: codeOffset,
			aside: aside}
		a.push(s, now)
	}
	return s
}

// finish ends the turn with a line under it, if ending is set.
func (a *answer) finish(now time.Time, ending string, tone term.Style) {
	if l := a.last(); l != nil {
		l.end(now)
	}
	for _, p := range a.parts {
		if c, ok := p.(*call); ok && c.running {
			c.running, c.endTime, c.failed = false, now, "it was not run to its end"
		}
	}
	a.live, a.ending, a.endStyle = false, ending, tone
}

// spinner is shown until the first event.
var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

func (a *answer) runs(l layout) []run {
	l.width, l.wide = max(l.width-2, 1), max(l.wide-2, 1)
	var out []run
	add := func(runs ...run) {
		if len(out) > 0 && len(runs) > 0 {
			out = append(out, run{rows: blankRow})
		}
		out = append(out, runs...)
	}
	for i, p := range a.parts {
		add(p.runs(l, a.live && i == len(a.parts)-1)...)
	}
	if a.live && len(out) == 0 {
		waited := l.now.Sub(a.started)
		text := fmt.Sprintf("%c %s",
			spinner[int(max(waited, 0)/(100*time.Millisecond))%len(spinner)],
			cmp.Or(l.loading, "reading the prompt"))
		if p := a.prefill; p.Done < p.Total {
			text += fmt.Sprintf(", %d %%", 100*p.Done/p.Total)
			if n := p.Done - p.Cached; n > 0 && p.Took >= time.Second {
				remaining := time.Duration(float64(p.Took) / float64(n) * float64(p.Total-p.Done))
				text += ", " + formatDuration(remaining) + " left"
			}
		} else if waited >= time.Second {
			text += ", " + formatDuration(waited)
		}
		add(run{rows: []string{l.dim(text, l.width)}})
	}
	if len(a.sources) > 0 {
		add(run{rows: a.footnotes(l)})
	}
	if a.ending != "" {
		ending := term.Row{{Text: a.ending, Style: a.endStyle}}
		add(run{rows: l.palette.PaintAll(term.Wrap(ending, l.width))})
	}
	for i := range out {
		out[i].prefix = "  " + out[i].prefix
	}
	return out
}

func (a *answer) text() string {
	var parts []string
	for _, p := range a.parts {
		if s, ok := p.(*answerText); ok && !s.aside {
			parts = append(parts, s.text.Text())
		}
	}
	return strings.Join(parts, "\n\n")
}

// A reasoningText is reasoning: dimmed while it is written, one line afterwards.
type reasoningText struct {
	text    *prose
	clean   term.Cleaner
	tokens  int
	started time.Time
	latest  time.Time
	endTime time.Time
}

func (t *reasoningText) end(now time.Time) {
	if t.endTime.IsZero() {
		t.endTime = now
	}
}

func (t *reasoningText) head() string {
	end, verb := t.endTime, "thought for"
	if end.IsZero() {
		end, verb = t.latest, "thinking,"
	}
	return strings.TrimSuffix(verb+" "+formatDuration(end.Sub(t.started))+", "+
		term.Count(t.tokens, "token"), ", 0 tokens") // those of the chat page are not counted
}

func (t *reasoningText) runs(l layout, live bool) []run {
	arrow := "▸ "
	if live || l.unfolded {
		arrow = "▾ "
	}
	out := []run{{rows: []string{l.dim(arrow+t.head(), l.width)}}}
	if !live && !l.unfolded {
		return out
	}
	bar := l.dim("│ ", 2)
	stable, tail := t.text.rows(max(l.width-2, 1))
	if !l.unfolded { // only the last rows, so that the question stays visible
		window := max(min(l.height/2, 12), 2)
		if skip := len(stable) + len(tail) - window; skip > 0 {
			cut := min(skip, len(stable))
			stable, tail = stable[cut:], tail[skip-cut:]
		}
	}
	return append(out, run{bar, stable}, run{bar, tail})
}

// An answerText is markdown for the person: the answer, or a remark before a call.
type answerText struct {
	text       *markdown.Stream
	codeOffset int // code blocks of the conversation before it
	clean      term.Cleaner
	aside      bool
}

func (s *answerText) push(text string) { s.text.Push(s.clean.Push(text)) }

func (s *answerText) end(time.Time) {
	s.text.Push(s.clean.Flush())
	s.text.End()
}

func (s *answerText) runs(l layout, _ bool) []run {
	stable, tail := s.text.Rows(l.width, l.wide)
	if len(stable)+len(tail) == 0 {
		return nil
	}
	return []run{{rows: stable}, {rows: tail}}
}

// formatDuration formats a duration: 0.4 s, 12 s, 2 min 5 s.
func formatDuration(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 10:
		return fmt.Sprintf("%.1f s", max(s, 0))
	case s < 60:
		return fmt.Sprintf("%.0f s", s)
	}
	total := int(d.Seconds())
	return fmt.Sprintf("%d min %d s", total/60, total%60)
}

// A source is one footnote.
type source struct {
	URL   string `json:"url"`
	Title string `json:"title"`
	Mark  string `json:"mark"` // the model's mark in the answer
}

// cite replaces the answer's marks by numbers and adds the sources as footnotes. Citation offsets
// refer to the full answer; its parts are searched for the marks' text.
func (a *answer) cite(full string, citations []session.Citation, marks bool) {
	text := []rune(full)
	numbers := map[string]int{} // by address
	for _, c := range citations {
		if c.Start < 0 || c.End > len(text) || c.Start >= c.End {
			continue
		}
		mark := term.Clean(string(text[c.Start:c.End]))
		n, ok := numbers[c.URL]
		if !ok {
			a.sources = append(a.sources, source{c.URL, c.Title, mark})
			n = len(a.sources)
			numbers[c.URL] = n
		}
		if marks { // already printed
			continue
		}
		a.replace(mark, fmt.Sprintf("[%d]", n))
	}
}

func (a *answer) replace(mark, replacement string) {
	for _, p := range a.parts {
		s, ok := p.(*answerText)
		if !ok || s.aside || !strings.Contains(s.text.Text(), mark) {
			continue
		}
		text := strings.Replace(s.text.Text(), mark, replacement, 1)
		s.text = markdown.New(a.palette, s.codeOffset)
		s.text.Push(text)
		s.text.End()
		return
	}
}

func (a *answer) footnotes(l layout) []string {
	var rows []string
	for i, s := range a.sources {
		title := cmp.Or(term.Clean(s.Title), term.Clean(s.URL))
		number := fmt.Sprintf("[%d] ", i+1)
		if l.plain {
			rows = append(rows, s.Mark+" "+title+" "+term.Clean(s.URL))
			continue
		}
		row := term.Row{{Text: term.Cut(strings.ReplaceAll(title, "\n", " "),
			max(l.width-len(number), 0)), Style: term.Underline}}
		rows = append(rows, l.dim(number, len(number))+link(s.URL, l.palette.Paint(row)))
	}
	return rows
}

// link makes painted text a link if address is a web address.
func link(address, painted string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return painted
	}
	if address = u.String(); term.Clean(address) != address { // a query is not escaped
		return painted
	}
	return "\x1b]8;;" + address + "\x1b\\" + painted + "\x1b]8;;\x1b\\"
}
