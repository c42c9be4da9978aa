package detect

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// TestFigures: a part of a card has its part of the figures; a variant with some units less has all
// of them; what only memory vouches for says so.
func TestFigures(t *testing.T) {
	mi300x, r9700 := ChipNamed("AMD Instinct MI300X OAM", 0), ChipNamed("AMD Radeon AI PRO R9700",
		0)
	if mi300x == nil || r9700 == nil {
		t.Fatal("the chips are not known by these names")
	}
	for units, want := range map[int]float64{0: 5300, 304: 5300, 290: 5300, 152: 2650, 38: 662.5} {
		if f := mi300x.figures(units); f.Bandwidth != want || f.BF16 <= 0 || f.PeerLink != "xgmi" ||
			len(f.About) > 0 {
			t.Errorf("%d units: %+v, want %v GB/s", units, *f, want)
		}
	}
	if f := r9700.figures(64); strings.Join(f.About, " ") != "bandwidth_gbs bf16_tflops" {
		t.Errorf("%+v", *f)
	}
	if got := Bandwidth("AMD Instinct MI300X OAM", 196592, 38); got != 662.5e9 {
		t.Errorf("an eighth of an MI300X: %v byte/s", got)
	}
	if got := Bandwidth("some GPU", 1, 1); got != 0 {
		t.Errorf("an unknown one: %v byte/s", got)
	}
}

// TestLinks: the cards of a hive are linked to each other and to no other card.
func TestLinks(t *testing.T) {
	for _, s := range samples(t) {
		r := Detect(t.Context(), s.machine())
		hive := map[string]uint64{}
		for _, g := range r.GPUs {
			hive[g.BDF] = g.Hive
		}
		for _, g := range r.GPUs {
			if want := map[string]int{"amd-mi210-x8": 3}[s.name]; len(g.Linked) != want {
				t.Errorf("%s: %s is linked to %v, want %d", s.name, g.BDF, g.Linked, want)
			}
			for _, other := range g.Linked {
				if other == g.BDF || hive[other] != g.Hive || g.Hive == 0 {
					t.Errorf("%s: %s of hive %d is linked to %s of hive %d", s.name, g.BDF, g.Hive,
						other, hive[other])
				}
			}
		}
	}
}

// TestNoKernels: a card that no kernel runs on is not used and says so; the others are.
func TestNoKernels(t *testing.T) {
	files := fstest.MapFS{}
	for node, version := range map[string]string{"1": "100300", "2": "120001"} {
		files["sys/class/kfd/kfd/topology/nodes/"+node+
			"/properties"] = &fstest.MapFile{Data: []byte("simd_count 128\nsimd_per_cu " +
			"2\ngfx_target_version " + version + "\nlocation_id " + node + "00\n")}
	}
	r := Detect(t.Context(), Machine{Files: files, Runs: func(arch string) error {
		if arch == "gfx1030" {
			return errors.New("no kernels for gfx1030")
		}
		return nil
	}})
	if len(r.GPUs) != 2 || r.GPUs[0].Usable ||
		r.GPUs[0].Reason != "no kernels for gfx1030; use the CPU" || !r.GPUs[1].Usable {
		t.Errorf("%+v", r.GPUs)
	}
	r = Detect(t.Context(), Machine{Files: files,
		Runs: func(string) error { return errors.New("none") }})
	if why := r.Why(); why != "AMD GPU: none; use the CPU" {
		t.Errorf("%q", why)
	}
}

// TestSentence: the sentence has neither the kernel's clock nor its full stop.
func TestSentence(t *testing.T) {
	for text, want := range map[string]string{
		"[    7.218215] kfd kfd: skipped": "kfd kfd: skipped: do it",
		"It failed.":                      "It failed: do it", "[12] x": "x: do it",
		"[x] y": "[x] y: do it", "": ": do it",
	} {
		if got := (Problem{Text: text, Remedy: "do it"}).Sentence(); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

// TestSharedMemory: of an integrated GPU what it may use of the host's is counted, or what the
// firmware set aside, each with its free part.
func TestSharedMemory(t *testing.T) {
	const device = "sys/bus/pci/devices/0000:c5:00.0"
	for name, x := range map[string]struct {
		vram, gtt, usedVRAM, usedGTT int // MiB; -1: no such file
		shared                       bool
		free                         int
	}{
		"the host's": {4096, 98304, 1000, 304, true, 98000}, "set aside": {98304, 16384, 304, 1000,
			false, 98000}, "used is not told": {512, 1024, -1, -1, true, 0},
	} {
		files := fstest.MapFS{}
		for file, mib := range map[string]int{"vram_total": x.vram, "gtt_total": x.gtt,
			"vram_used": x.usedVRAM, "gtt_used": x.usedGTT} {
			if mib >= 0 {
				files[device+"/mem_info_"+
					file] = &fstest.MapFile{Data: []byte(strconv.Itoa(mib << 20))}
			}
		}
		g := GPU{Vendor: AMD, BDF: "0000:c5:00.0", Integrated: true, VRAMMiB: x.vram, GTTMiB: x.gtt}
		g.sensorsAMD(files)
		if g.SharesHost() != x.shared || g.FreeMiB != x.free {
			t.Errorf("%s: shared %v, %d MiB free, want %d", name, g.SharesHost(), g.FreeMiB, x.free)
		}
	}
	if (GPU{}).SharesHost() || !(GPU{Integrated: true}).SharesHost() {
		t.Error("a card shares the host's memory, or a GPU in a processor does not")
	}
}

// TestMeminfo: the number of a line of any form.
func TestMeminfo(t *testing.T) {
	for text, want := range map[string]int{
		"MemTotal:  2048 kB\n": 2, "MemFree: 9 kB\nMemTotal: 1048576 kB": 1024, "MemTotal: x kB": 0,
		"MemTotal: -5 kB": 0, "MemTotal: 2048": 0, "": 0,
	} {
		if got := int(Meminfo(text, "MemTotal") >> 20); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
