package driver

import "testing"

// GCNName is of device.go, for its tests.
var GCNName = gcnName

// SetMeminfo has a test's file tell about the host's memory.
func SetMeminfo(t *testing.T, path string) {
	was := meminfo
	t.Cleanup(func() { meminfo = was })
	meminfo = path
}
