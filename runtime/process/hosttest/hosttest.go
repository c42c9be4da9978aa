// Package hosttest is what tests ask of the machine they run on: programs that it may lack, and
// processor time.
package hosttest

import (
	"os"
	"os/exec"
	"testing"
)

// Program is the path of a program that a test needs.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Lacks(t, name+" is not installed")
	}
	return path
}

// Lacks ends a test for want of something: it is skipped, but in CI, which installs it, it fails.
func Lacks(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s: .ci/run installs it", what)
	}
	t.Skip(what)
}
