//go:build unix

// Stopping vLLM with all of its workers.

package vllm

import "syscall"

// ownGroup makes vLLM and its workers one group, so that all of them are asked to stop.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func interrupt(pid int) error { return syscall.Kill(-pid, syscall.SIGINT) }
