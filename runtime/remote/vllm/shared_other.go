//go:build !linux

// Elsewhere shared memory has no files, and vLLM is for Linux: there is nothing to remove.

package vllm

import "io"

type sharedFiles struct{ report io.Writer }

func (*sharedFiles) record(int) {}
func (*sharedFiles) remove()    {}
