package machine

import (
	"path/filepath"
	"testing"
)

// TestMemoryWithoutProc: in an empty chroot the kernel is asked directly.
func TestMemoryWithoutProc(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	total, free := memory(none, none, none)
	want, _ := memory("/proc/meminfo", none, none)
	if free <= 0 || free > total || total < want*9/10 || total > want*11/10 {
		t.Errorf("%d bytes of %d are free, /proc/meminfo has %d", free, total, want)
	}
}
