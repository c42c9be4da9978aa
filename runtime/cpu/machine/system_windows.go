package machine

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Windows' memory and cores, and allocation of pages.

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

var globalMemoryStatusEx = windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// memoryStatusEx is MEMORYSTATUSEX of sysinfoapi.h.
type memoryStatusEx struct {
	length, load             uint32
	totalPhys, availPhys     uint64
	totalPage, availPage     uint64
	totalVirtual             uint64
	availVirtual, availExtra uint64
}

// kernelMemory asks Windows, whose available memory includes cached files.
func kernelMemory() (total, free int64) {
	s := memoryStatusEx{length: uint32(unsafe.Sizeof(memoryStatusEx{}))}
	if ok, _, _ := globalMemoryStatusEx.Call(uintptr(unsafe.Pointer(&s))); ok == 0 {
		return 0, 0
	}
	return int64(s.totalPhys), int64(s.availPhys)
}

var logicalProcessorInformation = windows.NewLazySystemDLL("kernel32.dll").NewProc(
	"GetLogicalProcessorInformationEx")

// machine is the cores of the fastest kind: Windows gives these first to busy threads, and the
// pool's threads are not pinned.
var machine = sync.OnceValue(func() topology {
	const processorCores = 0 // RelationProcessorCore
	const most = 1 << 20     // bytes that are asked for
	var size uint32
	_, _, _ = logicalProcessorInformation.Call(processorCores, 0, uintptr(unsafe.Pointer(&size)))
	if size == 0 || size > most {
		return nil
	}
	records := make([]byte, size)
	ok, _, _ := logicalProcessorInformation.Call(processorCores,
		uintptr(unsafe.Pointer(unsafe.SliceData(records))), uintptr(unsafe.Pointer(&size)))
	if ok == 0 {
		return nil
	}
	return make(topology, fastestCores(records))
})
