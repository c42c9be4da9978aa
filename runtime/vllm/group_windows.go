package vllm

import (
	"os"
	"syscall"
)

// vLLM does not run on Windows; its container does.
func ownGroup() *syscall.SysProcAttr { return nil }

func interrupt(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}
