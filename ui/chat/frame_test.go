package chat

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/session"
)

const (
	tokensPerSecond = 1000
	streamed        = 20_000
	frameTokens     = tokensPerSecond / 60 // twice the frames that the chat asks for
	mostObjects     = 10_000
)

// longAnswer is about n tokens of everything that markdown has, with a listing and a paragraph that
// are very long.
func longAnswer(tb testing.TB, n int) []string {
	tb.Helper()
	sample, err := os.ReadFile("markdown/testdata/answer.md")
	if err != nil {
		tb.Fatal(err)
	}
	code := "```go\n" +
		strings.Repeat("func f(x int) int {\n\tif x > 1 { // not the last\n\t\treturn f(x-1) * "+
			"len(\"text\")\n\t}\n\treturn x\n}\n\n", 120) + "```\n\n"
	text := code + strings.Repeat("A **long** paragraph with `code` that does not end. ", 150) +
		"\n\n"
	table := "| a | b | c |\n|---|---|---|\n" +
		strings.Repeat("| some words | `12` | more of them |\n", 60) + "\n"
	var tokens []string
	for len(tokens) < n {
		for _, w := range strings.SplitAfter(text+table+string(sample), " ") {
			for len(w) > 5 { // a token is about five letters
				tokens = append(tokens, w[:5])
				w = w[5:]
			}
			tokens = append(tokens, w)
		}
		text = ""
	}
	return tokens[:n]
}

// longConversation plays a chat of many turns without goroutines, then streams a long answer, and
// returns what every frame cost by this measure: Update with the tokens of one frame, then View.
func longConversation(tb testing.TB, tokens []string, measure func() int64) []int64 {
	tb.Helper()
	s := &stage{t: &testing.T{}, runner: script(), clock: newClock()}
	s.m = newModel(tb.Context(), Options{Model: s.runner})
	s.m.clock = s.clock.read
	s.m.Update(tea.WindowSizeMsg{Width: 120, Height: 50})
	begin := func() *live {
		a := newAnswer(s.m.palette, s.clock.read(), 0)
		e := s.m.talk.conversation.ask("?", len(s.m.transcript.entries), a)
		s.m.transcript.add(newQuestion(s.m.palette, "And what else is there to say about it?"))
		s.m.transcript.add(a)
		s.m.talk.turns++
		s.m.talk.live = &live{number: s.m.talk.turns, cancel: func() {}, queue: newEventQueue(),
			answer: a, exchange: e, started: s.clock.read()}
		return s.m.talk.live
	}
	feed := func(l *live, tokens []string, think int) frame {
		f := frame{number: l.number}
		for i, tok := range tokens {
			at := s.clock.advance(time.Second / tokensPerSecond)
			var e session.Event = session.Answer{Text: tok}
			if i < think {
				e = session.Reasoning{Text: tok}
			}
			f.events = append(f.events, timedEvent{e, at})
		}
		f.time = s.clock.read()
		return f
	}
	for range 40 {
		l := begin()
		f := feed(l, tokens[:500], 100)
		f.events = append(f.events, timedEvent{stopped(1000, 500), s.clock.read()})
		f.done = true
		s.m.Update(f)
	}
	s.m.View()
	l := begin()
	var costs []int64
	for at := 0; at < len(tokens); at += frameTokens {
		f := feed(l, tokens[at:min(at+frameTokens, len(tokens))], 4000-at)
		before := measure()
		s.m.Update(f)
		s.m.View()
		costs = append(costs, measure()-before)
	}
	for width := 119; width > 80; width-- { // the border of the window is dragged
		before := measure()
		_, settle := s.m.Update(tea.WindowSizeMsg{Width: width, Height: 50})
		s.m.View()
		costs = append(costs, measure()-before)
		if settle == nil || s.m.laidOut != 120 {
			tb.Fatal("a long conversation is laid out anew for every step of a resize")
		}
	}
	s.m.Update(stableWidth(81))
	s.m.View()
	if s.m.laidOut != 81 {
		tb.Error("the conversation is not laid out for the new width")
	}
	return costs
}

// allocated counts the objects that this process has made.
func allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Mallocs)
}

// A frame at 1,000 tokens a second makes few objects, since rows that were laid out stay. This is
// so at the end of a long conversation as at its beginning, and while the window is resized.
func TestFrameBudget(t *testing.T) {
	costs := longConversation(t, longAnswer(t, streamed/2), allocated)
	slices.Sort(costs)
	p50, p99, worst := costs[len(costs)/2], costs[len(costs)*99/100], costs[len(costs)-1]
	t.Logf("%d frames of %d tokens: p50 %d, p99 %d, worst %d objects", len(costs), frameTokens,
		p50, p99, worst)
	if p50 > mostObjects/4 || p99 > mostObjects {
		t.Errorf("p50 is %d, p99 is %d, the budget is %d objects", p50, p99, mostObjects)
	}
}

// BenchmarkFrames measures the processor's time of a frame, which has 16 ms.
func BenchmarkFrames(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tokens := longAnswer(b, streamed)
	for b.Loop() {
		costs := longConversation(b, tokens, func() int64 { return int64(hosttest.ThreadTime()) })
		slices.Sort(costs)
		b.ReportMetric(float64(costs[len(costs)*99/100]/1000), "p99-µs")
	}
}
