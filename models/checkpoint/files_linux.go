package checkpoint

import (
	"os"
	"syscall"
)

// describe adds when a file was changed, and which file it is.
func describe(s *FileState, info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok {
		s.Changed, s.Device, s.Inode = stat.Ctim.Nano(), uint64(stat.Dev), stat.Ino
	}
	return ok
}
