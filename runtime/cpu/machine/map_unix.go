//go:build unix

package machine

import "golang.org/x/sys/unix"

// Map gives zeroed pages, aligned to one, that cost nothing until they are touched.
func Map(bytes int) ([]byte, error) {
	return unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// Unmap gives back what Map gave.
func Unmap(data []byte) error { return unix.Munmap(data) }
