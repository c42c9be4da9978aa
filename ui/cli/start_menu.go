// ossrun without a command on a terminal: a menu of first commands. A pipe gets the help.
//
// What must stay true: it fits 12 rows of 40 columns; Bubble Tea cuts wider ones.

package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/ui/chat/term"
)

// startChoices are command lines and what they do.
var startChoices = []struct{ line, help string }{
	{"chat", "talk to the best model"},
	{"serve", "an OpenAI port for programs"},
	{"pull 20b", "download gpt-oss-20b"},
	{"doctor", "what this machine can run"},
	{"--help", "all commands"},
}

type startMenu struct {
	palette term.Palette
	index   int
	chosen  bool
}

func (m *startMenu) Init() tea.Cmd { return nil }

func (m *startMenu) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	key, _ := msg.(tea.KeyMsg)
	switch key.String() {
	case "up", "shift+tab":
		m.index = (m.index + len(startChoices) - 1) % len(startChoices)
	case "down", "tab":
		m.index = (m.index + 1) % len(startChoices)
	case "enter":
		m.chosen = true
		return m, tea.Quit
	case "esc", "q", "ctrl+c", "ctrl+d":
		return m, tea.Quit
	}
	return m, nil
}

func (m *startMenu) View() string {
	if m.chosen {
		return ""
	}
	rows := []term.Row{{{Text: "ossrun", Style: term.Bold},
		{Text: " runs OpenAI's gpt-oss models here", Style: term.Dim}}, nil}
	for i, c := range startChoices {
		mark, style := "  ", term.Bold
		if i == m.index {
			mark, style = "❯ ", term.Bold|term.Cyan
		}
		rows = append(rows, term.Row{{Text: mark + fmt.Sprintf("%-9s", c.line), Style: style},
			{Text: " " + c.help}})
	}
	rows = append(rows, nil, term.Row{{Text: "↑↓ choose, Enter starts, Esc leaves",
		Style: term.Dim}})
	return strings.Join(m.palette.PaintAll(rows), "\n") + "\n"
}

// chooseStart asks the person; nil: nothing was chosen.
func chooseStart(ctx context.Context, t Terminal) ([]string, error) {
	m := &startMenu{palette: term.Palette{NoColor: os.Getenv("NO_COLOR") != "", Theme: term.Dark}}
	program := tea.NewProgram(m, tea.WithInput(t.In), tea.WithOutput(t.Out),
		tea.WithoutSignalHandler())
	stop := context.AfterFunc(ctx, program.Quit)
	defer stop()
	if _, err := program.Run(); err != nil {
		return nil, fmt.Errorf("menu: %w", err)
	}
	if !m.chosen {
		return nil, ctx.Err()
	}
	return strings.Fields(startChoices[m.index].line), nil
}
