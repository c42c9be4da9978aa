// What the interpreter's processes use, and which of their limits this kernel keeps.

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

// endWithParent ends the interpreter with this process, however that ends.
func endWithParent(c *exec.Cmd) { c.SysProcAttr.Pdeathsig = syscall.SIGKILL }

// used is the memory that a process and all below it have to themselves, swapped or not, in bytes,
// and their number.
func used(pid int) (memory int64, processes int) {
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
		m, n := used(child)
		memory, processes = memory+m, processes+n
	}
	return memory, processes
}

// children are those of a process; a child belongs to the thread that has made it.
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

// enter finds the driver among the processes of its sandbox, before it has a cell, and opens the
// folders there that are in memory.
func (r *interpreter) enter() error {
	pid := r.process.Process.Pid
	for r.alone = 1; ; r.alone++ {
		below := children(pid)
		if len(below) == 0 {
			break
		}
		pid = below[0]
	}
	if r.alone < 3 { // bwrap, its init, and the program in the sandbox
		return errors.New("open the folders of the sandbox: it is not made yet")
	}
	r.driver = pid
	for _, path := range written {
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

// inFolders is the memory that the sandbox's folders take, names and attributes included.
func (r *interpreter) inFolders() (sum int64) {
	const inode = 1 << 10
	for _, folder := range r.folders {
		var s unix.Statfs_t
		if unix.Fstatfs(int(folder.Fd()), &s) == nil {
			sum += int64(s.Blocks-s.Bfree)*s.Bsize + int64(s.Files-s.Ffree)*inode
		}
	}
	return sum
}

// hold stops the driver's threads between cells, or lets them run.
func (r *interpreter) hold(stop bool) {
	if r.driver > 0 {
		signal := syscall.SIGCONT
		if stop {
			signal = syscall.SIGSTOP
		}
		_ = syscall.Kill(r.driver, signal) // it may have ended, which its frames tell
	}
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
