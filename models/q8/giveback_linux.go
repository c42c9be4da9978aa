package q8

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// giveBack asks the system to drop the whole pages of data from memory. Pages of a mapped file come
// back from the file if they are read again; memory that is not a file's loses nothing.
func giveBack(data []byte) {
	if len(data) == 0 {
		return
	}
	page := uintptr(os.Getpagesize())
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	first := (page - begin%page) % page
	if uintptr(len(data)) < first+page {
		return
	}
	whole := data[first : first+(uintptr(len(data))-first)/page*page]
	_ = unix.Madvise(whole, unix.MADV_PAGEOUT) // only advice: if it is refused, the pages stay
}
