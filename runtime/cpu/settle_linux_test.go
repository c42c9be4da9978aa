package cpu_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ossrun/ossrun/runtime/cpu"
)

// TestSettle: a thread may be kept on a processor of this machine, and not on one that there is
// not.
func TestSettle(t *testing.T) {
	dev := open(t, 2).(*cpu.Device)
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mask); err != nil {
		t.Skip(err)
	}
	first := 0
	for !mask.IsSet(first) {
		first++
	}
	if !dev.Settle(1, []int{first}) {
		t.Error("the system refuses one of its processors")
	}
	if dev.Settle(0, []int{1 << 20}) || dev.Settle(0, []int{-1}) {
		t.Error("a thread is kept on a processor that cannot be")
	}
}
