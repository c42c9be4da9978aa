//go:build unix

package pack

// Memory outside Go's heap: anonymous pages that the garbage collector neither scans nor counts,
// zero until written.

import (
	"golang.org/x/sys/unix"

	"github.com/ossrun/ossrun/models/mapping"
)

// reserve returns size zero bytes that take no memory yet.
func reserve(size int) (data []byte, free func() error, err error) {
	data, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, nil, err
	}
	mapping.KeepSmallPages(data)
	return data, func() error { return unix.Munmap(data) }, nil
}

func protect(data []byte) error { return unix.Mprotect(data, unix.PROT_READ) }
