package driver_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/gpu/kernels"
)

// TestCooperative: blocks that wait for each other run, on both APIs; a grid that the card has no
// room for is refused before anything runs, and one that a plain launch lets through ends as a
// deadlock.
func TestCooperative(t *testing.T) {
	const rows, width = 12, 32
	each(t, drivertest.Machine{}, func(t *testing.T, f *drivertest.Fake, c *driver.Context) {
		f.Multiprocessors(1)
		b := newBench(t, c, 4*(rows+1)+3*4*rows*width)
		for i := range rows {
			binary.NativeEndian.PutUint32(b.host.Bytes()[4*i:], uint32(rows-1-i))
		}
		binary.NativeEndian.PutUint32(b.host.Bytes()[4*rows:], rows)
		first := 4 * (rows + 1)
		for i := range 4 * rows * width {
			b.host.Bytes()[first+i] = byte(i / (4 * width))
		}
		must(t, b.s.CopyIn(b.device, b.host, 0, b.n))
		// Two phases, each of which turns the rows about: the second reads what other blocks wrote.
		at := func(n int) kernels.Pointer { return b.device + kernels.Pointer(n) }
		x, y, z := at(first), at(first+4*rows*width), at(first+8*rows*width)
		target, live := kernels.Target{Warp: 32}, kernels.Rows{Live: at(4 * rows), Most: rows}
		step, err := kernels.NewStep([]kernels.Launch{target.Gather(live, y, x, at(0), width),
			target.Gather(live, z, y, at(0), width)})
		must(t, err)
		m, k := kernel(t, f, c, step.Kernel())
		resident, err := k.Resident(step.Threads(), step.Shared())
		must(t, err)
		if resident != 8 || step.Blocks(resident) != 8 {
			t.Fatalf("%d blocks are resident, the step has %d", resident, step.Blocks(resident))
		}
		table := step.Table(resident)
		records, err := c.AllocHost(len(table))
		must(t, err)
		copy(records.Bytes(), table)
		bytes := target.BarrierBytes(2 * resident)
		memory, err := c.Alloc(int64(len(table)) + bytes)
		must(t, err)
		must(t, b.s.CopyIn(memory, records, 0, len(table)))
		barrier := memory + driver.Pointer(len(table))
		must(t, b.s.Fill(barrier, 0, bytes))
		launch := func(blocks int) (driver.Shape, []uint64) {
			a := []uint64{uint64(memory), 2, uint64(barrier), uint64(target.BarrierFan(blocks))}
			return driver.Shape{Grid: [3]uint32{uint32(blocks), 1, 1}, Block: [3]uint32{256, 1, 1},
				Shared: step.Shared()}, a
		}
		for _, reverse := range []bool{false, true} {
			f.Reverse(reverse)
			shape, a := launch(resident)
			must(t, b.s.Fill(driver.Pointer(y), 0xff, 8*rows*width))
			must(t, b.s.LaunchCooperative(k, shape, a))
			got := b.read(t)[first:]
			if n := 4 * rows * width; string(got[2*n:3*n]) != string(got[:n]) ||
				string(got[n:2*n]) == string(got[:n]) {
				t.Errorf("reverse %v: turned about twice the rows are %v", reverse, got[2*n:3*n])
			}
		}
		f.Reverse(false)
		shape, a := launch(resident + 1)
		if err := b.s.LaunchCooperative(k, shape, a); err == nil || f.API() == driver.CUDA &&
			code(err) != 720 {
			t.Errorf("a grid of %d blocks: %v", resident+1, err)
		}
		must(t, b.s.Synchronize())
		must(t, b.s.Launch(k, shape, a))
		if err := b.s.Synchronize(); err == nil ||
			!strings.Contains(err.Error(), "deadlock: 8 blocks wait") {
			t.Errorf("a plain launch of %d blocks: %v", resident+1, err)
		}
		m.Close() // the device is lost: all that follows gives back what it can
		c.Free(memory)
		records.Free()
		c.Free(b.device)
		b.host.Free()
		b.s.Close()
	})
}
