// A separate cgroup for each interpreter, if the system's manager makes one. It also counts the
// kernel's buffers, which no process's figures include, and refuses before the limit.
//
// What must stay true: a scope is used only if a trial showed its limit to be set; without one the
// sandbox works, with stricter limits.

package python

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// findScope returns the command that starts a program in a scope; nil: none works here.
var findScope = sync.OnceValue(func() []string {
	path, err := exec.LookPath("systemd-run")
	if err != nil || runtime.GOOS != "linux" {
		return nil
	}
	scope := []string{path, "--scope", "--quiet", "--collect"}
	if os.Getuid() != 0 {
		scope = append(scope, "--user")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	const trial = 123 << 20
	c := exec.CommandContext(ctx, path, append(scopeLimits(scope, trial, 99)[1:], "sh", "-c",
		`cat "/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)/memory.max"`)...)
	c.Env = append(scopeEnvironment(), "PATH=/usr/bin:/bin")
	if out, err := c.Output(); err != nil || strings.TrimSpace(string(out)) != fmt.Sprint(trial) {
		return nil
	}
	return scope
})

func scopeLimits(scope []string, memory int64, processes int) []string {
	return append(scope[:len(scope):len(scope)], "--property", fmt.Sprint("MemoryMax=", memory),
		"--property", "MemorySwapMax=0", "--property", fmt.Sprint("TasksMax=", processes), "--")
}

// inScope is the start of bwrap's command line.
func (b sandbox) inScope(o Options) []string {
	if b.scope == nil {
		return nil
	}
	return scopeLimits(b.scope, o.Memory, b.processes())
}

// scopeEnvironment is how the manager is found. No cell sees it.
func scopeEnvironment() []string {
	list := []string{} // nil would pass this process's environment
	for _, name := range []string{"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"} {
		if value := os.Getenv(name); value != "" {
			list = append(list, name+"="+value)
		}
	}
	return list
}

// Stricter describes the stricter limits without a cgroup; "" if there are none.
func (t *Tool) Stricter() string {
	if t.box.name != "bwrap" || t.box.scope != nil {
		return ""
	}
	return fmt.Sprintf("%d processes instead of 128, because no cgroup is available (systemd-run)",
		t.box.processes())
}
