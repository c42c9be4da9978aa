// Resource use of the interpreter's processes, and which of their limits this kernel enforces.

package python

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// endWithParent makes the interpreter end when this process does, even by a crash.
func endWithParent(c *exec.Cmd) { c.SysProcAttr.Pdeathsig = syscall.SIGKILL }

// usage returns the private memory of a process and its descendants, swapped or not, in bytes, and
// their number.
func usage(pid int) (memory int64, processes int) {
	if pid <= 0 {
		return 0, 0
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it may have ended
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		if name == "RssAnon" || name == "VmSwap" || name == "HugetlbPages" {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			memory += n << 10
		}
	}
	processes = 1
	for _, child := range children(pid) {
		m, n := usage(child)
		memory, processes = memory+m, processes+n
	}
	return memory, processes
}

// children lists the children of all threads; a child belongs to the thread that made it.
func children(pid int) (list []int) {
	folder := fmt.Sprintf("/proc/%d/task/", pid)
	threads, _ := os.ReadDir(folder)
	for _, thread := range threads {
		text, _ := os.ReadFile(folder + thread.Name() + "/children")
		for child := range strings.FieldsSeq(string(text)) {
			id, _ := strconv.Atoi(child)
			list = append(list, id)
		}
	}
	return list
}

// openFolders finds the driver among the processes of its sandbox, before its first cell, and opens
// the in-memory folders there.
func (r *interpreter) openFolders() error {
	pid := r.process.Process.Pid
	for r.baseProcesses = 1; ; r.baseProcesses++ {
		descendants := children(pid)
		if len(descendants) == 0 {
			break
		}
		pid = descendants[0]
	}
	if r.baseProcesses < 3 { // bwrap, its init, and the program in the sandbox
		return errors.New("open the folders of the sandbox: it is not made yet")
	}
	r.driver = pid
	for _, path := range writableFolders {
		folder, err := os.Open(fmt.Sprintf("/proc/%d/root%s", pid, path))
		if err != nil {
			return fmt.Errorf("open the folders of the sandbox: %w", err)
		}
		r.folders = append(r.folders, folder)
	}
	root, err := os.OpenRoot(fmt.Sprintf("/proc/%d/root/mnt/data", pid))
	r.data = root
	return err
}

// folderMemory is the memory that the sandbox's folders take, including names and attributes.
func (r *interpreter) folderMemory() (sum int64) {
	const inode = 1 << 10
	for _, folder := range r.folders {
		var s unix.Statfs_t
		if unix.Fstatfs(int(folder.Fd()), &s) == nil {
			sum += int64(s.Blocks-s.Bfree)*s.Bsize + int64(s.Files-s.Ffree)*inode
		}
	}
	return sum
}

// setPaused pauses the driver's threads between cells, or resumes them.
func (r *interpreter) setPaused(stop bool) {
	if r.driver > 0 {
		signal := syscall.SIGCONT
		if stop {
			signal = syscall.SIGSTOP
		}
		_ = syscall.Kill(r.driver, signal) // its frames report if it has ended
	}
}

// countsByNamespace tells whether RLIMIT_NPROC counts the processes of a user namespace, as since
// Linux 5.14, instead of all of the user's.
func countsByNamespace() bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	var major, minor int
	_, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor)
	return err == nil && (major > 5 || major == 5 && minor >= 14)
}
