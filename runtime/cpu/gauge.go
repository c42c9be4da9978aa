package cpu

// #include <stdlib.h>
// #include "cpu.h"
import "C"

import (
	"time"
	"unsafe"
)

// The machine's own limits, measured by the threads and the instruction set that also run the
// steps. runtime/bench divides by them.

// Bandwidth reads data once with all threads and returns bytes a second. data should be much larger
// than the caches.
func (d *Device) Bandwidth(data []byte) float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pool == nil || len(data) < 1<<16 {
		return 0
	}
	isa := C.CString(d.gaugeISA())
	defer C.free(unsafe.Pointer(isa))
	ns := C.ossrun_read_memory(d.pool, isa, C.int(d.threads), unsafe.Pointer(&data[0]),
		C.int64_t(len(data)))
	return float64(len(data)) / float64(ns) * 1e9
}

// MultiplyPeak spends about d in 8-bit multiply-adds on all threads and returns operations a second
// (a multiplication and an addition are two). No 8-bit kernel of this instruction set can exceed
// it.
func (d *Device) MultiplyPeak(spend time.Duration) float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pool == nil {
		return 0
	}
	isa := C.CString(d.gaugeISA())
	defer C.free(unsafe.Pointer(isa))
	var operations C.int64_t
	rounds := C.int64_t(1000)
	for {
		ns := C.ossrun_multiply(d.pool, isa, C.int(d.threads), rounds, &operations)
		if time.Duration(ns) >= spend/2 || rounds > 1<<40 {
			return float64(operations) / float64(ns) * 1e9
		}
		rounds *= 4
	}
}

// MultiplyUnit names what MultiplyPeak counts.
func (d *Device) MultiplyUnit() string {
	switch d.gaugeISA() {
	case "amx":
		return "tdpbf16ps, 16 x 16 x 32"
	case "avx512":
		return "vpdpbusd, 512 bit"
	case "avxvnni":
		return "vpdpbusd, 256 bit"
	case "i8mm", "bf16":
		return "smmla, 128 bit"
	case "neon":
		return "sdot, 128 bit"
	case "avx2":
		return "vpmaddubsw and vpaddw, 256 bit (no VNNI on this machine)"
	}
	return "scalar multiplications"
}

func (d *Device) gaugeISA() string {
	isa, _ := chooseISA("") // the empty name never fails
	return isa
}
