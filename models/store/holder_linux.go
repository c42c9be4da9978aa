// The holder of a lock, from the kernel's list of locks.

package store

import (
	"bufio"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// Holder names the process that holds the lock at path, such as "process 123 of ann"; "" if
// unknown.
func Holder(path string) string {
	file, err := os.Stat(path)
	if err != nil {
		return ""
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer locks.Close()
	inode := ":" + strconv.FormatUint(file.Sys().(*syscall.Stat_t).Ino, 10)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 123 fd:00:456 0 EOF
		f := strings.Fields(lines.Text())
		if len(f) < 6 || f[1] != "FLOCK" || !strings.HasSuffix(f[5], inode) {
			continue
		}
		process := "process " + f[4]
		if info, err := os.Stat("/proc/" + f[4]); err == nil {
			id := fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid)
			if u, err := user.LookupId(id); err == nil {
				return process + " of " + u.Username
			}
			return process + " of user " + id
		}
		return process
	}
	return ""
}
