// The interpreter's processes seen from outside: what they use, and that none runs between cells.
//
// What must stay true: nothing here relies on the reports of a process in the sandbox; the folders
// that are read were opened before the first cell.

package python

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

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
	for list := children(pid); len(list) > 0; list = children(pid) {
		pid = list[0]
	}
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it may have ended
	_, numbers, _ := strings.Cut(string(status), "\nNSpid:")
	numbers, _, _ = strings.Cut(numbers, "\n")
	list := strings.Fields(numbers)
	if len(list) < 2 || list[len(list)-1] == "1" { // bwrap, or its init
		return errors.New("open the folders of the sandbox: it is not made yet")
	}
	r.driverPID = list[len(list)-1]
	for _, path := range writableFolders {
		folder, err := os.Open(fmt.Sprintf("/proc/%d/root%s", pid, path))
		if err != nil {
			return fmt.Errorf("open the folders of the sandbox: %w", err)
		}
		r.folders = append(r.folders, folder)
	}
	var errs [4]error
	r.data, errs[0] = os.OpenRoot(fmt.Sprintf("/proc/%d/root/mnt/data", pid))
	r.processes, errs[1] = os.OpenRoot(fmt.Sprintf("/proc/%d/root/proc", pid))
	r.driver, errs[2] = os.Open(fmt.Sprintf("/proc/%d", pid))
	r.sockets, errs[3] = os.Open(fmt.Sprintf("/proc/%d/net/protocols", pid))
	return errors.Join(errs[:]...)
}

// socketMemory is the most memory that the buffers of the sandbox's sockets can take: no process's
// memory has them. A closed socket counts until what it sent is read. The filter keeps the default
// size of each, and the last message may be as large again.
func (r *interpreter) socketMemory() (sum int64) {
	if r.sockets == nil {
		return 0
	}
	size, _ := os.ReadFile("/proc/sys/net/core/wmem_default")
	most, _ := strconv.ParseInt(strings.TrimSpace(string(size)), 10, 64)
	text, _ := io.ReadAll(io.NewSectionReader(r.sockets, 0, 1<<20))
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 2 && strings.HasPrefix(f[0], "UNIX") {
			n, _ := strconv.ParseInt(f[2], 10, 64)
			sum += n * 2 * max(most, 208<<10)
		}
	}
	return sum
}

// fileLocks counts the locks that the sandbox's processes hold, up to one more than max.
func (r *interpreter) fileLocks(max int) (n int) {
	if r.processes == nil {
		return 0
	}
	if file, err := r.processes.Open("locks"); err == nil {
		defer file.Close()
		for s := bufio.NewScanner(file); n <= max && s.Scan(); n++ {
		}
	}
	return n
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

// pause stops the driver between cells and kills all other processes. It returns when two looks
// in a row have found nothing that runs: a process id can wrap around during one. An error means
// that something still runs.
func (r *interpreter) pause() error {
	end := time.Now().Add(settleTime)
	for idle := 0; r.driver != nil && idle < 2; {
		signalProcess(r.driver, unix.SIGSTOP)
		if idle++; !r.isIdle() {
			if idle = 0; time.Now().After(end) {
				return errors.New("it left processes that did not end with the cell")
			}
			time.Sleep(time.Millisecond)
		}
	}
	r.freeze("1")
	return nil
}

// resume lets the driver run the next cell.
func (r *interpreter) resume() {
	r.freeze("0")
	if r.driver != nil {
		signalProcess(r.driver, unix.SIGCONT)
	}
}

// isIdle looks at every process of the sandbox, and kills those that are not the driver or init.
func (r *interpreter) isIdle() bool {
	idle := true
	list, err := fs.ReadDir(r.processes.FS(), ".")
	if err != nil {
		return false
	}
	for _, process := range list {
		pid := process.Name()
		if _, err := strconv.Atoi(pid); err != nil || pid == "1" { // bwrap's init
			continue
		}
		states := r.states(pid)
		if pid == r.driverPID {
			states = strings.ReplaceAll(states, "T", "")
		} else if file, err := r.processes.Open(pid); err == nil {
			signalProcess(file, unix.SIGKILL)
			file.Close()
		}
		idle = idle && strings.Trim(states, "ZX") == "" // a zombie may have threads
	}
	return idle
}

// states has the letter of each thread's state; "?" for a process that is ending.
func (r *interpreter) states(pid string) (letters string) {
	threads, _ := fs.ReadDir(r.processes.FS(), pid+"/task")
	for _, thread := range threads {
		text, _ := r.processes.ReadFile(pid + "/task/" + thread.Name() + "/stat")
		if i := bytes.LastIndexByte(text, ')') + 2; i < len(text) {
			letters += string(text[i])
		} else {
			letters += "?"
		}
	}
	return cmp.Or(letters, "?")
}

// signalProcess sends a signal to the process whose folder in /proc is open. An error means that
// it has ended; its number may be another's by then.
func signalProcess(folder *os.File, signal unix.Signal) {
	_ = unix.PidfdSendSignal(int(folder.Fd()), signal, nil, 0)
}

// openFreezer opens the switch of the interpreter's cgroup, if that is not the server's. A frozen
// process runs after no signal but SIGKILL.
func (r *interpreter) openFreezer(root string) {
	server, _ := os.ReadFile("/proc/self/cgroup")
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", r.process.Process.Pid))
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok && !bytes.Contains(server, []byte(line)) {
			r.freezer, _ = os.OpenFile(filepath.Join(root, strings.TrimSpace(path),
				"cgroup.freeze"), os.O_WRONLY, 0) // without it the driver is stopped only
		}
	}
}

func (r *interpreter) freeze(state string) {
	if r.freezer != nil {
		_, _ = r.freezer.WriteAt([]byte(state), 0) // if it fails, the driver is stopped only
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
