//go:build unix

// Locks and owners of folders.

package python

import (
	"fmt"
	"os"
	"syscall"

	"github.com/ossrun/ossrun/runtime/process"
)

// nonblocking keeps an open from waiting for another process, as with a FIFO.
const nonblocking = syscall.O_NONBLOCK

func lockFolder(folder string) (*os.File, error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", folder, err)
	}
	return f, nil
}

func isOwnedByUser(info os.FileInfo) bool { return process.Owns(info) }
