//go:build unix

package cpu

import "golang.org/x/sys/unix"

// mapZeroed gives zeroed pages, aligned to one, that cost nothing until they are touched.
func mapZeroed(bytes int) ([]byte, error) {
	return unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func unmap(data []byte) error { return unix.Munmap(data) }
