package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/records"
)

// earlier copies a file of testdata/versions.
func earlier(t *testing.T, name string) (file string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../testdata/versions", name))
	file = filepath.Join(t.TempDir(), name)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// A conversation that an earlier release kept is on the screen again and goes on.
func TestAnEarlierReleasesChatGoesOn(t *testing.T) {
	store, err := records.Open(records.Options{File: earlier(t, "kept-0.db"), TTL: time.Hour,
		Notify: func(note string) { t.Error(note) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	s := newStage(t, 80, 24, Options{Store: store, Resume: "0123abcd"},
		fine("Yes."))
	for _, want := range []string{"first question", "x := 1", "The second answer.",
		`Continuing "first question"`} {
		if text := s.text(); !strings.Contains(text, want) {
			t.Errorf("%q is not on the screen:\n%s", want, text)
		}
	}
	s.ask("third question")
	s.play(0, step)
	if said := s.runner.Requests[0].Messages; len(said) != 5 || said[0].Text() != "first question" ||
		said[3].Text() != "The second answer." {
		t.Errorf("the model is given %+v", said)
	}
}
