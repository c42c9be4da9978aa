//go:build unix

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/ui/chat"
)

// Saved conversations are listed, shown, exported and deleted by a verb, and a deleted one is in no
// file of the state folder any more.
func TestSessionsVerb(t *testing.T) {
	t.Parallel()
	term, cmd := startInTerminal(t, 100, 30, "chat", "--model", "demo", "--temperature", "0")
	term.wait("medium effort")
	for i, question := range []string{"What is ossrun?", "How do I serve an OpenAI API?"} {
		if i > 0 {
			term.send("/new\r")
			term.until("an empty screen", func(s string) bool {
				return !strings.Contains(s, "thought for")
			})
		}
		term.send(question + "\r")
		term.until("an answer", answered(1))
	}
	home := homeOf(cmd)
	file := filepath.Join(home, "trip.md")
	says := func(good bool, want string, args []string) string {
		t.Helper()
		said, err := sameHome(cmd, append([]string{"sessions"}, args...)...).CombinedOutput()
		if (err == nil) != good || !strings.Contains(string(said), want) ||
			!good && strings.Count(string(said), "\n") != 1 {
			t.Errorf("%v: %v: %s", args, err, said)
		}
		return string(said)
	}
	ossrun := func(want string, args ...string) string { t.Helper(); return says(true, want, args) }
	fails := func(want string, args ...string) { t.Helper(); says(false, want, args) }
	var all []chat.Saved
	if err := json.Unmarshal([]byte(ossrun("", "list", "--json")), &all); err != nil ||
		len(all) != 2 || all[1].Name != "What is ossrun?" || all[1].Model != "demo" ||
		all[1].Questions != 1 {
		t.Fatalf("listed are %+v: %v", all, err)
	}
	first, second := all[1].ID, all[0].ID
	ossrun(first, "list")
	ossrun("## You\n\nWhat is ossrun?\n", "show", first)
	ossrun(`"question": "What is ossrun?"`, "show", "--json", "What is ossrun?")
	ossrun("was written to", "export", first, file)
	fails("exists. Give another file", "export", first, file)
	fails(".pdf files cannot be written", "export", first, "x.pdf")
	fails("or ossrun sessions list", "show", "nobody")
	fails("needs IDs or names, or --before, or --all", "rm")
	fails("needs IDs or names, or --before, or --all", "rm", "--all", first)
	fails("Give --yes", "rm", first)
	fails(`not "soon"`, "rm", "--before", "soon", "--yes")
	fails("is open in another chat", "rm", second, "--yes")
	ossrun("0 conversations deleted", "rm", "--before", "1d", "--yes")
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "## You\n\nWhat is ossrun?\n") {
		t.Errorf("exported is %q, %v", text, err)
	}
	ownersOnly(t, file)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	held := func(what string) (files []string) {
		t.Helper()
		for _, name := range []string{"kept.db", "kept.db-wal", "history"} {
			content, _ := os.ReadFile(filepath.Join(home, "ossrun", name)) // the log may be gone
			if strings.Contains(string(content), what) {
				files = append(files, name)
			}
		}
		return files
	}
	if len(held("What is ossrun?")) < 2 {
		t.Fatal("there is nothing to delete")
	}
	ossrun("1 conversation deleted", "rm", first, "--yes")
	if left := held("What is ossrun?"); len(left) > 0 {
		t.Errorf("what was deleted is still in %v", left)
	}
	if len(held("How do I serve")) == 0 {
		t.Error("another conversation was touched")
	}
	term.send("/quit\r")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(home, "ossrun", "kept.db.damaged-1")
	write(t, damaged, "How do I serve")
	ossrun("1 conversation deleted", "rm", "--all", "--yes")
	if left := held("How do I serve"); len(left) > 0 {
		t.Errorf("what was deleted is still in %v", left)
	}
	if _, err := os.Stat(damaged); err == nil {
		t.Error("a damaged copy stays")
	}
	ossrun("no conversation is saved yet", "list")
	if strings.TrimSpace(ossrun("", "list", "--json")) != "[]" {
		t.Error("no conversation is not an empty list")
	}
}

// A chat that keeps nothing leaves nothing, not for a day either.
func TestNoHistoryKeepsNothing(t *testing.T) {
	t.Parallel()
	term, cmd := startInTerminal(t, 100, 30, "chat", "--model", "demo", "--temperature", "0",
		"--no-history")
	term.wait("medium effort")
	term.send("What is ossrun?\r")
	term.until("an answer", answered(1))
	term.send("/quit\r")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	// all but locks, which hold nothing
	if left, _ := filepath.Glob(filepath.Join(homeOf(cmd), "ossrun", "*[^k]")); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}

// ownersOnly tells where others can read a file.
func ownersOnly(t *testing.T, file string) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v", file, info, err)
	}
}
