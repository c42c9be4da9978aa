// Checks go.mod against the tree's imports, and docs/dependencies.md against go.mod.

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestModulesAreTidy checks that go mod tidy changes nothing. Tidy also needs modules that only
// tests of dependencies import, and fetches missing ones from the module proxy. CI can reach a
// proxy; elsewhere the test is skipped without one.
func TestModulesAreTidy(t *testing.T) {
	command := exec.Command("go", "mod", "tidy", "-diff")
	var diff, complaint bytes.Buffer
	command.Stdout, command.Stderr = &diff, &complaint
	err := command.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &ended) && diff.Len() == 0 && os.Getenv("CI") == "" &&
		regexp.MustCompile(`GOPROXY=off|dial tcp|lookup |timeout`).Match(complaint.Bytes()):
		t.Skipf("the module proxy cannot be reached: %s", &complaint)
	default:
		t.Errorf("go mod tidy -diff: %v\n%s%s", err, &diff, &complaint)
	}
}

// required matches a line of go.mod that requires a module.
var required = regexp.MustCompile(`^\t(\S+ v\S+)( // indirect)?$`)

// direct returns the direct requirements of go.mod with their versions: its first block. The second
// block has the indirect ones.
func direct(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "\nrequire")
	if len(blocks) != 3 {
		t.Fatalf("go.mod has %d blocks of modules, not the direct ones and the indirect ones",
			len(blocks)-1)
	}
	list := map[string]bool{}
	for i, block := range blocks[1:] {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		for _, line := range lines[1 : len(lines)-1] {
			m := required.FindStringSubmatch(line)
			if m == nil || (m[2] == "") != (i == 0) {
				t.Errorf("go.mod: not a line of block %d: %s", i+1, line)
			} else if i == 0 {
				list[m[1]] = true
			}
		}
	}
	return list
}

// TestDependenciesAreListed checks that docs/dependencies.md has exactly one row for each direct
// requirement of go.mod, with its version.
func TestDependenciesAreListed(t *testing.T) {
	text, err := os.ReadFile("docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "-") || cells[1] == " module " {
			continue
		}
		name := strings.TrimSpace(cells[1])
		if listed[name] || strings.TrimSpace(cells[2]) == "" || strings.TrimSpace(cells[3]) == "" {
			t.Errorf("docs/dependencies.md: twice, or without a reason: %s", line)
		}
		listed[name] = true
	}
	wanted := direct(t)
	for name := range wanted {
		if !listed[name] {
			t.Errorf("docs/dependencies.md has no row for %s", name)
		}
	}
	for name := range listed {
		if !wanted[name] {
			t.Errorf("docs/dependencies.md has %s, which go.mod does not ask for", name)
		}
	}
	if len(wanted) < 20 {
		t.Errorf("only %d modules were found", len(wanted))
	}
}
