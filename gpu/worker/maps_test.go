//go:build linux

package worker

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mapFile writes a file and maps it as weights are.
func mapFile(t testing.TB, path string, data []byte) []byte {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mapped, err := unix.Mmap(int(f.Fd()), 0, len(data), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mapped) })
	return mapped
}

// TestMaps: the lines of a list of mappings.
func TestMaps(t *testing.T) {
	list := "7f0000000000-7f0000004000 r--s 00002000 08:01 42                         /models/a b.safetensors\n" +
		"7f0000004000-7f0000008000 rw-p 00000000 08:01 43                         /models/own copy\n" +
		"7f0000008000-7f000000c000 r--p 00000000 00:00 0 \n" +
		"7f000000c000-7f0000010000 r--s 00000000 08:01 44                         /models/with\\012line\n" +
		"7f0000010000-7f0000014000 r--p 00000000 00:00 0                          [vvar]\n" +
		"not a line\n"
	part, inode, ok := partIn(strings.NewReader(list), 0x7f0000001000, 0x7f0000004000)
	if !ok || part.Path != "/models/a b.safetensors" || part.Offset != 0x3000 || inode != 42 {
		t.Errorf("%+v %d %v", part, inode, ok)
	}
	for what, start := range map[string]uint64{"writable": 0x7f0000004000, "no file": 0x7f0000008000, "a line in its name": 0x7f000000c000, "the kernel's": 0x7f0000010000,
		"two mappings": 0x7f0000003fff, "nothing": 0x1000} {
		if part, _, ok := partIn(strings.NewReader(list), start, start+0x10); ok {
			t.Errorf("%s: %+v", what, part)
		}
	}
}
