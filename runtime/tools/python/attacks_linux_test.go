package python

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Every known way out is tried in bubblewrap as an ordinary user, and held.
//
// SECURITY.md: files: a mount namespace with the system's and the interpreter's folders,
// read-only
// SECURITY.md: writing: `/mnt/data`, `/tmp` and `/dev/shm`; Landlock, where the kernel has it,
// forbids the rest again
// SECURITY.md: network: a network namespace of its own; Unix sockets only
// SECURITY.md: processes: a process namespace of its own; ptrace and the like are refused
// SECURITY.md: rights: no capabilities, no setuid programs, no further namespaces
func TestAttacks(t *testing.T) {
	defer goleak.VerifyNone(t)
	hosttest.Program(t, "bwrap")
	if os.Getuid() == 0 {
		asOrdinaryUser(t)
		return
	}
	tried := 0
	if err := AttackSandbox(t.Context(), "bwrap", func(v Verdict) {
		if tried++; !v.Blocked {
			t.Errorf("%s: %s", v.Attack, v.Detail)
		}
	}); err != nil {
		t.Error(err)
	}
	if n := strings.Count(attacks, "\n@attack(") + strings.Count(attacks, "\n@bomb("); tried != n {
		t.Errorf("%d attacks of %d", tried, n)
	}
}

// asOrdinaryUser runs the test that calls it again, without root's rights.
func asOrdinaryUser(t *testing.T) {
	t.Helper()
	const nobody = 65534
	folder, err := os.MkdirTemp("", "ordinary-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	self, program := []byte(nil), filepath.Join(folder, "test")
	for _, do := range []func() error{
		func() (err error) { self, err = os.ReadFile(os.Args[0]); return err },
		func() error { return os.WriteFile(program, self, 0o755) },
		func() error { return os.Chown(folder, nobody, nobody) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(program, "-test.v", "-test.run", "^"+t.Name()+"$")
	c.Dir, c.Env = folder, []string{"HOME=" + folder, "PATH=/usr/bin:/bin", "CI=1"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
}

// Without a sandbox the cells would do what they try.
func TestAttacksRunInSandboxesOnly(t *testing.T) {
	for _, name := range []string{"unsafe", ""} {
		if err := AttackSandbox(t.Context(), name, func(v Verdict) { t.Error(v) }); err == nil {
			t.Errorf("%q: they run", name)
		}
	}
}

// A bomb reports if it exceeds its limit: this sandbox allows more.
func TestBombsAreSeen(t *testing.T) {
	planted, remove, err := plant()
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	planted.Memory, planted.Disk, planted.Wait = 32<<20, 32<<20, 0
	for _, name := range []string{"memory: the heaps of many processes", "disk",
		"memory: file systems in memory", "memory: unlinked files"} {
		tool := open(t, Options{Time: 2 * time.Minute})
		if v := tool.attempt(t.Context(), planted, name, true); v.Blocked ||
			!strings.Contains(v.Detail, "MB of 32") {
			t.Errorf("%+v", v)
		}
		if err := tool.Close(); err != nil {
			t.Error(err)
		}
	}
}
