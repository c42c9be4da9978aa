package kernels

import "testing"

// TestSampleLayouts: what the host writes and reads is as long as sample.cu says.
func TestSampleLayouts(t *testing.T) {
	for what, sizes := range map[string][2]int{"SampleRow": {SampleRowBytes, 40},
		"LogitStats": {LogitStatsBytes, 16}, "LogitEdit": {LogitEditBytes, 24}} {
		if sizes[0] != sizes[1] {
			t.Errorf("%s has %d bytes, not %d", what, sizes[0], sizes[1])
		}
	}
}
