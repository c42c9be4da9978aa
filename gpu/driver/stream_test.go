package driver_test

import (
	"bytes"
	"errors"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// Memory, queues, marks, kernels and graphs; and that the fake refuses what a driver refuses.

func TestCopies(t *testing.T) {
	each(t, drivertest.Machine{}, func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
		b := newBench(t, c, 1000)
		defer b.close(t)
		total, free, err := c.Memory()
		if err != nil || total-free != 1000 {
			t.Errorf("%d of %d free, %v", free, total, err)
		}
		for i := range b.host.Bytes() {
			b.host.Bytes()[i] = byte(i)
		}
		want := bytes.Clone(b.host.Bytes())
		must(t, b.s.CopyIn(b.device, b.host, 0, 1000))
		must(t, b.s.Synchronize())
		clear(b.host.Bytes())
		must(t, b.s.Fill(b.device+10, 7, 5))
		must(t, b.s.Copy(b.device+500, b.device, 100))
		copy(want[10:], bytes.Repeat([]byte{7}, 5))
		copy(want[500:], want[:100])
		if !bytes.Equal(b.read(t), want) {
			t.Error("other bytes came back")
		}
	})
}

// TestQueuesRunLate: work runs only when waited for, so a forgotten wait shows.
func TestQueuesRunLate(t *testing.T) {
	each(t, drivertest.Machine{}, func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
		b := newBench(t, c, 64)
		defer b.close(t)
		b.host.Bytes()[0] = 1
		must(t, b.s.CopyIn(b.device, b.host, 0, 64))
		b.host.Bytes()[0] = 2 // too early
		if got := b.read(t)[0]; got != 2 {
			t.Errorf("the copy took %d, the byte before it was changed", got)
		}
	})
}

func TestEvents(t *testing.T) {
	each(t, drivertest.Machine{}, func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
		b := newBench(t, c, 64)
		defer b.close(t)
		other, err := c.NewStream()
		must(t, err)
		var marks [2]*driver.Event
		for i := range marks {
			marks[i], err = c.NewEvent(true)
			must(t, err)
		}
		must(t, marks[0].Record(b.s))
		must(t, b.s.Fill(b.device, 9, 64))
		must(t, marks[1].Record(b.s))
		if _, err := marks[1].Since(marks[0]); !errors.Is(err, driver.ErrNotReady) {
			t.Errorf("a clock that has not stopped: %v", err)
		}
		must(t, other.Wait(marks[1])) // the other queue makes the first one run
		must(t, other.Synchronize())
		took, err := marks[1].Since(marks[0])
		if err != nil || took < 0 {
			t.Errorf("%v, %v", took, err)
		}
		must(t, errors.Join(marks[0].Close(), marks[1].Close(), other.Close()))
	})
}

// args are those of copy_rows: rows, y, x, words and no list.
func args(rows, y, x driver.Pointer, words int32) []uint64 {
	return []uint64{uint64(rows), uint64(y), uint64(x), uint64(words), 0}
}

// fourRows is copy_rows of up to 256 words a row.
var fourRows = driver.Shape{Grid: [3]uint32{1, 4, 1}, Block: [3]uint32{256, 1, 1}}

func TestLaunch(t *testing.T) {
	each(t, drivertest.Machine{}, func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
		b := newBench(t, c, 1024)
		defer b.close(t)
		m, k := kernel(t, f, c, "copy_rows")
		copy(b.host.Bytes(), []byte{3, 0, 0, 0}) // rows
		copy(b.host.Bytes()[256:], "row one row two row 3!! row four")
		must(t, b.s.CopyIn(b.device, b.host, 0, 1024))
		must(t, b.s.Synchronize())
		a := args(b.device, b.device+512, b.device+256, 2)
		must(t, b.s.Launch(k, fourRows, a))
		got := b.read(t)
		if string(got[512:536]) != "row one row two row 3!! " ||
			strings.HasPrefix(string(got[536:]), "row four") {
			t.Errorf("%q", got[512:544])
		}
		must(t, m.Close())
	})
}

// TestOverlap: kernels that may begin before the one in front of them give the same, alone and in a
// graph.
func TestOverlap(t *testing.T) {
	each(t, drivertest.Machine{}, func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
		if f.API() == driver.HIP {
			return
		}
		m, k := kernel(t, f, c, "copy_rows")
		b := newBench(t, c, 1024)
		defer b.close(t)
		launch := func() error {
			return b.s.Launch(k, fourRows, args(b.device, b.device+512, b.device+256, 1))
		}
		b.s.Overlap(true)
		g := hosttest.Must(b.s.Capture(launch))(t)
		for _, queue := range []func() error{launch, func() error { return g.Launch(b.s) }} {
			clear(b.host.Bytes())
			copy(b.host.Bytes(), []byte{1, 0, 0, 0})
			copy(b.host.Bytes()[256:], "four")
			must(t, b.s.CopyIn(b.device, b.host, 0, 1024))
			must(t, queue())
			if got := string(b.read(t)[512:516]); got != "four" {
				t.Errorf("%q", got)
			}
		}
		b.s.Overlap(false)
		must(t, launch())
		if n := f.Calls("cuLaunchKernelEx"); n != 2 || f.Calls("cuLaunchKernel") != 1 {
			t.Errorf("%d launches overlap", n)
		}
		f.FailCall("cuLaunchKernelEx", 1, 701)
		b.s.Overlap(true)
		contains(t, launch(), "kernel copy_rows, grid")
		must(t, errors.Join(g.Close(), m.Close()))
	})
}

// TestGraph: recorded once, launched on other data each time.
func TestGraph(t *testing.T) {
	each(t, drivertest.Machine{}, func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
		b := newBench(t, c, 1024)
		defer b.close(t)
		m, k := kernel(t, f, c, "copy_rows")
		g, err := b.s.Capture(func() error {
			return b.s.Launch(k, fourRows,
				args(b.device, b.device+512, b.device+256, 1))
		})
		must(t, err)
		for i := range 3 {
			clear(b.host.Bytes())
			copy(b.host.Bytes(), []byte{1, 0, 0, 0})
			copy(b.host.Bytes()[256:], []byte{'a' + byte(i), 'b', 'c', 'd'})
			must(t, b.s.CopyIn(b.device, b.host, 0, 1024))
			must(t, g.Launch(b.s))
			if got := b.read(t); got[512] != 'a'+byte(i) {
				t.Errorf("launch %d gave %q", i, got[512:516])
			}
		}
		must(t, errors.Join(g.Close(), m.Close()))
	})
}

// TestCaptureFails: a record that fails leaves the queue usable and no leak.
func TestCaptureFails(t *testing.T) {
	each(t, drivertest.Machine{}, func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
		b := newBench(t, c, 64)
		defer b.close(t)
		sorry := errors.New("sorry")
		if _, err := b.s.Capture(func() error { return sorry }); !errors.Is(err, sorry) {
			t.Errorf("%v", err)
		}
		_, err := b.s.Capture(func() error { return b.s.Synchronize() })
		contains(t, err, "not permitted when stream is capturing")
		must(t, b.s.Fill(b.device, 1, 64))
		must(t, b.s.Synchronize())
	})
}

func TestLaunchRefusals(t *testing.T) {
	each(t, drivertest.Machine{}, func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
		b := newBench(t, c, 1024)
		defer b.close(t)
		m, k := kernel(t, f, c, "copy_rows")
		good := args(b.device, b.device, b.device, 0)
		for what, bad := range map[string]struct {
			shape driver.Shape
			args  []uint64
			code  int
		}{
			"1,088 threads": {driver.Shape{Grid: [3]uint32{1, 1, 1},
				Block: [3]uint32{1088, 1, 1}}, good, 1},
			"beyond launch bounds": {driver.Shape{Grid: [3]uint32{1, 1, 1},
				Block: [3]uint32{512, 1, 1}}, good, 701},
			"no blocks": {driver.Shape{Grid: [3]uint32{0, 1, 1},
				Block: [3]uint32{64, 1, 1}}, good, 1},
			"65,536 blocks across": {driver.Shape{Grid: [3]uint32{1, 65536, 1},
				Block: [3]uint32{64, 1, 1}}, good, 1},
			"too much shared": {driver.Shape{Grid: [3]uint32{1, 1, 1},
				Block: [3]uint32{64, 1, 1}, Shared: 96 << 10}, good, 1},
			"a pointer to nowhere": {fourRows, args(b.device, b.device+4096, b.device, 1), 700},
			"a host's pointer":     {fourRows, args(b.device, 0x7f0000000000, b.device, 1), 700},
		} {
			err := b.s.Launch(k, bad.shape, bad.args)
			if code(err) != bad.code {
				t.Errorf("%s: %v", what, err)
			}
			contains(t, err, "kernel copy_rows, grid")
		}
		if _, err := m.Function("no_such_kernel"); code(err) != 500 {
			t.Errorf("a kernel that is not there: %v", err)
		}
		must(t, m.Close())
	})
}

// TestSharedMemoryMustBeAllowed: 96 KiB are refused until they are asked for; NVIDIA alone has that
// rule.
func TestSharedMemoryMustBeAllowed(t *testing.T) {
	each(t, drivertest.Machine{}, func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
		b := newBench(t, c, 64)
		defer b.close(t)
		m, k := kernel(t, f, c, "copy_rows")
		defer func() { must(t, m.Close()) }()
		must(t, b.s.Fill(b.device, 0, 64))
		if f.API() == driver.HIP {
			must(t, k.AllowShared(60<<10))
			return
		}
		large := driver.Shape{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{64, 1, 1},
			Shared: 96 << 10}
		if err := b.s.Launch(k, large, args(b.device, b.device, b.device, 0)); code(err) != 1 {
			t.Errorf("not allowed: %v", err)
		}
		must(t, k.AllowShared(96<<10))
		must(t, b.s.Launch(k, large, args(b.device, b.device, b.device, 0)))
		must(t, b.s.Synchronize())
		contains(t, k.AllowShared(1<<20), "1048576 bytes of shared memory")
	})
}

// TestIllegalAddress: a kernel that writes past its memory loses the device, and the process
// lives.
func TestIllegalAddress(t *testing.T) {
	each(t, drivertest.Machine{}, func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
		b := newBench(t, c, 4096)
		m, k := kernel(t, f, c, "copy_rows")
		clear(b.host.Bytes())
		b.host.Bytes()[0] = 1
		must(t, b.s.CopyIn(b.device, b.host, 0, 4096))
		must(t, b.s.Launch(k, fourRows, args(b.device, b.device+4000, b.device, 1000)))
		err := b.s.Synchronize()
		if code(err) != 700 {
			t.Errorf("%v", err)
		}
		contains(t, err, "copy_rows: touched memory that is not there")
		if _, err := c.Alloc(1); code(err) != 700 {
			t.Errorf("the device is not lost: %v", err)
		}
		for _, err := range []error{m.Close(), c.Free(b.device), b.host.Free(), b.s.Close()} {
			if code(err) != 700 { // it is freed, and the old error shows again
				t.Errorf("%v", err)
			}
		}
	})
}

func TestMemoryRefusals(t *testing.T) {
	each(t, drivertest.Machine{}, func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
		b := newBench(t, c, 64)
		p, err := c.Alloc(64)
		must(t, err)
		must(t, c.Free(p))
		for what, err := range map[string]error{
			"freed twice":          c.Free(p),
			"copied after free":    b.s.CopyIn(p, b.host, 0, 64),
			"a copy past the end":  b.s.Copy(b.device+60, b.device, 8),
			"a fill past the end":  b.s.Fill(b.device, 0, 65),
			"freed in the middle":  c.Free(b.device + 16),
			"nothing is allocated": func() error { _, err := c.Alloc(0); return err }(),
		} {
			if code(err) != 1 {
				t.Errorf("%s: %v", what, err)
			}
		}
		b.close(t)
		if err := b.s.Synchronize(); code(err) != 400 {
			t.Errorf("a closed queue: %v", err)
		}
	})
}

func TestLeaksAreCounted(t *testing.T) {
	f, err := drivertest.Open(driver.CUDA, drivertest.Machine{})
	must(t, err)
	defer f.Close()
	c := context(t, f, 0)
	b := newBench(t, c, 64)
	if got := f.Leaks(); got != "1 device allocations, 1 pinned allocations, 1 streams, 1 contexts" {
		t.Errorf("%q", got)
	}
	b.close(t)
	must(t, c.Close())
	if got := f.Leaks(); got != "" {
		t.Errorf("%q", got)
	}
}

func TestImageRefusals(t *testing.T) {
	f, err := drivertest.Open(driver.CUDA, drivertest.Machine{Devices: 1, Name: "Old", Major: 7,
		Minor: 5, Memory: 1 << 20})
	must(t, err)
	defer f.Close()
	c := context(t, f, 0)
	defer c.Close()
	for what, bad := range map[string]struct {
		image string
		code  int
	}{
		"not an image":     {"hello", 200},
		"for a later card": {".version 8.0\n.target sm_80\n", 209},
	} {
		if _, err := c.Load([]byte(bad.image)); code(err) != bad.code {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestPeers: memory of another device is reached by copies, and not by kernels.
func TestPeers(t *testing.T) {
	each(t, drivertest.Machine{Devices: 2, Name: "Fake", Major: 9, Memory: 1 << 30},
		func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
			other := context(t, f, 1)
			b, far := newBench(t, c, 512), newBench(t, other, 512)
			m, k := kernel(t, f, c, "copy_rows")
			must(t, b.s.Fill(b.device, 0, 512))
			must(t, far.s.Fill(far.device, 5, 512))
			must(t, far.s.Synchronize())
			reach := args(b.device, b.device+256, far.device, 1)
			if err := b.s.Launch(k, fourRows, reach); code(err) != 700 {
				t.Errorf("a kernel reaches another device by itself: %v", err)
			}
			must(t, b.s.CopyPeer(b.device, other, far.device, 8))
			if got := b.read(t); got[0] != 5 || got[8] != 0 {
				t.Errorf("%v", got[:16])
			}
			must(t, m.Close())
			b.close(t)
			far.close(t)
			must(t, other.Close())
		})
}

// TestThreads: a context is used from many goroutines at once.
func TestThreads(t *testing.T) {
	each(t, drivertest.Machine{}, func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 20 {
					b := newBench(t, c, 128)
					must(t, b.s.Fill(b.device, 3, 128))
					if got := b.read(t); got[127] != 3 {
						t.Errorf("%v", got)
					}
					b.close(t)
				}
			})
		}
		all.Wait()
	})
}

// TestNotWhileCapturing: what waits for the device, or may, is refused while a graph is recorded,
// and the graph is lost with it; other threads are not held up.
func TestNotWhileCapturing(t *testing.T) {
	each(t, drivertest.Machine{}, func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
		b := newBench(t, c, 1024)
		defer b.close(t)
		m, k := kernel(t, f, c, "copy_rows")
		e, err := c.NewEvent(false)
		must(t, err)
		spare, err := c.Alloc(64)
		must(t, err)
		launch := func() error {
			return b.s.Launch(k, fourRows, args(b.device, b.device+512, b.device+256, 1))
		}
		for name, call := range map[string]func() error{
			"Alloc":       func() error { _, err := c.Alloc(64); return err },
			"Free":        func() error { return c.Free(spare) },
			"AllocHost":   func() error { _, err := c.AllocHost(64); return err },
			"Load":        func() error { _, err := c.Load(f.Image()); return err },
			"Function":    func() error { _, err := m.Function("embed"); return err },
			"Synchronize": func() error { return e.Synchronize() },
		} {
			_, err := b.s.Capture(func() error {
				if err := launch(); err != nil {
					return err
				}
				if err := call(); code(err) != 900 {
					t.Errorf("%s while a graph is recorded: %v", name, err)
				}
				return launch()
			})
			if code(err) != 901 {
				t.Errorf("%s: the recording ends with %v", name, err)
			}
		}
		g, err := b.s.Capture(func() error {
			done := make(chan error)
			go func() {
				p, err := c.Alloc(64)
				done <- errors.Join(err, c.Free(p))
			}()
			return errors.Join(launch(), <-done)
		})
		must(t, err)
		must(t, errors.Join(g.Close(), c.Free(spare), e.Close(), m.Close()))
	})
}

// TestMarksOfTwoDevices: a mark belongs to the queues of its device, and two marks of different
// devices have no time between them.
func TestMarksOfTwoDevices(t *testing.T) {
	each(t, drivertest.Machine{Devices: 2, Name: "Fake", Major: 9, Memory: 1 << 30},
		func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
			b, other := newBench(t, c, 64), context(t, f, 1)
			there, err := other.NewStream()
			must(t, err)
			here, err := c.NewEvent(true)
			must(t, err)
			mark, err := other.NewEvent(true)
			must(t, err)
			if err := mark.Record(b.s); code(err) != 400 {
				t.Errorf("a mark in another device's queue: %v", err)
			}
			must(t, errors.Join(here.Record(b.s), mark.Record(there), there.Wait(here),
				there.Synchronize()))
			if _, err := mark.Since(here); code(err) != 400 {
				t.Errorf("time between two devices: %v", err)
			}
			must(t, errors.Join(here.Close(), mark.Close(), there.Close()))
			b.close(t)
			must(t, other.Close())
		})
}

// TestImageLives: AMD's runtime reads an image as long as it is loaded, so nothing else may lie
// there.
func TestImageLives(t *testing.T) {
	each(t, drivertest.Machine{}, func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
		// memory of its own, which is given back to the system once it is garbage
		large := append(f.Image(), make([]byte, 1<<20)...)
		m, err := c.Load(large)
		must(t, err)
		large = nil
		debug.FreeOSMemory()
		_, err = m.Function("copy_rows")
		must(t, errors.Join(err, m.Close()))
	})
}
