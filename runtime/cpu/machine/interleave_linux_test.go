package machine

import (
	"errors"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestInterleave: the kernel says of pages, touched and untouched, that they are laid out over the
// nodes; other memory keeps its own.
func TestInterleave(t *testing.T) {
	data, err := Map(64 << 10)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := Unmap(data); err != nil {
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
	if err := Interleave(data[1:len(data)/2], nodes); errors.Is(err, unix.EPERM) ||
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
	if err := Interleave(data[:10], nodes); err != nil {
		t.Errorf("less than a page: %v", err)
	}
	if err := Interleave(data, nil); err != nil || policy(0) != before {
		t.Errorf("no nodes: %v", err)
	}
}
