package models

// Linux says which pages of a mapped file are in memory: mincore(2).

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// missingSpans gives the spans of a file of which a page or more is not in memory.
func missingSpans(f *os.File, each int64) ([]span, error) {
	all, err := whole(f, each)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	last := all[len(all)-1]
	size := last.begin + last.length
	page := int64(os.Getpagesize())
	data, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return all, nil // nobody can say: read it
	}
	defer unix.Munmap(data)
	resident := make([]byte, (size+page-1)/page)
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&data[0])), uintptr(size), uintptr(unsafe.Pointer(&resident[0]))); errno != 0 {
		return all, nil
	}
	var missing []span
	for _, s := range all {
		for _, in := range resident[s.begin/page : (s.begin+s.length+page-1)/page] {
			if in&1 == 0 {
				missing = append(missing, s)
				break
			}
		}
	}
	return missing, nil
}
