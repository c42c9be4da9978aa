// What the interpreter's processes use, and which of their limits this kernel keeps.

package python

import (
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
