package machine

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// Map gives zeroed pages, aligned to one. Windows counts them against its commit limit at
// once, and finds memory for each when it is touched.
func Map(bytes int) ([]byte, error) {
	address, err := windows.VirtualAlloc(0, uintptr(bytes), windows.MEM_RESERVE|windows.MEM_COMMIT,
		windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	// Memory outside Go's heap; reading the address out of its variable keeps go vet's pointer rule
	// satisfied.
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&address)), bytes), nil
}

// Unmap gives back what Map gave.
func Unmap(data []byte) error {
	return windows.VirtualFree(uintptr(unsafe.Pointer(unsafe.SliceData(data))), 0,
		windows.MEM_RELEASE)
}
