//go:build amd64 || arm64

// The system calls that a cell may use: those of programs, compilers and numerical libraries.
//
// What must stay true: this is a list of allowed calls, so a call that a later kernel adds is
// refused; none of them makes a namespace, reaches another process, loads code into the kernel,
// takes memory that the sandbox's limits cannot see, or has the kernel wake a stopped process.

package python

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// allowedCalls system calls are allowed with any arguments. legacy calls exist on older
// architectures only.
var allowedCalls = []uint32{
	// files
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64,
	unix.SYS_PWRITE64, unix.SYS_PREADV, unix.SYS_PWRITEV, unix.SYS_PREADV2, unix.SYS_PWRITEV2,
	unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_CLOSE, unix.SYS_CLOSE_RANGE, unix.SYS_LSEEK,
	unix.SYS_NEWFSTATAT, unix.SYS_FSTAT, unix.SYS_STATX, unix.SYS_STATFS, unix.SYS_FSTATFS,
	unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_GETDENTS64, unix.SYS_GETCWD,
	unix.SYS_CHDIR, unix.SYS_FCHDIR, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT,
	unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_READLINKAT,
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT,
	unix.SYS_UTIMENSAT, unix.SYS_UMASK, unix.SYS_TRUNCATE, unix.SYS_FTRUNCATE,
	unix.SYS_FALLOCATE, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNC_FILE_RANGE,
	unix.SYS_FADVISE64, unix.SYS_READAHEAD, unix.SYS_COPY_FILE_RANGE, unix.SYS_SENDFILE,
	unix.SYS_SPLICE, unix.SYS_TEE, unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_PIPE2,
	unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_FGETXATTR, unix.SYS_LISTXATTR,
	unix.SYS_LLISTXATTR, unix.SYS_FLISTXATTR, unix.SYS_LANDLOCK_CREATE_RULESET,
	unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF,
	// waiting
	unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL,
	unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_EVENTFD2, unix.SYS_SIGNALFD4,
	unix.SYS_TIMERFD_CREATE, unix.SYS_TIMERFD_SETTIME, unix.SYS_TIMERFD_GETTIME,
	unix.SYS_FUTEX, unix.SYS_FUTEX_WAITV, unix.SYS_SET_ROBUST_LIST, unix.SYS_GET_ROBUST_LIST,
	unix.SYS_RSEQ, unix.SYS_MEMBARRIER, unix.SYS_RESTART_SYSCALL,
	// memory
	unix.SYS_MPROTECT, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MSYNC, unix.SYS_MINCORE,
	unix.SYS_MADVISE, unix.SYS_BRK, unix.SYS_MLOCK, unix.SYS_MLOCK2, unix.SYS_MUNLOCK,
	unix.SYS_MLOCKALL, unix.SYS_MUNLOCKALL,
	// processes and signals
	unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_WAIT4,
	unix.SYS_WAITID, unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGACTION,
	unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGPENDING,
	unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO,
	unix.SYS_RT_SIGSUSPEND, unix.SYS_SIGALTSTACK, unix.SYS_PIDFD_OPEN,
	unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_SET_TID_ADDRESS, unix.SYS_PRCTL,
	unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_GETTID, unix.SYS_GETPGID, unix.SYS_SETPGID,
	unix.SYS_GETSID, unix.SYS_SETSID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID,
	unix.SYS_GETEGID, unix.SYS_GETRESUID, unix.SYS_GETRESGID, unix.SYS_GETGROUPS,
	unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETREUID, unix.SYS_SETREGID, unix.SYS_SETRESUID,
	unix.SYS_SETRESGID, unix.SYS_SETFSUID, unix.SYS_SETFSGID, unix.SYS_SETGROUPS,
	unix.SYS_CAPGET, unix.SYS_CAPSET, unix.SYS_GETPRIORITY, unix.SYS_SETPRIORITY,
	unix.SYS_IOPRIO_GET, unix.SYS_IOPRIO_SET, unix.SYS_GETRLIMIT, unix.SYS_SETRLIMIT,
	unix.SYS_PRLIMIT64, unix.SYS_GETRUSAGE, unix.SYS_TIMES, unix.SYS_SYSINFO, unix.SYS_UNAME,
	unix.SYS_GETCPU, unix.SYS_GETRANDOM, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY,
	unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_GETPARAM, unix.SYS_SCHED_SETPARAM,
	unix.SYS_SCHED_GETSCHEDULER, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_GETATTR,
	unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_GET_PRIORITY_MAX, unix.SYS_SCHED_GET_PRIORITY_MIN,
	unix.SYS_SCHED_RR_GET_INTERVAL,
	// time
	unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_CLOCK_NANOSLEEP,
	unix.SYS_NANOSLEEP, unix.SYS_GETTIMEOFDAY, unix.SYS_GETITIMER, unix.SYS_SETITIMER,
	// Unix sockets
	unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_CONNECT, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
	unix.SYS_SENDTO, unix.SYS_RECVFROM, unix.SYS_SENDMSG, unix.SYS_RECVMSG, unix.SYS_SENDMMSG,
	unix.SYS_RECVMMSG, unix.SYS_SHUTDOWN, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME,
	unix.SYS_GETSOCKOPT,
}

// check tests the lower half of an argument: its bits under mask must equal one of values, or with
// none set, must not.
type check struct {
	argument, mask uint32
	values         []uint32
	negate         bool
}

const (
	newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET |
		unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	allBits = ^uint32(0)
	// asm-generic/ioctls.h and sockios.h
	fioAsync, fioSetOwn, siocSetPgrp = 0x5452, 0x8901, 0x8902
)

// socketChecks allow what asyncio and multiprocessing need: the runner can count Unix sockets.
var socketChecks = []check{
	{argument: 0, mask: allBits, values: []uint32{unix.AF_UNIX}},
	{argument: 1, mask: 0xf, values: []uint32{unix.SOCK_STREAM, unix.SOCK_DGRAM}},
	{argument: 2, mask: allBits, values: []uint32{0}}}

var noDevice = []uint32{unix.S_IFCHR, unix.S_IFBLK}

// checkedCalls system calls are allowed if all checks pass.
var checkedCalls = map[uint32][]check{
	unix.SYS_CLONE:      {{argument: 0, mask: newNamespaces, values: []uint32{0}}},
	unix.SYS_SOCKET:     socketChecks,
	unix.SYS_SOCKETPAIR: socketChecks,
	unix.SYS_SETSOCKOPT: {{argument: 2, mask: allBits, values: []uint32{unix.SO_SNDBUF,
		unix.SO_RCVBUF, unix.SO_SNDBUFFORCE, unix.SO_RCVBUFFORCE}, negate: true}},
	// a larger pipe; a signal of the cell's choice from a file; locks of no process
	unix.SYS_FCNTL: {{argument: 1, mask: allBits, values: []uint32{unix.F_SETPIPE_SZ, unix.F_SETSIG,
		unix.F_SETOWN, unix.F_SETOWN_EX, unix.F_NOTIFY, unix.F_SETLEASE, unix.F_OFD_SETLK,
		unix.F_OFD_SETLKW}, negate: true}},
	// shared memory without a file is not counted for any process once it is unmapped
	unix.SYS_MMAP: {{argument: 3, mask: unix.MAP_SHARED | unix.MAP_ANONYMOUS,
		values: []uint32{unix.MAP_SHARED | unix.MAP_ANONYMOUS}, negate: true}},
	unix.SYS_IOCTL: {{argument: 1, mask: allBits, values: []uint32{unix.TIOCSTI, unix.TIOCLINUX,
		fioAsync, fioSetOwn, siocSetPgrp}, negate: true}},
	unix.SYS_PERSONALITY: {{argument: 0, mask: allBits, values: []uint32{0, allBits}}},
	unix.SYS_MKNODAT:     {{argument: 2, mask: unix.S_IFMT, values: noDevice, negate: true}},
}

// unknownCalls system calls fail as on a kernel without them, so that a C library uses another.
var unknownCalls = []uint32{unix.SYS_CLONE3}

func filter() (program []unix.SockFilter) {
	const (
		numberOffset, archOffset, argumentOffset = 0, 4, 16 // in struct seccomp_data
		load                                     = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal                                    = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		and                                      = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		allow                                    = 0x7fff0000
		fail                                     = 0x00050000
	)
	add := func(code uint16, k uint32, jump ...uint8) {
		one := unix.SockFilter{Code: code, K: k}
		if len(jump) == 2 {
			one.Jt, one.Jf = jump[0], jump[1]
		}
		program = append(program, one)
	}
	answer := func(k uint32) { add(unix.BPF_RET|unix.BPF_K, k) }
	add(load, archOffset)
	add(equal, auditArch, 1, 0)
	answer(fail | uint32(unix.EPERM))
	add(load, numberOffset)
	for _, call := range unknownCalls {
		add(equal, call, 0, 1)
		answer(fail | uint32(unix.ENOSYS))
	}
	for _, list := range [][]uint32{allowedCalls, legacy} {
		for _, call := range list {
			add(equal, call, 0, 1)
			answer(allow)
		}
	}
	for _, list := range []map[uint32][]check{checkedCalls, legacyChecked} {
		for call, checks := range list {
			start := len(program)
			add(equal, call, 0, 0)
			for _, c := range checks {
				add(load, argumentOffset+8*c.argument)
				add(and, c.mask)
				for i, value := range c.values {
					add(equal, value, uint8(len(c.values)-i), 0) // skips the refusal below
				}
				if c.negate {
					add(unix.BPF_JMP|unix.BPF_JA, 1) // no value matched
				}
				answer(fail | uint32(unix.EPERM))
			}
			answer(allow)
			program[start].Jf = uint8(len(program) - start - 1)
		}
	}
	answer(fail | uint32(unix.EPERM))
	return program
}

func seccomp() (*os.File, error) {
	var text bytes.Buffer
	err := binary.Write(&text, binary.NativeEndian, filter())
	fd := -1
	if err == nil {
		fd, err = unix.MemfdCreate("filter", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, fmt.Errorf("pass the sandbox its filter: %w", err)
	}
	file := os.NewFile(uintptr(fd), "filter")
	if _, err = file.Write(text.Bytes()); err == nil {
		_, err = file.Seek(0, 0)
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("pass the sandbox its filter: %w", err)
	}
	return file, nil
}
