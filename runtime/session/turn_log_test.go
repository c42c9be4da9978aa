package session

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models/store"
)

func remember(id int) *remembered {
	return &remembered{key: callKey(fmt.Sprint("call_", id)), arguments: fmt.Sprintf(`{"n":%d}`, id), segments: []segment{
		{reasoning: true, tokens: encode(fmt.Sprintf("<|channel|>analysis<|message|>Thought %d.<|end|>", id))},
		{tokens: encode(fmt.Sprintf(`<|channel|>commentary to=functions.f<|message|>{"n":%d}<|call|>`, id))},
	}}
}

// known tells whether m remembers a call as it was put.
func known(t *testing.T, m *Memory, id int) bool {
	t.Helper()
	want, got := remember(id), m.get(callKey(fmt.Sprint("call_", id)))
	if got == nil {
		return false
	}
	if got.arguments != want.arguments || len(got.segments) != 2 || !got.segments[0].reasoning || got.segments[1].reasoning ||
		text(got.segments[0].tokens) != text(want.segments[0].tokens) || text(got.segments[1].tokens) != text(want.segments[1].tokens) {
		t.Fatalf("call %d came back as %+v", id, got)
	}
	return true
}

func openMemoryIn(t *testing.T, folder string, tokens int) *Memory {
	t.Helper()
	m, err := OpenMemory(folder, tokens, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func TestSampledTurnsOutliveTheProcess(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	m := openMemoryIn(t, folder, 1<<20)
	for id := range 5 {
		m.put(remember(id))
	}
	if _, err := OpenMemory(folder, 0, time.Hour); !errors.Is(err, store.ErrLocked) {
		t.Errorf("two have one log: %v", err)
	}
	killed := filepath.Join(t.TempDir(), "killed") // as after kill -9: never closed, and nobody holds the lock
	if err := os.CopyFS(killed, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	m = openMemoryIn(t, killed, 1<<20)
	for id := range 5 {
		if !known(t, m, id) {
			t.Errorf("call %d is forgotten", id)
		}
	}
	m.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	if known(t, m, 1) {
		t.Error("a call is remembered beyond its time")
	}
}

// Cut off anywhere, or damaged anywhere, the log gives what stands before that, and takes new records.
func TestTornLog(t *testing.T) {
	folder := t.TempDir()
	m := openMemoryIn(t, folder, 1<<20)
	for id := range 3 {
		m.put(remember(id))
	}
	m.Close()
	whole, err := os.ReadFile(filepath.Join(folder, logName))
	if err != nil {
		t.Fatal(err)
	}
	for cut := 0; cut <= len(whole); cut += 7 {
		for _, damaged := range [][]byte{whole[:cut], append(bytes.Clone(whole[:cut]), "\x00garbage\n\xff"...)} {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, logName), damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			m := openMemoryIn(t, folder, 1<<20)
			for id, records := 0, bytes.Count(whole[:cut], []byte("\n")); id < 3; id++ {
				if got := known(t, m, id); got != (id < records) && cut != len(whole) {
					t.Fatalf("cut at %d of %d: call %d known: %v", cut, len(whole), id, got)
				}
			}
			m.put(remember(9))
			m.Close()
			if m = openMemoryIn(t, folder, 1<<20); !known(t, m, 9) {
				t.Fatalf("cut at %d: what came later is not in the log", cut)
			}
			m.Close()
		}
	}
}

func TestLogIsBounded(t *testing.T) {
	folder := t.TempDir()
	m := openMemoryIn(t, folder, 2000)
	for id := range 20000 {
		m.put(remember(id))
	}
	info, err := os.Stat(filepath.Join(folder, logName))
	if err != nil || info.Size() > 3<<20 {
		t.Errorf("%d bytes for 2000 tokens, %v", info.Size(), err)
	}
	m.Close()
	if m = openMemoryIn(t, folder, 2000); !known(t, m, 19999) || known(t, m, 10) || m.tokens > 2000 {
		t.Errorf("%d tokens are remembered", m.tokens)
	}
}

// The same answer was given in two conversations, one of them with words before it: each gets its own.
func TestAnswersOfOtherConversationsAreNotMixedUp(t *testing.T) {
	m, s := scripted("<|channel|>commentary<|message|>One moment.<|end|><|start|>assistant<|channel|>final<|message|>Ok.<|return|>",
		"<|channel|>final<|message|>Fine.<|return|>", "<|channel|>final<|message|>Fine.<|return|>")
	run(t, m, Request{Messages: []Message{User("a")}})
	run(t, m, Request{Messages: []Message{User("b"), AssistantAnswer("Ok."), User("c")}})
	if p := text(s.prompts[1]); strings.Contains(p, "One moment") {
		t.Errorf("another conversation's words are in %s", p)
	}
	run(t, m, Request{Messages: []Message{User("a"), AssistantCommentary("One moment."), AssistantAnswer("Ok."), User("c")}})
	if p := text(s.prompts[2]); !strings.Contains(p, "commentary<|message|>One moment.<|end|><|start|>assistant<|channel|>final<|message|>Ok.<|end|>") {
		t.Errorf("%s", p)
	}
}
