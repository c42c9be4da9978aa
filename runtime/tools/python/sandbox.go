// The sandboxes: how the interpreter is run, and killed with all of its processes.

package python

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ossrun/ossrun/runtime/process"
)

const (
	maxFile   = 256 << 20 // bytes of one file that a cell writes, of /tmp and of /dev/shm
	maxFolder = 1 << 30   // bytes of /mnt/data
	maxLocks  = 10_000    // of files, in the kernel's memory
)

// writableFolders are the folders that a cell can write to.
var writableFolders = []string{"/mnt/data", "/tmp", "/dev/shm"}

// sandbox is one way to run the interpreter.
type sandbox struct {
	name    string
	program string // its path
	host    bool   // its processes are this system's and can be counted
	// for bwrap
	python   layout
	noUserns bool     // it can forbid further user namespaces
	scope    []string // the command that starts it in its own cgroup; nil: none works
}

// Names are the sandboxes in order of preference; "unsafe" is no sandbox.
var Names = []string{"bwrap", "podman", "docker", "unsafe"}

// workingSandboxes caches the sandboxes that worked, by name and environment.
var workingSandboxes sync.Map

// findSandbox returns the named sandbox, or the first that works except "unsafe". A sandbox that
// worked is not tried again for each conversation.
func findSandbox(name string) (sandbox, error) {
	key := [3]string{name, os.Getenv("PATH"), os.Getenv("HOME")}
	if cached, ok := workingSandboxes.Load(key); ok {
		return cached.(sandbox), nil
	}
	b, err := lookForSandbox(name)
	if err == nil {
		workingSandboxes.Store(key, b)
	}
	return b, err
}

func lookForSandbox(name string) (sandbox, error) {
	if name != "" && !slices.Contains(Names, name) {
		return sandbox{}, fmt.Errorf("unknown sandbox %q: use %s", name, strings.Join(Names, ", "))
	}
	var unusable error // of the first that is installed
	for _, kind := range Names {
		if name != kind && (name != "" || kind == "unsafe" ||
			kind == "bwrap" && runtime.GOOS != "linux") {
			continue
		}
		program := kind
		if kind == "unsafe" {
			program = "python3"
		}
		path, err := exec.LookPath(program)
		b := sandbox{name: kind, program: path, host: kind == "bwrap" || kind == "unsafe"}
		if err != nil {
			err = fmt.Errorf("%s is not installed", program)
		} else {
			err = b.check()
		}
		if err == nil {
			return b, nil
		}
		if err = fmt.Errorf("python cannot run in %s: %w", kind, err); name != "" {
			return sandbox{}, err
		}
		if unusable == nil && path != "" {
			unusable = err
		}
	}
	if unusable != nil {
		return sandbox{}, unusable
	}
	install := "install podman or docker"
	if runtime.GOOS == "linux" {
		install = "install bubblewrap (apt install bubblewrap) or podman"
	}
	return sandbox{}, fmt.Errorf("the python tool needs a sandbox and finds none: %s", install)
}

// check tests the sandbox: some systems forbid bwrap's namespaces, and containers need their
// daemon. For bwrap it also detects its features.
func (b *sandbox) check() (err error) {
	switch b.name {
	case "unsafe":
		return nil
	case "bwrap":
		if err = b.tryBwrap(); err == nil {
			b.python, err = findPython()
		}
		return err
	}
	return probe(b.program, "ps", "--quiet") // it needs the daemon, or podman's storage
}

// tryBwrap tests bwrap, and whether it can forbid further user namespaces, as since 0.8.
func (b *sandbox) tryBwrap() error {
	b.scope = findScope()
	args := []string{"--ro-bind", "/", "/", "--unshare-all", "--unshare-user"}
	b.noUserns = probe(b.program, slices.Concat(args,
		[]string{"--disable-userns", "true"})...) == nil
	if b.noUserns {
		return nil
	}
	return probe(b.program, append(args, "true")...)
}

// probe runs a program to its end; the error is its first line of output.
func probe(program string, arguments ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, program, arguments...)
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return errors.New("it does not answer")
	}
	why, _, _ := strings.Cut(string(bytes.TrimSpace(out)), "\n")
	return errors.New(cmp.Or(why, err.Error()))
}

// processes is the limit of a sandbox. Kernel memory of processes, such as full sockets, is counted
// only by a cgroup, so without one the limit is lower.
func (b sandbox) processes() int {
	if b.name == "bwrap" && b.scope == nil {
		return 64
	}
	return 128
}

// limits are set by the driver for itself and its children before the first cell.
func (b sandbox) limits(o Options) map[string]int64 {
	l := map[string]int64{"RLIMIT_AS": o.Memory, "RLIMIT_FSIZE": maxFile, "RLIMIT_CORE": 0,
		"RLIMIT_NOFILE": 2 * int64(b.processes())}
	if b.name == "bwrap" && countsByNamespace() {
		l["RLIMIT_NPROC"] = int64(b.processes())
	}
	if runtime.GOOS == "darwin" {
		delete(l, "RLIMIT_AS") // macOS refuses it
	}
	return l
}

// command returns the driver's command in the sandbox, and a function that kills it.
func (b sandbox) command(o Options) (*exec.Cmd, func(), error) {
	settings, _ := json.Marshal(map[string]any{"limits": b.limits(o), "sites": b.python.sites,
		"restrict": b.name == "bwrap"})
	arguments := []string{"-u", "-I", "-c", driver, string(settings)}
	var c *exec.Cmd
	stop := func() {
		if c.Process != nil {
			_ = c.Process.Kill() // an error means that it has ended
		}
	}
	switch b.name {
	case "bwrap":
		var err error
		c, err = b.bwrap(o, b.python.mounts, append([]string{b.python.program}, arguments...))
		if err != nil {
			return nil, nil, err
		}
	case "unsafe":
		c = exec.Command(b.program, arguments...)
		c.Dir = o.folder
		c.Env = append(os.Environ(), "MPLBACKEND=Agg")
	default:
		var id [8]byte
		_, _ = rand.Read(id[:])
		name := "ossrun-python-" + hex.EncodeToString(id[:])
		c = exec.Command(b.program, slices.Concat(containerArguments(name, o), []string{"python3"},
			arguments)...)
		kill := stop
		stop = func() {
			_ = exec.Command(b.program, "rm", "--force", name).Run() // an error means it is gone
			kill()
		}
	}
	process.OwnGroup(c)
	endWithParent(c)
	c.WaitDelay = 5 * time.Second
	return c, stop, nil
}

// bwrap returns a program in bubblewrap. The caller closes its ExtraFiles after the start.
func (b sandbox) bwrap(o Options, mounts, program []string) (*exec.Cmd, error) {
	args, err := b.bwrapArguments(mounts)
	if err != nil {
		return nil, err
	}
	filter, err := seccomp()
	if err != nil {
		return nil, err
	}
	line := slices.Concat(b.inScope(o), []string{b.program}, args,
		[]string{"--seccomp", "3", "--"}, program)
	c := exec.Command(line[0], line[1:]...)
	c.Env = append(scopeEnvironment(), environment...)
	c.ExtraFiles = []*os.File{filter}
	return c, nil
}

// bwrapArguments give a program the system's programs and libraries, the files in shown, its own
// folders, and nothing else.
func (b sandbox) bwrapArguments(mounts []string) ([]string, error) {
	a := []string{"--unshare-all", "--unshare-user", "--die-with-parent", "--new-session",
		"--cap-drop", "ALL", "--hostname", "sandbox", "--proc", "/proc",
		"--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/random", "/dev/random",
		"--dev-bind", "/dev/urandom", "/dev/urandom", "--symlink", "/proc/self/fd", "/dev/fd",
		"--symlink", "/proc/self/fd/0", "/dev/stdin", "--symlink", "/proc/self/fd/1",
		"/dev/stdout", "--symlink", "/proc/self/fd/2", "/dev/stderr"}
	if os.Getuid() == 0 { // else a cell's root could change the kernel's settings
		for _, path := range []string{"/proc/sys", "/proc/fs", "/proc/irq", "/proc/bus"} {
			a = append(a, "--ro-bind-try", path, path)
		}
	}
	if b.noUserns {
		a = append(a, "--disable-userns")
	}
	for _, path := range []string{"/proc/keys", "/proc/key-users", "/proc/kcore",
		"/proc/timer_list", "/proc/sched_debug", "/proc/sysrq-trigger"} {
		if _, err := os.Lstat(path); err == nil { // no cell may read it
			a = append(a, "--ro-bind", "/dev/null", path)
		}
	}
	for _, path := range systemFolders {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			a = append(a, "--symlink", to, path)
		default:
			a = append(a, "--ro-bind", path, path)
		}
	}
	for _, path := range writableFolders { // in memory, so that a killed run leaves nothing
		size := maxFile
		if path == "/mnt/data" {
			size = maxFolder
		}
		a = append(a, "--size", fmt.Sprint(size), "--tmpfs", path)
	}
	for _, path := range mounts { // they may be in /tmp
		a = append(a, "--ro-bind", path, path)
	}
	for _, path := range hiddenFolders() {
		a = append(a, "--size", "4096", "--tmpfs", path, "--remount-ro", path)
	}
	a = append(a, "--remount-ro", "/", "--chdir", "/mnt/data")
	for _, pair := range scopeEnvironment() {
		name, _, _ := strings.Cut(pair, "=")
		a = append(a, "--unsetenv", name)
	}
	return a, nil
}

// environment of a cell, instead of the user's.
var environment = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8",
	"MPLBACKEND=Agg", "OPENBLAS_NUM_THREADS=2"}

func containerArguments(name string, o Options) []string {
	a := []string{"run", "--rm", "--interactive", "--name", name, "--network", "none",
		"--memory", fmt.Sprint(o.Memory), "--pids-limit", "128", "--read-only",
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--tmpfs",
		fmt.Sprintf("/tmp:size=%d", maxFile), "--volume", o.folder + ":/mnt/data", "--workdir",
		"/mnt/data"}
	for _, pair := range environment {
		a = append(a, "--env", pair)
	}
	return append(a, o.Image)
}

const (
	// pollInterval is the interval of checks without a cgroup; minPollInterval is the shortest,
	// used close to the limit.
	pollInterval, minPollInterval = 100 * time.Millisecond, 5 * time.Millisecond
	maxAllocRate                  = 8 << 30 // most bytes a second that processes can allocate
)

// watch kills an interpreter whose processes or files together exceed their limit, until it is
// closed. Containers limit memory themselves.
func (b sandbox) watch(r *interpreter, o Options) {
	next := time.NewTimer(pollInterval)
	defer next.Stop()
	defer sharedPool.remove(r)
	for n := 0; ; n++ {
		select {
		case <-r.watch:
			return
		case <-next.C:
		}
		wait, why := pollInterval, error(nil)
		if b.host {
			memory, processes := usage(r.process.Process.Pid)
			memory += r.folderMemory() + r.socketMemory()
			if why = sharedPool.recordUse(r, memory); memory > o.Memory {
				why = fmt.Errorf("its processes, files and sockets used more than %.1f GB of "+
					"memory", float64(o.Memory)/1e9)
			} else if processes > b.processes() {
				why = fmt.Errorf("it had more than %d processes", b.processes())
			}
			wait = min(pollInterval, max(minPollInterval,
				time.Duration(o.Memory-memory)*time.Second/maxAllocRate))
		}
		if n%10 == 0 && r.fileLocks(maxLocks) > maxLocks {
			why = fmt.Errorf("it had more than %d locks of files", maxLocks)
		}
		if b.name != "bwrap" && n%10 == 0 && folderBytes(o.folder) > maxFolder {
			why = fmt.Errorf("its files have more than %.1f GB", maxFolder/1e9)
		}
		if why != nil {
			r.endAtLimit(why)
		}
		next.Reset(wait)
	}
}

func (r *interpreter) endAtLimit(why error) {
	select {
	case r.limit <- why:
	default: // another limit was exceeded first
	}
	r.stop()
}

func folderBytes(folder string) (sum int64) {
	_ = filepath.WalkDir(folder, func(_ string, e os.DirEntry, err error) error {
		if err != nil {
			return nil // it has just been deleted
		}
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
