package session

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/sched"
)

func TestCompact(t *testing.T) {
	m, s := scripted("<|channel|>analysis<|message|>Short.<|end|><|start|>assistant" +
		"<|channel|>final<|message|> They met Ann. <|return|>")
	got, err := Compact(t.Context(), m, Request{Messages: []Message{User("Who is Ann?"),
		AssistantAnswer("A friend.")}, Instructions: "Be kind."})
	if err != nil || got.Text != "They met Ann." || got.Dropped != 0 || got.Usage.Completion == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if p := text(s.prompts[0]); !strings.Contains(p, "Who is Ann?") ||
		!strings.Contains(p, "Be kind.") || !strings.Contains(p, "Reasoning: medium") {
		t.Errorf("%s", p)
	}
	if text := got.Message().Text(); !strings.HasSuffix(text, "\n\nThey met Ann.") {
		t.Errorf("%q", text)
	}
	if _, err := Compact(t.Context(), m, Request{}); err == nil {
		t.Error("nothing was summarised")
	}
}

// A summary continues the prompt of the turn before it, whatever that offered, so that a cache has
// it; a format that the answers had stands behind the tools.
func TestCompactContinuesTheCachedPrompt(t *testing.T) {
	m, s := scripted("<|channel|>final<|message|>Ann.<|return|>",
		"<|channel|>final<|message|>They met Ann.<|return|>",
		"<|channel|>final<|message|>{}<|return|>")
	req := Request{Messages: []Message{User("Who is it?")}, Instructions: "Be kind.",
		Effort: "high", Date: "2026-01-01", Python: true, Browser: true,
		Functions: []harmony.ToolDescription{{Name: "look", Description: "Looks."}}}
	run(t, m, req)
	turn := text(s.prompts[0])
	req.Messages = append(req.Messages, AssistantAnswer("Ann."))
	hosttest.Must(Compact(t.Context(), m, req))(t)
	got := text(s.prompts[1])
	if before := strings.TrimSuffix(turn, "<|start|>assistant"); before == turn ||
		!strings.HasPrefix(got, before) {
		t.Errorf("a turn had\n%s\nand its summary\n%s", turn, got)
	}
	req.Formats = "# Response Formats\n\n## a\n\n{}"
	run(t, m, req)
	format := text(s.prompts[2])
	tools := strings.Index(format, "} // namespace functions")
	if tools < 0 || !strings.HasPrefix(format[tools:], "} // namespace functions\n\n# Resp") ||
		format[:tools] != turn[:tools] {
		t.Errorf("with a format\n%s\nand without\n%s", format, turn)
	}
}

// small is a runner whose context holds few messages.
type small struct {
	*Model
	most int
	seen []int
}

func (s *small) Start(ctx context.Context, r Request) (Turn, error) {
	if s.seen = append(s.seen, len(r.Messages)); len(r.Messages) > s.most {
		return nil, &sched.ContextLengthError{}
	}
	return s.Model.Start(ctx, r)
}

// The oldest messages are left out until the rest fits, results without their calls with them.
func TestCompactWhatDoesNotFit(t *testing.T) {
	m, _ := scripted("<|channel|>final<|message|>Sum.<|return|>")
	s := &small{Model: m, most: 6}
	var history []Message
	for range 4 {
		history = append(history, User("q"), FunctionCall("c", "f", "{}"),
			FunctionResult("c", "f", "r"), AssistantAnswer("a"))
	}
	got, err := Compact(t.Context(), s, Request{Messages: history})
	if err != nil || got.Dropped == 0 || !slices.IsSortedFunc(s.seen,
		func(a, b int) int { return b - a }) {
		t.Errorf("%+v, %v, tried %v", got, err, s.seen)
	}
	s.most = 0
	if _, err := Compact(t.Context(), s, Request{Messages: history}); err == nil ||
		errors.As(err, new(*sched.ContextLengthError)) {
		t.Errorf("no summary, and no word of it: %v", err)
	}
}
