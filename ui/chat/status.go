// The status line: model, device, effort and tools on the left, cached tokens, speed and context on
// the right. On a narrow screen its pieces become short before any is left out, and the context
// stays longest.

package chat

import (
	"fmt"
	"strings"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// A field is one piece of the status. Where they do not all fit, those of the highest rank become
// short first, then go first.
type field struct {
	text, short string // no short: it has no other form
	style       term.Style
	rank        int
	right       bool
}

func (m *Model) statusRow() term.Row {
	fields := m.statusFields()
	margin := m.margin()
	for {
		left, right := joinFields(fields, false), joinFields(fields, true)
		gap := m.width - 2*margin - left.Width() - right.Width()
		if gap >= 2 || len(fields) == 1 {
			if gap < 0 {
				return term.Row{{Text: term.Cut(fields[0].text, m.width)}}
			}
			row := append(term.Row{{Text: strings.Repeat(" ", margin)}}, left...)
			row = append(row, term.Span{Text: strings.Repeat(" ", max(gap, 0))})
			return append(row, right...)
		}
		fields = narrower(fields)
	}
}

// narrower makes one field short, or leaves one out if all are.
func narrower(fields []field) []field {
	last := func(of func(field) bool) int {
		found := -1
		for i, f := range fields {
			if of(f) && (found < 0 || f.rank > fields[found].rank) {
				found = i
			}
		}
		return found
	}
	if i := last(func(f field) bool { return f.short != "" }); i >= 0 {
		fields[i].text, fields[i].short = fields[i].short, ""
		return fields
	}
	i := last(func(field) bool { return true })
	return append(fields[:i:i], fields[i+1:]...)
}

func (m *Model) statusFields() []field {
	used, rate := m.context, m.rate
	fields := []field{
		{text: term.Clean(m.options.Model.ID()), style: term.Bold, rank: 4},
		{text: term.Clean(m.options.Model.Device()), style: term.Dim, rank: 6},
		{text: "effort " + m.effort, short: m.effort, rank: 3},
	}
	if l := m.live; l != nil {
		used, rate = used+l.tokens, l.rate()
		state := "Esc stops"
		if l.stopping {
			state = "stopping"
		}
		fields = append(fields, field{text: state, style: term.Yellow, rank: 2})
	}
	if tools := offered(m.tools.now()); len(tools) > 0 {
		f := field{text: fmt.Sprintf("%d tools", len(tools)), style: term.Dim, rank: 7}
		if len(tools) <= 3 {
			var names []string
			for _, o := range tools {
				names = append(names, term.Clean(o.name))
			}
			text := strings.Join(names, ", ")
			if f.text, f.short = text, f.text; len(f.short) >= len(text) {
				f.short = ""
			}
		}
		fields = append(fields, f)
	}
	if m.cached > 0 {
		fields = append(fields, field{text: thousands(m.cached) + " cached",
			short: roughly(m.cached) + " cached", style: term.Dim, rank: 8, right: true})
	}
	if rate > 0 {
		f := field{text: fmt.Sprintf("%.1f tok/s", rate), rank: 5, right: true}
		if rate >= 10 {
			f.short = fmt.Sprintf("%.0f tok/s", rate)
		}
		fields = append(fields, f)
	}
	length := m.options.Model.ContextLength()
	style := term.Dim
	switch {
	case length == 0: // a port that does not say
	case 100*used >= 90*length:
		style = term.Red | term.Bold
	case 100*used >= 75*length:
		style = term.Yellow
	}
	return append(fields, field{text: contextUse(used, length, thousands, " / "),
		short: contextUse(used, length, roughly, "/"), style: style, rank: 1, right: true})
}

func joinFields(fields []field, right bool) term.Row {
	var row term.Row
	for _, f := range fields {
		if f.right != right || f.text == "" {
			continue
		}
		if len(row) > 0 {
			row = append(row, term.Span{Text: " · ", Style: term.Dim})
		}
		row = append(row, term.Span{Text: f.text, Style: f.style})
	}
	return row
}

// contextUse writes "1,234 / 131,072, 1 %".
func contextUse(used, length int, written func(int) string, of string) string {
	if length == 0 {
		return written(used) + " tokens"
	}
	return fmt.Sprintf("%s%s%s, %d %%", written(used), of, written(length),
		(100*used+length/2)/length)
}

// roughly writes 987, 1.2k and 131k.
func roughly(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 9_950:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%dk", n/1000)
}
