// What the interpreter's processes use, which of their limits this kernel keeps, and the system
// calls that no cell needs: they reach other processes, the kernel's configuration, or parts of it
// that often had holes.

package python

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// endWithParent ends the interpreter with this process, however that ends.
func endWithParent(c *exec.Cmd) { c.SysProcAttr.Pdeathsig = syscall.SIGKILL }

// used is the resident memory, in bytes, and the number of a process and all below it.
func used(pid int) (memory int64, processes int) {
	if processes = 1; pid <= 0 {
		return 0, 0
	}
	folder := fmt.Sprintf("/proc/%d/", pid)
	if text, err := os.ReadFile(folder + "statm"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			pages, _ := strconv.ParseInt(fields[1], 10, 64)
			memory = pages * int64(os.Getpagesize())
		}
	}
	// a child belongs to the thread that has made it
	threads, _ := os.ReadDir(folder + "task")
	for _, thread := range threads {
		children, _ := os.ReadFile(folder + "task/" + thread.Name() + "/children")
		for child := range strings.FieldsSeq(string(children)) {
			id, _ := strconv.Atoi(child)
			m, n := used(id)
			memory, processes = memory+m, processes+n
		}
	}
	return memory, processes
}

// countsByNamespace tells whether RLIMIT_NPROC counts the processes of a user namespace, as it does
// since Linux 5.14, and not all of the user's.
func countsByNamespace() bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	var major, minor int
	_, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor)
	return err == nil && (major > 5 || major == 5 && minor >= 14)
}

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
