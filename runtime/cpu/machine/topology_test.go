package machine

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// tree writes a machine of testdata/topology, a file a line ("path: text"), as a folder like
// /sys/devices/system.
func tree(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "topology", name))
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "system")
	for line := range strings.Lines(string(data)) {
		path, text, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue // a comment
		}
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func upTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// TestTopology: cores, not hardware threads; nodes; and homes that take the nodes in turns.
func TestTopology(t *testing.T) {
	for _, test := range []struct {
		name, machine string
		allowed       []int
		cores         int
		nodes         []int
		threads       int
		homes         [][]int
	}{
		{"two sockets", "two-sockets", upTo(16), 8, []int{0, 1}, 3,
			[][]int{{0, 8, 1, 9, 2, 10, 3, 11}, {4, 12, 5, 13, 6, 14, 7, 15},
				{0, 8, 1, 9, 2, 10, 3, 11}}},
		{"two sockets, more threads than cores", "two-sockets", upTo(16), 8, []int{0, 1}, 9, nil},
		{"one socket of them", "two-sockets", []int{0, 1, 2, 3, 8, 9, 10, 11}, 4, []int{0}, 4, nil},
		{"three cores here, one there", "two-sockets", []int{0, 1, 2, 4}, 4, []int{0, 1}, 4,
			[][]int{{0, 1, 2}, {4}, {0, 1, 2}, {0, 1, 2}}},
		{"one hardware thread of each core", "two-sockets", []int{8, 9}, 2, []int{0}, 2, nil},
		{"cores of two kinds that nobody tells apart", "hybrid", upTo(6), 4, []int{0}, 4, nil},
		{"the low-power island is left out", "core-ultra", upTo(10), 6, []int{0}, 3,
			[][]int{{0, 1, 2, 3}, {0, 1, 2, 3}, {4, 5, 6, 7}}},
		{"the island alone", "core-ultra", []int{8, 9}, 2, []int{0}, 2, nil},
		{"without little cores", "big-little", upTo(8), 4, []int{0}, 4,
			[][]int{{7}, {4, 5, 6}, {4, 5, 6}, {4, 5, 6}}},
		{"little cores alone", "big-little", upTo(4), 4, []int{0}, 4, nil},
		{"this project's machine", "virtual", upTo(2), 2, []int{0}, 2, nil},
		{"a processor that the tree lacks", "virtual", upTo(3), 0, nil, 1, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			top := readTopology(tree(t, test.machine), test.allowed)
			if len(top) != test.cores {
				t.Errorf("%d cores, want %d: %v", len(top), test.cores, top)
			}
			if nodes := top.nodes(); !reflect.DeepEqual(nodes, test.nodes) {
				t.Errorf("nodes %v, want %v", nodes, test.nodes)
			}
			if homes := top.homes(test.threads); !reflect.DeepEqual(homes, test.homes) {
				t.Errorf("homes %v, want %v", homes, test.homes)
			}
		})
	}
}

func TestCPUList(t *testing.T) {
	for text, want := range map[string][]int{
		"0": {0}, "0-3,8": {0, 1, 2, 3, 8}, "": nil, "3-1": nil, "a": nil, "1,": nil, "0-": nil,
		"-1": nil, "0-9999999": nil,
	} {
		if got := cpuList(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestCoresOf: as many threads as cores, or as the quota allows, or as the process may use where
// nothing else is known.
func TestCoresOf(t *testing.T) {
	top := readTopology(tree(t, "two-sockets"), upTo(16))
	for _, test := range []struct {
		top         topology
		cpus, quota int
		want        int
	}{{top, 16, 0, 8}, {top, 16, 3, 3}, {top, 16, 12, 8}, {nil, 16, 0, 16}, {nil, 16, 5, 5},
		{nil, 0, 0, 1}} {
		if got := coresOf(test.top, test.cpus, test.quota); got != test.want {
			t.Errorf("%d cores of %d processors with a quota of %d: %d threads, want %d",
				len(test.top), test.cpus, test.quota, got, test.want)
		}
	}
}

// TestFastestCores: cores of the highest class, by records of any length; damaged ones say nothing.
func TestFastestCores(t *testing.T) {
	record := func(class byte, length int) []byte {
		r := make([]byte, length)
		binary.LittleEndian.PutUint32(r[4:], uint32(length))
		r[8], r[9] = 1, class
		return r
	}
	var hybrid, alike []byte
	for i := range 24 { // eight with two hardware threads, sixteen efficient ones
		hybrid = append(hybrid, record(byte(1-min(i/8, 1)), 48)...)
	}
	for range 16 {
		alike = append(alike, record(0, 48)...)
	}
	two := append(record(0, 64), record(0, 48)...) // one of them in two groups
	for _, test := range []struct {
		records []byte
		want    int
	}{{hybrid, 8}, {alike, 16}, {two, 2}, {nil, 0}, {hybrid[:60], 0}, {make([]byte, 48), 0},
		{record(0, 40)[:31], 0}} {
		if got := fastestCores(test.records); got != test.want {
			t.Errorf("%d bytes: %d, want %d", len(test.records), got, test.want)
		}
	}
}
