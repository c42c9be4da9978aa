package machine

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

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
