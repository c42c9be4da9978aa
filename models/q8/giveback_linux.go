package q8

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// giveBack asks the system to take the whole pages of data: those of a mapped file leave memory and
// come back from the file if they are ever read again. Memory that is no file loses nothing by it.
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
	_ = unix.Madvise(whole, unix.MADV_PAGEOUT) // only advice: refused, the pages stay
}
