//go:build unix

// The owner of a file.

package process

import (
	"os"
	"syscall"
)

// Owns tells that a file, not what a link leads to, is of this process's user.
func Owns(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
