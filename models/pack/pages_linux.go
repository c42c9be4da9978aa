package pack

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// keepSmallPages asks the kernel not to back the memory with huge pages: with them, one byte
// written would cost 2 MiB. Kernels built without huge pages refuse, which does no harm.
func keepSmallPages(data []byte) { _ = unix.Madvise(data, unix.MADV_NOHUGEPAGE) }

// giveBack takes the whole pages of data out of memory; they read as zeros then.
func giveBack(data []byte) bool {
	page := uintptr(os.Getpagesize())
	first := -uintptr(unsafe.Pointer(unsafe.SliceData(data))) % page
	if uintptr(len(data)) < first+page {
		return false
	}
	return unix.Madvise(data[first:first+(uintptr(len(data))-first)/page*page],
		unix.MADV_DONTNEED) == nil
}
