package device

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ossrun/ossrun/gpu/driver"
)

// TestUnreadableWeights: a file that is cut off under its mapping, as a disk that fails, is an
// error of the upload; the process and the card go on.
func TestUnreadableWeights(t *testing.T) {
	dev, _ := open(t, driver.CUDA)
	const size = 2*pieceBytes + 5<<20 // several readers, in the second piece
	file, err := os.Create(filepath.Join(t.TempDir(), "weights"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	mapped, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mapped)
	before := taken(t, dev)
	if err := file.Truncate(pieceBytes + 3<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := dev.Upload(mapped); !errors.Is(err, errUnreadable) {
		t.Fatal(err)
	}
	if left := taken(t, dev) - before; left != 0 {
		t.Errorf("%d bytes are left", left)
	}
	want, got := []byte("weights"), make([]byte, 7)
	r, err := dev.Upload(want)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Read(0, got), r.Free()); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q after it, %v", got, err)
	}
}
