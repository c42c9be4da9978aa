package python

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Every known way out is tried in bubblewrap as an ordinary user, and held.
func TestAttacks(t *testing.T) {
	defer goleak.VerifyNone(t)
	hosttest.Program(t, "bwrap")
	if os.Getuid() == 0 {
		asOrdinaryUser(t)
		return
	}
	tried := 0
	if err := AttackSandbox(t.Context(), "bwrap", func(v Verdict) {
		if tried++; !v.Held {
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
