package driver

import "testing"

// KFDArch is kfdArch, for the test.
var KFDArch = kfdArch

// SetMeminfo has a test's file tell about the host's memory.
func SetMeminfo(t *testing.T, path string) {
	was := meminfo
	t.Cleanup(func() { meminfo = was })
	meminfo = path
}
