package cpu

// #include <stdlib.h>
// #include "cpu.h"
import "C"

import (
	"time"
	"unsafe"
)

// The machine's own limits, measured by the threads and the instruction set that also run the
// steps. runtime/measure/bench divides by them.

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

// units are the instructions that MultiplyPeak counts, by instruction set.
var units = map[string]string{"amx": "tdpbf16ps, 16 x 16 x 32", "avx512": "vpdpbusd, 512 bit",
	"vbmi": "vpdpbusd, 512 bit", "avxvnni": "vpdpbusd, 256 bit", "i8mm": "smmla, 128 bit",
	"bf16": "smmla, 128 bit", "neon": "sdot, 128 bit",
	"avx2":   "vpmaddubsw and vpaddw, 256 bit (no VNNI on this machine)",
	"scalar": "scalar multiplications"}

func (d *Device) MultiplyUnit() string { return units[d.gaugeISA()] }

func (d *Device) gaugeISA() string {
	isa, _ := chooseISA("") // the empty name never fails
	return isa
}
