// The start of a chat: model, device, and the latest conversations, one of which can be opened.
//
// What must stay true: conversations are read outside Update; they are listed only before the first
// message, and a key opens only a visible one.

package chat

import (
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// maxRecent is how many conversations the start lists; a small screen lists fewer.
const maxRecent = 8

// A greeting is the first entry of a transcript.
type greeting struct{ model *Model }

func (g *greeting) runs(l layout) []run {
	m := g.model
	name := term.Row{{Text: "ossrun · ", Style: term.Bold},
		{Text: term.Clean(m.options.Model.ID()), Style: term.Bold | term.Cyan}}
	length := "context length unknown"
	if n := m.options.Model.ContextLength(); n > 0 {
		length = formatNumber(n) + " tokens of context"
	}
	for _, text := range []string{m.device(), length} {
		if text != "" && !m.loading {
			name = append(name, term.Span{Text: " · " + text, Style: term.Dim})
		}
	}
	rows := term.Wrap(name, l.width)
	say := func(text string) {
		rows = append(rows, term.Wrap([]term.Span{{Text: term.Clean(text), Style: term.Dim}},
			l.width)...)
	}
	if m.loading {
		say("You can type already. Messages are answered when the model is loaded.")
	}
	if m.options.Notice != "" {
		say(m.options.Notice)
	}
	switch recent := m.recentChoices(); {
	case m.plain:
		say("Type a message, or /help for the commands.")
	case len(recent) > 0:
		rows = append(rows, nil, term.Row{{Text: "Recent", Style: term.Bold}})
		rows = append(rows, choiceRows(recent, m.chosen(), l.width)...)
		say("Up and Down choose · Enter opens · type to begin a new one")
	case len(m.conversation.first) == 0 && len(m.recent) == 0:
		rows = append(rows, nil)
		say("Type a message, for example: Plan a weekend in Lisbon.")
	}
	return []run{{rows: l.palette.PaintAll(rows)}}
}

// device is the model's device, as people write it.
func (m *Model) device() string {
	name := term.Clean(m.options.Model.Device())
	if rest, ok := strings.CutPrefix(name, "cpu"); ok {
		return "CPU" + rest
	}
	return name
}

// readRecent reads the latest conversations for the start.
func (m *Model) readRecent() tea.Cmd {
	if m.saver.store == nil || m.plain || len(m.conversation.first) > 0 {
		return nil
	}
	read := sessionsFor("/resume ")(m)
	return m.runAsync(func() outcome {
		all := read()
		all = slices.Clone(all[:min(len(all), maxRecent)]) // the texts of the others can be freed
		for i := range all {
			all[i].columns = all[i].columns[:2]
		}
		return func(m *Model) tea.Cmd {
			m.recent = all
			return nil
		}
	})
}

// recentChoices are the visible ones.
func (m *Model) recentChoices() []choice {
	if m.plain || m.editor.text != "" || len(m.conversation.first) > 0 || m.isAnswering() {
		return nil
	}
	return m.recent[:min(len(m.recent), max(m.height/4, 1))]
}

// ago formats a time: 5 minutes ago, yesterday, 3 Nov.
func ago(then, now time.Time) string {
	then, now = then.Local(), now.Local()
	day := func(t time.Time) string { return t.Format(time.DateOnly) }
	switch d := now.Sub(then); {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return formatCount(int(d.Minutes()), "minute") + " ago"
	case day(then) == day(now):
		return formatCount(int(d.Hours()), "hour") + " ago"
	case day(then) == day(now.AddDate(0, 0, -1)):
		return "yesterday"
	case then.Year() == now.Year():
		return then.Format("2 Jan")
	}
	return then.Format("2 Jan 2006")
}
