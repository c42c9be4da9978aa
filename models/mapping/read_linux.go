package mapping

// Linux reads a range of a mapping on request, reports errors, and releases its pages.

import (
	"errors"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// readSteps is the size of one read request before Linux 5.14, which reads only as much of a larger
// one as the device takes at once.
const readSteps = 1 << 20

// Read reads data, which is at an offset of a mapped file, in one go instead of fault by fault.
// release undoes it: it drops the pages from this process's memory and, unless keep is set, from
// the page cache if they were not there before.
func Read(f *os.File, offset int64, data []byte, keep bool) (release func(), err error) {
	if len(data) == 0 {
		return func() {}, nil
	}
	pages := pagesAround(data)
	offsetInPage := uintptr(unsafe.Pointer(unsafe.SliceData(data))) - uintptr(
		unsafe.Pointer(unsafe.SliceData(pages)))
	// the system hides another user's file, which then counts as cached: it is still read, and
	// stays
	cold := !allIn(pages)
	if err := populate(pages); err != nil {
		return nil, err
	}
	return func() {
		// Only advice: if refused, the pages stay until their memory is needed.
		_ = unix.Madvise(pages, unix.MADV_DONTNEED)
		if cold && !keep {
			_ = unix.Fadvise(int(f.Fd()), offset-int64(offsetInPage), int64(len(pages)),
				unix.FADV_DONTNEED)
		}
	}, nil
}

// pagesAround extends data, a part of a mapping, to page boundaries: mappings begin and end on
// pages.
func pagesAround(data []byte) []byte {
	page := uintptr(os.Getpagesize())
	offsetInPage := uintptr(unsafe.Pointer(unsafe.SliceData(data))) % page
	begin := (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(data)), -int(offsetInPage)))
	return unsafe.Slice(begin, (offsetInPage+uintptr(len(data))+page-1)/page*page)
}

// populate reads pages of a mapping and maps them. If the file system supports 2 MiB pages in the
// page cache (ext4 since Linux 6.16, XFS since 5.18), they are mapped as such, so that a pass over
// the weights looks up few addresses.
func populate(pages []byte) error {
	PreferHugePages(pages)
	err := unix.Madvise(pages, unix.MADV_POPULATE_READ)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		for start := 0; start < len(pages); start += readSteps {
			// starts the read; pages are mapped fault by fault
			_ = unix.Madvise(pages[start:min(start+readSteps, len(pages))], unix.MADV_WILLNEED)
		}
		return nil
	}
	if errors.Is(err, unix.EFAULT) {
		return errors.New("the disk does not give it, or the file became shorter")
	}
	return err
}

// PreferHugePages requests pages of 2 MiB, if the system has some.
func PreferHugePages(data []byte) { _ = unix.Madvise(data, unix.MADV_HUGEPAGE) }

// KeepSmallPages asks the kernel not to use huge pages: with them, one written byte would cost 2
// MiB. Kernels without huge pages refuse, which is harmless.
func KeepSmallPages(data []byte) { _ = unix.Madvise(data, unix.MADV_NOHUGEPAGE) }

// Release releases the complete pages of anonymous memory, which then read as zeros. False if
// there are none, or the system refuses.
func Release(data []byte) bool {
	pages := wholePages(data)
	return len(pages) > 0 && unix.Madvise(pages, unix.MADV_DONTNEED) == nil
}

// PageOut asks the system to drop the complete pages of data. A mapped file's pages are read from
// it again on access; anonymous memory loses nothing. It is only advice: if refused, the pages
// stay.
func PageOut(data []byte) { _ = unix.Madvise(wholePages(data), unix.MADV_PAGEOUT) }

// wholePages are the pages that data fills completely.
func wholePages(data []byte) []byte {
	page := uintptr(os.Getpagesize())
	first := -uintptr(unsafe.Pointer(unsafe.SliceData(data))) % page
	if uintptr(len(data)) < first+page {
		return nil
	}
	return data[first : first+(uintptr(len(data))-first)/page*page]
}

// InMemory reports whether all pages of data, a part of a mapping, are in memory.
func InMemory(data []byte) bool { return allIn(pagesAround(data)) }

func allIn(pages []byte) bool {
	resident := make([]byte, len(pages)/os.Getpagesize())
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE,
		uintptr(unsafe.Pointer(unsafe.SliceData(pages))), uintptr(len(pages)),
		uintptr(unsafe.Pointer(unsafe.SliceData(resident)))); errno != 0 {
		return false
	}
	return !slices.ContainsFunc(resident, func(in byte) bool { return in&1 == 0 })
}
