// Package hosttest is what tests ask of the machine they run on: programs that it may lack,
// processor time, and the wait for an event.
package hosttest

import (
	"os"
	"os/exec"
	"testing"
	"time"
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

// Until asks until the event has happened, and fails the test if it hangs. The event is a text, or
// a func() string that describes what there is instead.
func Until(t testing.TB, event any, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !happened(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			if describe, ok := event.(func() string); ok {
				event = describe()
			}
			t.Fatalf("it hangs: %v", event)
		}
	}
}

// Must is the value of a call that may not fail: Must(os.ReadFile(path))(t). The test ends if it
// does.
func Must[T any](value T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Check(t, err)
		return value
	}
}

// Check ends a test that an error makes pointless.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
