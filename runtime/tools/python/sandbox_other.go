//go:build !linux

// Systems on which the interpreter runs in a container, which has its own limits.

package python

import "os/exec"

func endWithParent(*exec.Cmd) {}

// usage is unknown here; the sandboxes of these systems enforce the limits themselves.
func usage(int) (memory int64, processes int) { return 0, 0 }

func (r *interpreter) openFolders() error  { return nil }
func (r *interpreter) openFreezer(string)  {}
func (r *interpreter) folderMemory() int64 { return 0 }
func (r *interpreter) socketMemory() int64 { return 0 }
func (r *interpreter) fileLocks(int) int   { return 0 }
func (r *interpreter) pause() error        { return nil }
func (r *interpreter) resume()             {}

func countsByNamespace() bool { return false }
