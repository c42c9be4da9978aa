package detect

import (
	"testing"
	"testing/fstest"
)

// TestNotShown: of two cards on the bus the driver shows one, by an address in its own form; the
// other is not used, and the reason is given.
func TestNotShown(t *testing.T) {
	files := fstest.MapFS{"proc/driver/nvidia/version": {Data: []byte("NVRM version: NVIDIA UNIX " +
		"x86_64 Kernel Module  570.86.15  x\n")}}
	for _, bdf := range []string{"0000:1b:00.0", "0000:3b:00.0"} {
		for name, text := range map[string]string{"vendor": "0x10de", "device": "0x2335",
			"class": "0x030200", "uevent": "DRIVER=nvidia\n"} {
			files["sys/bus/pci/devices/"+bdf+"/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	for _, address := range []string{"0000:3B:00.0", "00000000:3b:00.0"} {
		r := Detect(t.Context(), Machine{Files: files, Ask: func(vendor string) ([]Answer, error) {
			if vendor != NVIDIA {
				return nil, nil
			}
			return []Answer{{Name: "NVIDIA H200", BDF: address, Arch: "sm_90", MemoryMiB: 143771}},
				nil
		}})
		if len(r.GPUs) != 2 || r.GPUs[0].Usable || r.GPUs[0].Reason != notShown ||
			!r.GPUs[1].Usable || r.GPUs[1].Name != "NVIDIA H200" {
			t.Errorf("%s: %+v", address, r.GPUs)
		}
	}
}

// TestNumber: cards listed by slot carry the driver's own numbers, whichever order it has; AMD's
// follow NVIDIA's.
func TestNumber(t *testing.T) {
	files := fstest.MapFS{"proc/driver/nvidia/version": {Data: []byte("NVRM version: NVIDIA UNIX " +
		"x86_64 Kernel Module  570.86.15  x\n")}}
	for bdf, device := range map[string]string{"0000:1b:00.0": "0x2684", "0000:3b:00.0": "0x2335"} {
		for name, text := range map[string]string{"vendor": "0x10de", "device": device,
			"class": "0x030200", "uevent": "DRIVER=nvidia\n"} {
			files["sys/bus/pci/devices/"+bdf+"/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	r := Detect(t.Context(), Machine{Files: files, Ask: func(vendor string) ([]Answer, error) {
		if vendor != NVIDIA {
			return []Answer{{Name: "AMD Radeon AI PRO R9700", BDF: "0000:5b:00.0", Arch: "gfx1201",
				MemoryMiB: 32624, Place: 1}}, nil
		}
		return []Answer{{Name: "NVIDIA H200", BDF: "0000:3b:00.0", Arch: "sm_90", MemoryMiB: 143771,
			Place: 1},
			{Name: "NVIDIA GeForce RTX 4090", BDF: "0000:1b:00.0", Arch: "sm_89", MemoryMiB: 24564,
				Place: 2}}, nil
	}})
	want := map[string]int{"0000:3b:00.0": 0, "0000:1b:00.0": 1, "0000:5b:00.0": 2}
	for _, g := range r.GPUs {
		if n, ok := want[g.BDF]; !ok || g.Number == nil || *g.Number != n {
			t.Errorf("%s at %s: number %v, not %d", g.Name, g.BDF, g.Number, n)
		}
	}
	if len(r.GPUs) != len(want) {
		t.Errorf("%d GPUs: %+v", len(r.GPUs), r.GPUs)
	}
}
