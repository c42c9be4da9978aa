//go:build unix

package store

import (
	"errors"

	"golang.org/x/sys/unix"
)

// freeBytes is what an ordinary user may still write on the file system that holds path.
func freeBytes(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// IsFull tells whether an error says that a disk or a quota is full.
func IsFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
