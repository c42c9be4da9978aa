//go:build unix

package store

// flock(2), which filelock, and so huggingface_hub, uses on Unix.

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// noFollow refuses links, and does not wait for the other end of a pipe.
const noFollow = unix.O_NOFOLLOW | unix.O_NONBLOCK

// lockFile locks f without waiting; ErrLocked if another process holds it.
func lockFile(f *os.File, exclusive bool) error {
	how := unix.LOCK_SH
	if exclusive {
		how = unix.LOCK_EX
	}
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrLocked
		}
		return err
	}
}
