package driver

import (
	"fmt"
	"syscall"
	"unsafe"
)

// Opens a driver library with Windows' loader.

// library is an opened DLL. The drivers are in System32, and no other folder is searched: a DLL of
// that name in the current folder is not a driver.
type library struct{ handle syscall.Handle }

const searchSystem32 = 0x800 // LOAD_LIBRARY_SEARCH_SYSTEM32

var loadLibraryEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LoadLibraryExW")

// Candidates are the names of a driver library, in order.
func Candidates(api API) []string {
	if api == HIP {
		return []string{"amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"}
	}
	return []string{"nvcuda.dll"}
}

func openLibrary(name string) (*library, error) {
	wide, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	flags := uintptr(searchSystem32)
	for _, c := range name {
		if c == '\\' || c == '/' {
			flags = 0 // an explicit path needs no search
		}
	}
	handle, _, err := loadLibraryEx.Call(uintptr(unsafe.Pointer(wide)), 0, flags)
	if handle == 0 {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &library{syscall.Handle(handle)}, nil
}

func (l *library) symbol(name string) (uintptr, error) {
	return syscall.GetProcAddress(l.handle, name)
}

//go:uintptrescapes
func (l *library) call(address uintptr, args ...uintptr) uintptr {
	r, _, _ := syscall.SyscallN(address, args...)
	return r
}

func (l *library) close() error { return syscall.FreeLibrary(l.handle) }
