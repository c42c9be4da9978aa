package machine

import (
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Linux's memory and cores, and the placement of memory on several nodes.

// kernelMemory asks the kernel itself, which needs no /proc. The kernel does not count cached files
// as free.
func kernelMemory() (total, free int64) {
	var s syscall.Sysinfo_t
	if syscall.Sysinfo(&s) != nil {
		return 0, 0
	}
	unit := int64(s.Unit)
	return int64(s.Totalram) * unit, (int64(s.Freeram) + int64(s.Bufferram)) * unit
}

// machine is the topology of this machine within the affinity mask the process started with.
var machine = sync.OnceValue(func() topology {
	var mask unix.CPUSet
	if unix.SchedGetaffinity(0, &mask) != nil {
		return nil // more processors than the mask has bits
	}
	var allowed []int
	for cpu := range 8 * int(unsafe.Sizeof(mask)) {
		if mask.IsSet(cpu) {
			allowed = append(allowed, cpu)
		}
	}
	return readTopology("/sys/devices/system", allowed)
})

// The kernel's numbers for mbind.
const (
	interleaved = 3 // MPOL_INTERLEAVE
	movePages   = 2 // MPOL_MF_MOVE
)

// Interleave spreads the whole pages of data over the nodes in turn, and moves those that are in
// memory already. Every step reads all weights and any thread may read any of them, so all memory
// nodes should be read at once. It is advice: if the system refuses, no page moves.
func Interleave(data []byte, nodes []int) error {
	page := uintptr(unix.Getpagesize())
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	first := -begin % page
	if len(nodes) < 1 || uintptr(len(data)) < first+page {
		return nil
	}
	const bits = 64
	mask := make([]uint64, nodes[len(nodes)-1]/bits+1)
	for _, n := range nodes {
		mask[n/bits] |= 1 << (n % bits)
	}
	length := (uintptr(len(data)) - first) / page * page
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, begin+first, length, interleaved,
		uintptr(unsafe.Pointer(&mask[0])), uintptr(len(mask)*bits+1), movePages)
	if errno != 0 {
		return errno
	}
	return nil
}
