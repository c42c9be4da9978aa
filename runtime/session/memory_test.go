package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
	"github.com/ossrun/ossrun/runtime/records"
)

// The turns of a file of an earlier release, which testdata/versions/README.md describes.
func TestTurnsOfEarlierReleases(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kept.db")
	hosttest.Check(t, os.WriteFile(file,
		hosttest.Must(os.ReadFile("../../testdata/versions/kept-0.db"))(t), 0o600))
	const longAgo = 100 * 365 * 24 * time.Hour
	s := hosttest.Must(records.Open(records.Options{File: file, TTL: longAgo}))(t)
	defer s.Close()
	for id := range 3 {
		got := turnsOf(s, "", "").recall(callKey(fmt.Sprint("call_", id)))
		if got == nil || got.Arguments != fmt.Sprintf(`{"n":%d}`, id) || len(got.Segments) != 2 ||
			!got.Segments[0].Reasoning || got.Segments[1].Reasoning ||
			text(got.Segments[0].Tokens) != fmt.Sprintf(
				"<|channel|>analysis<|message|>Thought %d.<|end|>", id) ||
			text(got.Segments[1].Tokens) != fmt.Sprintf(
				`<|channel|>commentary to=functions.f<|message|>{"n":%d}<|call|>`, id) {
			t.Errorf("call %d came back as %+v", id, got)
		}
	}
}

// The same answer was given in two conversations, one of them with words before it: each gets its
// own.
func TestAnswersOfOtherConversationsAreNotMixedUp(t *testing.T) {
	m, s := scripted("<|channel|>commentary<|message|>One "+
		"moment.<|end|><|start|>assistant<|channel|>final<|message|>Ok.<|return|>",
		"<|channel|>final<|message|>Fine.<|return|>", "<|channel|>final<|message|>Fine.<|return|>")
	run(t, m, Request{Messages: []Message{User("a")}})
	run(t, m, Request{Messages: []Message{User("b"), AssistantAnswer("Ok."), User("c")}})
	if p := text(s.prompts[1]); strings.Contains(p, "One moment") {
		t.Errorf("another conversation's words are in %s", p)
	}
	run(t, m, Request{Messages: []Message{User("a"), AssistantCommentary("One moment."),
		AssistantAnswer("Ok."), User("c")}})
	if p := text(s.prompts[2]); !strings.Contains(p,
		"commentary<|message|>One "+
			"moment.<|end|><|start|>assistant<|channel|>final<|message|>Ok.<|end|>") {
		t.Errorf("%s", p)
	}
}

// What the model has sampled for one client is not put into another's prompt, whatever that one
// says the model has answered.
func TestTurnsBelongToASalt(t *testing.T) {
	s := records.NewStore()
	turn := sampledTurn{Segments: []segment{{Reasoning: true, Tokens: tokens{1, 2, 3}}}}
	all := [][2]string{{"", ""}, {"", "a"}, {"", "b"}, {"a", ""}, {"b", ""}, {"a", "b"}}
	for _, of := range all {
		for _, other := range all {
			key := answerKey(fmt.Sprint(of, other))
			turnsOf(s, of[0], of[1]).remember(key, turn, true)
			if got := turnsOf(s, other[0], other[1]).recall(key); (got != nil) != (of == other) {
				t.Errorf("%q finds what %q was answered: %v", other, of, got != nil)
			}
		}
	}
}
