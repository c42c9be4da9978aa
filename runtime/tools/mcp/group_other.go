//go:build !unix

// Systems without process groups: only the server itself is ended.

package mcp

import "os/exec"

func ownGroup(*exec.Cmd) {}

func endGroup(c *exec.Cmd) {
	_ = c.Process.Kill() // an error means that it has ended
}
