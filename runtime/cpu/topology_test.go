package cpu

import (
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
	root := t.TempDir()
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
		{"cores of two kinds", "hybrid", upTo(6), 4, []int{0}, 4, nil},
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
