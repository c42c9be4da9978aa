//go:build unix && !linux

package pack

// keepSmallPages has nothing to do: only Linux gives huge pages unasked.
func keepSmallPages([]byte) {}
