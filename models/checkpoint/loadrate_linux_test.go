package checkpoint_test

// How fast cold and warm weights are ready to be mapped, compared with the disk. A long run: it
// writes gigabytes.

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/models/store"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// TestMeasureLoadRate: four layers of the 20b's shape, read cold by the disk's direct path and by
// ReadAhead in turn, then opened.
func TestMeasureLoadRate(t *testing.T) {
	if os.Getenv("OSSRUN_MEASURE") == "" {
		t.Skip("writes 4 GB: OSSRUN_MEASURE=1")
	}
	spec := models.Spec20B()
	spec.Layers = 4
	folder := t.TempDir()
	if free, err := store.Free(folder); err != nil || free < 3*spec.WeightBytes() {
		t.Skipf("%d bytes are free, %v", free, err)
	}
	hosttest.Check(t, modeltest.WriteSynthetic(folder, spec, 1, 1))
	path := filepath.Join(folder, "model.safetensors")
	found := checkpoint.Model{Name: "four layers", Path: folder, Bytes: spec.WeightBytes()}
	rate := func(d time.Duration) float64 { return float64(spec.WeightBytes()) / 1e6 / d.Seconds() }
	var disk, cold, ratio []float64
	for range 5 {
		drop(t, path)
		d := rate(direct(t, path))
		drop(t, path)
		start := time.Now()
		hosttest.Check(t, found.ReadAhead(t.Context(), 1<<50, checkpoint.Replaced{}, nil))
		c := rate(time.Since(start))
		disk, cold, ratio = append(disk, d), append(cold, c), append(ratio, c/d)
		t.Logf("the disk %.0f MB/s, ReadAhead %.0f MB/s, %.2f of it", d, c, c/d)
	}
	var warm []float64
	for range 5 {
		start := time.Now()
		hosttest.Check(t, found.ReadAhead(t.Context(), 1<<50, checkpoint.Replaced{}, nil))
		c := hosttest.Must(checkpoint.Open(folder))(t)
		warm = append(warm, float64(time.Since(start))/1e6)
		hosttest.Check(t, c.Close())
	}
	t.Logf("%.2f GB; medians: disk %.0f MB/s, cold %.0f MB/s, ratio of a round %.2f; warm, "+
		"looked at and opened in %.1f ms",
		float64(spec.WeightBytes())/1e9, median(disk), median(cold), median(ratio), median(warm))
	if median(ratio) < 0.7 {
		t.Errorf("cold weights come at %.2f of the disk's rate", median(ratio))
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// drop drops a file from the page cache.
func drop(t *testing.T, path string) {
	t.Helper()
	f := hosttest.Must(os.Open(path))(t)
	defer f.Close()
	hosttest.Check(t, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
}

// direct reads a file bypassing the page cache with eight readers of 4 MiB and returns the time:
// the disk's own rate.
func direct(t *testing.T, path string) time.Duration {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECT, 0)
	if err != nil {
		t.Skipf("no direct reads here: %v", err)
	}
	defer f.Close()
	stat := hosttest.Must(f.Stat())(t)
	const piece, page = 4 << 20, 4096
	start := time.Now()
	var next atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			buffer := make([]byte, piece+page)
			// direct reads need aligned memory
			buffer = buffer[-uintptr(unsafe.Pointer(&buffer[0]))&(page-1):][:piece]
			for at := next.Add(piece) - piece; at < stat.Size(); at = next.Add(piece) - piece {
				if n, err := f.ReadAt(buffer, at); n == 0 {
					t.Errorf("reading at %d: %v", at, err)
					return
				}
			}
		})
	}
	group.Wait()
	return time.Since(start)
}
