package store

// LockFileEx on the first byte, as filelock, and so huggingface_hub, does on Windows. Weights are
// not locked: Windows itself refuses to delete a mapped file.

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Windows lets only administrators make links.
const noFollow = 0

// lockFile locks f without waiting; ErrLocked if another process holds it.
func lockFile(f *os.File, exclusive bool) error {
	if !exclusive {
		return nil
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) ||
		errors.Is(err, windows.ERROR_SHARING_VIOLATION) {
		return ErrLocked
	}
	return err
}
