//go:build unix

// A program and what it has started are one process group.

package process

import (
	"os/exec"
	"syscall"
)

// OwnGroup makes the program the head of a group. It is called before the program is started.
func OwnGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Interrupt asks the group to stop.
func Interrupt(c *exec.Cmd) error { return syscall.Kill(-c.Process.Pid, syscall.SIGINT) }

// End kills what is left of the group.
func End(c *exec.Cmd) {
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // an error means that nobody is left
}
