//go:build unix

// Tests .ci/step: it reuses a verdict only for the same inputs, and a step without a stored
// verdict always runs.

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// stepTree is a small module with one step and .ci's programs.
func stepTree(t *testing.T) (step func(variables ...string) string) {
	t.Helper()
	dir, cache := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module x\n\ngo 1.26\n", "go.sum": "", ".ci/requirements.txt": "",
		"data/a.txt": "a", "other.txt": "o",
		"p/p.go":            "package p\n\nimport (\n\t_ \"embed\"\n\t_ \"x/q\"\n)\n\n//go:embed e.txt\nvar E string\n",
		"p/e.txt":           "e",
		"p/p_test.go":       "package p\n",
		"p/testdata/t.json": "{}",
		"q/q.go":            "package q\n", "q/q_test.go": "package q\n",
		".ci/steps/one": "#!/usr/bin/env bash\n# inputs: data\n# packages: ./p\n# programs: bash\n" +
			"echo ran\n[ -z \"$FAILS\" ]\n",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"step", "inputs"} {
		text, err := os.ReadFile(filepath.Join(".ci", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".ci", name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	t.Chdir(dir)
	return func(variables ...string) string {
		t.Helper()
		c := exec.Command(".ci/step", "one")
		c.Env = append(os.Environ(), append([]string{"tools=" + cache, "CI_ALL=", "FAILS="},
			variables...)...)
		out, err := c.CombinedOutput()
		if failed := strings.Contains(string(out), "FAILED"); failed != (err != nil) {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
}

func TestStepsRunAgainForNewInputs(t *testing.T) {
	hosttest.Program(t, "python3")
	step := stepTree(t)
	ran := func(want bool, why string, variables ...string) {
		t.Helper()
		out := step(variables...)
		if reused := strings.Contains(out, "passed here on"); reused == want ||
			want != strings.Contains(out, "\nran\n") {
			t.Errorf("%s: %s", why, out)
		}
	}
	ran(true, "a new machine")
	ran(false, "the same inputs")
	ran(true, "CI_ALL", "CI_ALL=1")
	ran(true, "a failing step", "FAILS=1", "CI_ALL=1")
	ran(true, "after a failure")
	ran(false, "the same inputs")
	list, err := exec.Command(".ci/inputs", "--list", "one").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Fields(string(list))
	want := []string{".ci/requirements.txt", ".ci/steps/one", "data/a.txt", "go.mod", "go.sum",
		"p/e.txt", "p/p.go", "p/p_test.go", "p/testdata/t.json", "q/q.go"}
	if !slices.Equal(files, want) {
		t.Fatalf("inputs: %v\nwant %v", files, want)
	}
	seen := map[string]string{}
	hash := func(why string) string {
		t.Helper()
		out, err := exec.Command(".ci/inputs", "one").Output()
		if err != nil {
			t.Fatalf("%s: %v", why, err)
		}
		return string(out)
	}
	changed := func(why string) {
		t.Helper()
		now := hash(why)
		if earlier, ok := seen[now]; ok {
			t.Errorf("%s: the same inputs as %s", why, earlier)
		}
		seen[now] = why
	}
	changed("the tree")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, append(text, '\n'), 0o755); err != nil {
			t.Fatal(err)
		}
		changed("a change of " + name)
	}
	t.Setenv("OSSRUN_LONG", "1")
	changed("a variable of tests")
	for _, name := range []string{"other.txt", "q/q_test.go"} {
		if err := os.WriteFile(name, []byte("package q\n\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if seen[hash("other files")] != "a variable of tests" {
		t.Error("a file that is no input changes the hash")
	}
}

// always lists the steps that run every time: their result depends on how processes interleave, or
// on the full tree.
var always = []string{"build", "chat", "long-forms", "page", "race", "release", "static", "tests",
	"vulnerabilities"}

func TestStepsNameTheirInputs(t *testing.T) {
	names, err := filepath.Glob(".ci/steps/*")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d steps: %v", len(names), err)
	}
	run, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Base(name)
		keeps := regexp.MustCompile(`(?m)^# inputs: \S`).Match(text)
		if keeps == slices.Contains(always, base) {
			t.Errorf("%s: names inputs: %v", name, keeps)
		}
		if !regexp.MustCompile(`(?m)^# budget: \d+$`).Match(text) {
			t.Errorf("%s has no budget of processor time", name)
		}
		if !regexp.MustCompile(`\b` + base + `\b`).Match(run) {
			t.Errorf(".ci/run does not run %s", name)
		}
	}
}
