package machine

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

var globalMemoryStatusEx = windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// memoryStatusEx is MEMORYSTATUSEX of sysinfoapi.h.
type memoryStatusEx struct {
	length, load             uint32
	totalPhys, availPhys     uint64
	totalPage, availPage     uint64
	totalVirtual             uint64
	availVirtual, availExtra uint64
}

// kernelMemory asks Windows. What it calls available counts cached files.
func kernelMemory() (total, free int64) {
	s := memoryStatusEx{length: uint32(unsafe.Sizeof(memoryStatusEx{}))}
	if ok, _, _ := globalMemoryStatusEx.Call(uintptr(unsafe.Pointer(&s))); ok == 0 {
		return 0, 0
	}
	return int64(s.totalPhys), int64(s.availPhys)
}
