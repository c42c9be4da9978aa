//go:build unix

package store

import (
	"errors"

	"golang.org/x/sys/unix"
)

// freeBytes is the space for an ordinary user on the file system of path.
func freeBytes(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// IsFull reports whether an error means that a disk or a quota is full.
func IsFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
