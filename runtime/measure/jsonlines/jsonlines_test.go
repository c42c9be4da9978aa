package jsonlines

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
