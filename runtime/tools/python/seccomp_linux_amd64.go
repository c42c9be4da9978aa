// Old system calls that only this architecture has, in addition to the common list.

package python

import "golang.org/x/sys/unix"

const auditArch = 0xc000003e // linux/audit.h

var legacy = []uint32{unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_STAT, unix.SYS_LSTAT,
	unix.SYS_ACCESS, unix.SYS_READLINK, unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_RENAME,
	unix.SYS_LINK, unix.SYS_UNLINK, unix.SYS_SYMLINK, unix.SYS_CHMOD, unix.SYS_CHOWN,
	unix.SYS_LCHOWN, unix.SYS_GETDENTS, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
	unix.SYS_DUP2, unix.SYS_PIPE, unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_EPOLL_CREATE,
	unix.SYS_EPOLL_WAIT, unix.SYS_EVENTFD, unix.SYS_SIGNALFD, unix.SYS_FORK, unix.SYS_VFORK,
	unix.SYS_ALARM, unix.SYS_PAUSE, unix.SYS_TIME, unix.SYS_GETPGRP, unix.SYS_ARCH_PRCTL}

var legacyChecked = map[uint32][]check{
	unix.SYS_MKNOD: {{argument: 1, mask: unix.S_IFMT, values: noDevice, negate: true}}}
