// The system calls that no cell needs: they reach other processes, the kernel's configuration, or
// parts of it that often had holes.

package python

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// denied system calls fail with EPERM.
var denied = []uint32{unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
	unix.SYS_KCMP, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FSOPEN,
	unix.SYS_MOVE_MOUNT,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE,
	unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_SWAPON, unix.SYS_REBOOT}

var auditArch = map[string]uint32{"amd64": 0xc000003e, "arm64": 0xc00000b7} // linux/audit.h

// seccomp is a pipe with the filter program, to be read by bwrap; nil on architectures without one,
// where the namespaces must suffice.
func seccomp() (*os.File, error) {
	arch, known := auditArch[runtime.GOARCH]
	if !known {
		return nil, nil
	}
	const (
		numberOffset, archOffset = 0, 4 // in struct seccomp_data
		x32                      = 0x40000000
		load                     = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal                    = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atLeast                  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		answer                   = unix.BPF_RET | unix.BPF_K
		allow                    = 0x7fff0000
		refuse                   = 0x00050000 | uint32(unix.EPERM)
	)
	toEnd := func(from int) uint8 { return uint8(len(denied) - from) } // of the list, to refuse
	program := []unix.SockFilter{
		{Code: load, K: archOffset},
		{Code: equal, K: arch, Jt: 1},
		{Code: answer, K: refuse},
		{Code: load, K: numberOffset},
		{Code: atLeast, K: x32, Jt: toEnd(-1)},
	}
	for i, call := range denied {
		program = append(program, unix.SockFilter{Code: equal, K: call, Jt: toEnd(i)})
	}
	program = append(program, unix.SockFilter{Code: answer, K: allow},
		unix.SockFilter{Code: answer, K: refuse})
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pass the sandbox its filter: %w", err)
	}
	defer write.Close()
	// it fits into the pipe, so nobody need read yet
	if err := binary.Write(write, binary.NativeEndian, program); err != nil {
		read.Close()
		return nil, fmt.Errorf("pass the sandbox its filter: %w", err)
	}
	return read, nil
}
