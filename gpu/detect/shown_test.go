package detect

import (
	"testing"
	"testing/fstest"
)

// TestNotShown: of two cards on the bus the driver shows one, by an address in its own form; the other is not used, and the reason is told.
func TestNotShown(t *testing.T) {
	files := fstest.MapFS{"proc/driver/nvidia/version": {Data: []byte("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  x\n")}}
	for _, bdf := range []string{"0000:1b:00.0", "0000:3b:00.0"} {
		for name, text := range map[string]string{"vendor": "0x10de", "device": "0x2335", "class": "0x030200", "uevent": "DRIVER=nvidia\n"} {
			files["sys/bus/pci/devices/"+bdf+"/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	for _, address := range []string{"0000:3B:00.0", "00000000:3b:00.0"} {
		r := Detect(t.Context(), Machine{Files: files, Ask: func(vendor string) ([]Answer, error) {
			if vendor != NVIDIA {
				return nil, nil
			}
			return []Answer{{Name: "NVIDIA H200", BDF: address, Arch: "sm_90", MemoryMiB: 143771}}, nil
		}})
		if len(r.GPUs) != 2 || r.GPUs[0].Usable || r.GPUs[0].Reason != notShown || !r.GPUs[1].Usable || r.GPUs[1].Name != "NVIDIA H200" {
			t.Errorf("%s: %+v", address, r.GPUs)
		}
	}
}
