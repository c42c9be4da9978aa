//go:build !linux && !darwin

package checkpoint

import "os"

// describe has nothing to add: programs can set everything that this system tells of a file.
func describe(*FileState, os.FileInfo) bool { return false }
