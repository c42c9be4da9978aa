package jsonlines

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Appended lines are read again, a cut line is dropped, and a file of something else stays as it
// is.
func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "results")
	open := func() (*File, []int, error) {
		var list []int
		f, err := Open(name, func(line []byte) error {
			var n int
			err := json.Unmarshal(line, &n)
			list = append(list, n)
			return err
		})
		return f, list, err
	}
	var want []int
	for n := range 4 {
		f, list, err := open()
		if err != nil || !slices.Equal(list, want) || f.Name() != name {
			t.Fatalf("%v, %v, not %v", err, list, want)
		}
		hosttest.Check(t, f.Append(n))
		want = append(want, n)
		if _, err := f.file.WriteString("17"); err != nil { // as a crash leaves it
			t.Fatal(err)
		}
		hosttest.Check(t, f.Close())
	}
	const other = "0\nwhat?\nmore"
	hosttest.Check(t, os.WriteFile(name, []byte(other), 0o600))
	if _, _, err := open(); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Error(err)
	}
	if text, err := os.ReadFile(name); err != nil || string(text) != other {
		t.Errorf("%v: %q", err, text)
	}
}

// Jobs run so many at once, what they return one at a time; nothing follows a failure.
func TestForEach(t *testing.T) {
	var running, most atomic.Int32
	var sum int // without a lock
	hosttest.Check(t, ForEach(t.Context(), 100, 4, func(_ context.Context, i int) func() error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		if i%2 == 1 {
			return nil
		}
		return func() error { sum += i; return nil }
	}))
	if sum != 2450 || most.Load() > 4 {
		t.Errorf("%d, %d at once", sum, most.Load())
	}
	failed, after := errors.New("the disk is full"), 0
	err := ForEach(t.Context(), 100, 8, func(context.Context, int) func() error {
		return func() error { after++; return failed }
	})
	if !errors.Is(err, failed) || after != 1 {
		t.Errorf("%v, and %d more were added", err, after-1)
	}
}
