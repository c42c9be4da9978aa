//go:build !unix

// Systems without process groups: only the program itself is ended.

package process

import "os/exec"

// OwnGroup does nothing here.
func OwnGroup(*exec.Cmd) {}

// Interrupt ends the program, which cannot be asked.
func Interrupt(c *exec.Cmd) error { return c.Process.Kill() }

func End(c *exec.Cmd) {
	_ = c.Process.Kill() // an error means that it has ended
}
