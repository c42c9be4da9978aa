//go:build !linux

package pack

// Only Linux gives huge pages for the asking, and takes pages back at once.

func wantHugePages([]byte) {}

func giveBack([]byte) bool { return false }
