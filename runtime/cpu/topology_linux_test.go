package cpu

import (
	"errors"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestInterleave: the kernel says of pages, touched and untouched, that they are laid out over the
// nodes; other memory keeps its own.
func TestInterleave(t *testing.T) {
	data, err := mapZeroed(64 << 10)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unmap(data); err != nil {
			t.Error(err)
		}
	}()
	data[0] = 1
	policy := func(at int) int {
		const ofAddress = 2 // MPOL_F_ADDR
		var mode int32
		if _, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, uintptr(unsafe.Pointer(&mode)), 0,
			0, uintptr(unsafe.Pointer(&data[at])), ofAddress, 0); errno != 0 {
			t.Skipf("this kernel has no memory policies: %v", errno)
		}
		return int(mode)
	}
	before := policy(0)
	if before == interleaved {
		t.Skip("this process interleaves everything")
	}
	nodes := machine().nodes()
	if nodes == nil {
		t.Skip("this machine does not tell its topology")
	}
	if err := interleave(data[1:len(data)/2], nodes); errors.Is(err, unix.EPERM) ||
		errors.Is(err, unix.ENOSYS) {
		t.Skipf("not allowed here: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	page := unix.Getpagesize()
	if policy(page) != interleaved || policy(len(data)/2-page) != interleaved {
		t.Error("the pages inside are not laid out over the nodes")
	}
	if policy(0) != before || policy(len(data)/2) != before {
		t.Error("a page outside, or half outside, was taken too")
	}
	if err := interleave(data[:10], nodes); err != nil {
		t.Errorf("less than a page: %v", err)
	}
	if err := interleave(data, nil); err != nil || policy(0) != before {
		t.Errorf("no nodes: %v", err)
	}
}

// TestSettle: a thread may be kept on a processor of this machine, and not on one that there is
// not.
func TestSettle(t *testing.T) {
	dev := open(t, 2).(*Device)
	top := machine()
	if len(top) == 0 {
		t.Skip("this machine does not tell its topology")
	}
	if !dev.settle(1, top[0].cpus) {
		t.Error("the system refuses one of its processors")
	}
	if dev.settle(0, []int{1 << 20}) || dev.settle(0, []int{-1}) {
		t.Error("a thread is kept on a processor that cannot be")
	}
}
