// Package cpu runs Programs on the host's cores: engine.Device in C++ through cgo, one call a step.
//
// All C++ sources are flat in this folder: kernels_*.cpp is the arithmetic for each instruction
// set, ops_*.cpp the operations, tape.cpp walks them with the threads of pool.cpp, cpu.h is Go's
// interface. asantest/ builds the same sources alone under the sanitizers.
package cpu

/*
#cgo CXXFLAGS: -std=c++20 -O3 -g1 -Wall -Wextra
#cgo LDFLAGS: -pthread -lm
#include <stdlib.h>
#include "cpu.h"
#include "kernels.h"
*/
import "C"

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/ossrun/ossrun/runtime/cpu/machine"
	"github.com/ossrun/ossrun/runtime/engine"
)

// Device is the host. Steps of all engines on it run one after the other, each on all its threads.
type Device struct {
	threads int
	// memory nodes, if there are several: allocations and uploads are spread over them
	nodes []int

	mu    sync.Mutex     // held while a step runs
	pool  *C.ossrun_pool // nil once it is closed
	users engine.Users
}

var _ engine.Device = (*Device)(nil)

// Cores is the number of threads worth starting (machine.Cores).
func Cores() int { return machine.Cores() }

// New starts threads threads; 0 means one for every core this process may use (Cores). On a machine
// with several memory nodes each thread stays near one of them.
func New(threads int) (engine.Device, error) {
	if threads < 0 {
		return nil, fmt.Errorf("%d threads", threads)
	}
	if threads == 0 {
		threads = Cores()
	}
	pool := C.ossrun_pool_new(C.int(threads))
	if pool == nil {
		return nil, fmt.Errorf("the system refuses %d threads", threads)
	}
	d := &Device{threads: threads, pool: pool}
	for i, cpus := range machine.Homes(threads) {
		d.Settle(i, cpus)
	}
	if nodes := machine.Nodes(); len(nodes) > 1 {
		d.nodes = nodes
	}
	return d, nil
}

// Settle pins a thread to some processors; false if the system refuses, and the thread then runs
// anywhere.
func (d *Device) Settle(thread int, cpus []int) bool {
	list := make([]C.int32_t, len(cpus))
	for i, cpu := range cpus {
		list[i] = C.int32_t(cpu)
	}
	return C.ossrun_pool_settle(d.pool, C.int(thread), unsafe.SliceData(list),
		C.int(len(list))) != 0
}

// tiles is the instruction set that computes prompts on tiles.
const tiles = "amx"

// ISAs are the instruction sets of this machine that have kernels, best last. "scalar" is always
// one. "amx" comes last only if its tiles are measured as faster than the vectors of AVX-512.
func ISAs() []string {
	all := []string{"scalar", "neon", "i8mm", "bf16", "avx2", "avxvnni", "avx512", "vbmi", tiles}
	if !tilesPay() {
		all = slices.Insert(all[:len(all)-1], len(all)-3, tiles)
	}
	return slices.DeleteFunc(all, func(isa string) bool {
		name := C.CString(isa)
		defer C.free(unsafe.Pointer(name))
		return C.ossrun_isa(name) == nil
	})
}

var tilesPay = sync.OnceValue(func() bool { return C.ossrun_tiles_pay() != 0 })

// chooseISA turns Options.ISA into the name of a set this machine has.
func chooseISA(name string) (string, error) {
	have := ISAs()
	if name == "" {
		return have[len(have)-1], nil
	}
	if slices.Contains(have, name) {
		return name, nil
	}
	return "", fmt.Errorf("instruction set %q is not to be had here: this machine has %s", name,
		strings.Join(have, ", "))
}

func (d *Device) Name() string {
	isa, _ := chooseISA("")
	plural := "s"
	if d.threads == 1 {
		plural = ""
	}
	return fmt.Sprintf("cpu, %d thread%s, %s", d.threads, plural, isa)
}

// Caps are the same on every instruction set; only one has tiles.
func (d *Device) Caps() engine.Caps {
	isa, _ := chooseISA("") // the empty name never fails
	return engine.Caps{Tiles: tiles, ISA: isa,
		Computes: []string{engine.Exact, engine.Int8, engine.Int8Fast},
		DenseQ8:  true, Dense12: true, Scales: C.kQ8Scales, FP8KV: true, Adapters: true}
}

func (d *Device) Close() error {
	return d.users.Close("the cpu device", func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		C.ossrun_pool_free(d.pool)
		d.pool = nil
		return nil
	})
}
