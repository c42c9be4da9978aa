//go:build unix

// A program and its children are one process group.

package process

import (
	"os/exec"
	"syscall"
)

// OwnGroup makes the program the head of a group. It is called before the program is started.
func OwnGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Interrupt asks the group to stop.
func Interrupt(c *exec.Cmd) error { return syscall.Kill(-c.Process.Pid, syscall.SIGINT) }

// End kills the remaining group.
func End(c *exec.Cmd) {
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // an error means that the group is empty
}
