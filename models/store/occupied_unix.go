//go:build unix

package store

import (
	"io/fs"
	"syscall"
)

// occupied is the disk space of a file, which for an unfinished download is less than its length.
func occupied(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return min(int64(s.Blocks)*512, info.Size())
	}
	return info.Size()
}
