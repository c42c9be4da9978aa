//go:build unix

package mapping

// Mapping a file on Unix: read-only and shared, so that several processes use one copy in the page
// cache.

import (
	"os"

	"golang.org/x/sys/unix"
)

func mapFile(f *os.File, size int) (data []byte, unmap func() error, err error) {
	data, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	forget := watch(data, f.Name())
	return data, func() error {
		forget()
		return unix.Munmap(data)
	}, nil
}
