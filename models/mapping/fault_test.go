//go:build unix && cgo

package mapping

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// A file that is truncated while mapped reads as zeros from there on, and is named.
func TestTruncatedWhileMapped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights")
	const size = 1 << 20
	hosttest.Check(t, os.WriteFile(path, bytes.Repeat([]byte{7}, size), 0o600))
	data, unmap, err := Open(path, size)
	hosttest.Check(t, err)
	if data[size-1] != 7 || Damaged() != nil {
		t.Fatalf("%d, %v", data[size-1], Damaged())
	}
	hosttest.Check(t, os.Truncate(path, size/2))
	sum := 0
	for _, b := range data {
		sum += int(b)
	}
	if sum != 7*size/2 {
		t.Errorf("the sum is %d", sum)
	}
	if err := Damaged(); !errors.Is(err, ErrTruncated) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	if err := unmap(); err != nil {
		t.Error(err)
	}
	if err := Damaged(); err != nil {
		t.Errorf("after it was unmapped: %v", err)
	}
}

// Faults elsewhere are still Go's: here one that panics.
func TestOtherFaultsStayGos(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a nil pointer was read")
		}
	}()
	var p *int
	_ = *p
}
