package chat

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ossrun/ossrun/runtime/records"
	"github.com/ossrun/ossrun/runtime/session"
)

// On a full disk the chat goes on, and does not claim in the end that the conversation was saved; a
// disk that has room again gets it, and the chat says how to continue.
func TestAFullDiskIsNoSavedConversation(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a file system of a known size cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	store, err := records.Open(records.Options{File: filepath.Join(disk, "kept.db"),
		TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	filler := filepath.Join(disk, "filler")
	if os.WriteFile(filler, bytes.Repeat([]byte("x"), 2<<20), 0o600) == nil {
		t.Fatal("the disk is not full")
	}
	long := strings.Repeat("A long answer. ", 4000)
	s := newStage(t, 80, 24, Options{Store: store}, turn(answering(long), []session.Event{
		stopped(9, 2)}), fine("Yes."))
	s.ask("Is the disk full?")
	s.play(0, step)
	if text := s.m.farewell(); !strings.Contains(text, "Is the disk full?") ||
		!strings.Contains(text, "This conversation was not saved: the disk is full.") ||
		strings.Contains(text, "--resume") {
		t.Errorf("on a full disk the chat ends with\n%.300s", text)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	s.ask("And now?")
	s.play(0, step)
	if text := s.m.farewell(); !strings.Contains(text, "To continue: ossrun chat --resume "+s.m.record.id) {
		t.Errorf("with room again the chat ends with\n%.300s", text)
	}
	if k, err := find(store, s.m.record.id); err != nil || len(k.Exchanges) != 2 {
		t.Errorf("kept is %+v, %v", k, err)
	}
}
