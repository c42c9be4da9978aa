package mapping

// Mapping a file on Windows: a read-only section object that only its view keeps alive.

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

func mapFile(f *os.File, size int) (data []byte, unmap func() error, err error) {
	section, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, 0,
		0, nil)
	if err != nil {
		return nil, nil, err
	}
	defer windows.CloseHandle(section)
	address, err := windows.MapViewOfFile(section, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		return nil, nil, err
	}
	// The view is memory outside Go's heap; reading the address from its variable satisfies go
	// vet's pointer rule.
	data = unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), size)
	return data, func() error { return windows.UnmapViewOfFile(address) }, nil
}
