package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if got := Holder(path); got != "" {
		t.Errorf("%q holds nothing", got)
	}
	lock, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	// a container may hide the list of locks
	want := fmt.Sprintf("process %d of ", os.Getpid())
	if got := Holder(path); got != "" && !strings.HasPrefix(got, want) {
		t.Errorf("%q, not %s", got, want)
	} else if got == "" {
		t.Skip("the kernel's list of locks does not have ours")
	}
}
