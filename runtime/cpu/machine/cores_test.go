package machine

import (
	"os"
	"path/filepath"
	"testing"
)

// cgroups builds a folder that looks like /sys/fs/cgroup and a /proc/self/cgroup.
func cgroups(t *testing.T, self string, files map[string]string) (selfPath, root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	selfPath = filepath.Join(t.TempDir(), "cgroup")
	if err := os.WriteFile(selfPath, []byte(self), 0o644); err != nil {
		t.Fatal(err)
	}
	return selfPath, root
}

func TestCgroupCores(t *testing.T) {
	for _, test := range []struct {
		name, self string
		files      map[string]string
		want       int
	}{
		{"no limit", "0::/\n", map[string]string{"cpu.max": "max 100000"}, 0},
		{"no files", "0::/a/b\n", nil, 0},
		{"two and a half", "0::/\n", map[string]string{"cpu.max": "250000 100000"}, 3},
		{"the group above is tighter", "0::/a/b\n",
			map[string]string{"a/b/cpu.max": "800000 100000", "a/cpu.max": "400000 100000",
				"cpu.max": "max 100000"}, 4},
		{"version 1", "4:cpu,cpuacct:/job\n2:memory:/job\n",
			map[string]string{"cpu/job/cpu.cfs_quota_us": "150000",
				"cpu/job/cpu.cfs_period_us": "100000"}, 2},
		{"version 1, no limit", "4:cpu:/\n", map[string]string{"cpu/cpu.cfs_quota_us": "-1",
			"cpu/cpu.cfs_period_us": "100000"}, 0},
		{"less than one core", "0::/\n", map[string]string{"cpu.max": "50000 100000"}, 1},
		{"nonsense", "what\n0::/\n", map[string]string{"cpu.max": "many few"}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := cgroupCores(cgroups(t, test.self, test.files)); got != test.want {
				t.Errorf("%d cores, want %d", got, test.want)
			}
		})
	}
	if n := Cores(); n < 1 {
		t.Errorf("this process may use %d cores", n)
	}
}

func TestHostMemory(t *testing.T) {
	meminfo := filepath.Join(t.TempDir(), "meminfo")
	if err := os.WriteFile(meminfo,
		[]byte("MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 600 kB\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, self  string
		files       map[string]string
		total, free int64
	}{
		{"no limit", "0::/a\n", map[string]string{"a/memory.max": "max"}, 1000 << 10, 600 << 10},
		{"a container", "0::/a\n", map[string]string{"a/memory.max": "409600",
			"a/memory.current": "102400"}, 400 << 10, 300 << 10},
		{"the host has less", "0::/a\n", map[string]string{"a/memory.max": "921600",
			"a/memory.current": "0"}, 900 << 10, 600 << 10},
		{"full", "0::/\n", map[string]string{"memory.max": "4096", "memory.current": "8192"}, 4096,
			0},
		{"version 1", "2:memory:/j\n", map[string]string{"memory/j/memory.limit_in_bytes": "204800",
			"memory/j/memory.usage_in_bytes": "0"}, 200 << 10, 200 << 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			self, root := cgroups(t, test.self, test.files)
			if total, free := memory(meminfo, self, root); total != test.total ||
				free != test.free {
				t.Errorf("%d total, %d free, want %d and %d", total, free, test.total, test.free)
			}
		})
	}
}
