//go:build !linux

// Systems on which the interpreter runs in a container, which has its own limits.

package python

import "os/exec"

func endWithParent(*exec.Cmd) {}

// usage is unknown here; the sandboxes of these systems enforce the limits themselves.
func usage(int) (memory int64, processes int) { return 0, 0 }

func (r *interpreter) openFolders() error  { return nil }
func (r *interpreter) folderMemory() int64 { return 0 }
func (r *interpreter) setPaused(bool)      {}

func countsByNamespace() bool { return false }
