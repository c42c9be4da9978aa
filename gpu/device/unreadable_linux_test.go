package device

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// TestUnreadableWeights: a file that is cut off under its mapping, as a disk that fails, is an
// error of the upload; the process and the card go on.
func TestUnreadableWeights(t *testing.T) {
	dev, _ := open(t, driver.CUDA)
	const size = 2*pieceBytes + 5<<20 // several readers, in the second piece
	file := hosttest.Must(os.Create(filepath.Join(t.TempDir(), "weights")))(t)
	defer file.Close()
	hosttest.Check(t, file.Truncate(size))
	mapped := hosttest.Must(unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED))(t)
	defer unix.Munmap(mapped)
	before := taken(t, dev)
	hosttest.Check(t, file.Truncate(pieceBytes+3<<20))
	if _, err := dev.Upload(mapped); !errors.Is(err, errUnreadable) {
		t.Fatal(err)
	}
	if left := taken(t, dev) - before; left != 0 {
		t.Errorf("%d bytes are left", left)
	}
	want, got := []byte("weights"), make([]byte, 7)
	r := hosttest.Must(dev.Upload(want))(t)
	if err := errors.Join(r.Read(0, got), r.Free()); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q after it, %v", got, err)
	}
}
