package pack

// Zeros take no memory: neither as zeros nor as a copy of them, nor with huge pages enabled.

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"
)

func TestZerosAreNotResident(t *testing.T) {
	const size = 64 << 20
	var b builder
	b.literal(noise(100_000, 1))
	b.zeros(size)
	b.literal(noise(1, 2))
	b.zeros(size)
	b.copy(0, size+100_000)
	m, err := Unpack(bytes.NewReader(squeeze(b.raw())))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	// Two stretches of noise, the byte between the zeros, its copy's pages, and the ends of each.
	const most = 2*100 + 8*4
	if got := resident(t, m.Bytes); got > most {
		t.Errorf("%d kB are resident of %d kB, want at most %d", got, len(m.Bytes)>>10, most)
	}
}

// resident gives the kB of memory that the kernel counts for a mapping.
func resident(t *testing.T, data []byte) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skipf("the kernel does not say: %v", err)
	}
	address := uint64(uintptr(unsafe.Pointer(&data[0])))
	sum, inside := 0, false
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			inside = from < address+uint64(len(data)) && to > address
		}
		var kB int
		if n, _ := fmt.Sscanf(line, "Rss: %d kB", &kB); inside && n == 1 {
			sum += kB
		}
	}
	if sum == 0 {
		t.Fatal("the mapping is not in /proc/self/smaps")
	}
	return sum
}
