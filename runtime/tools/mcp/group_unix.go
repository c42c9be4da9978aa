//go:build unix

// A server's process is the head of a group: Ctrl-C of the terminal does not reach it, and what it
// has started ends with it.

package mcp

import (
	"os/exec"
	"syscall"
)

func ownGroup(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func endGroup(c *exec.Cmd) {
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // an error means that nobody is left
}
