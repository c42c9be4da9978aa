package detect

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"
)

// NVIDIA's query finds its card by address whatever the rows' order, and values that are not there
// are left out.
func TestSensorsOfNVIDIA(t *testing.T) {
	r := Result{GPUs: []GPU{{Vendor: NVIDIA, BDF: "0000:1b:00.0", Usable: true},
		{Vendor: NVIDIA, BDF: "0000:43:00.0", Usable: true, FreeMiB: 7}, {Vendor: NVIDIA,
			BDF: "0000:99:00.0", Usable: true}}}
	var asked []string
	r.ReadSensors(t.Context(),
		Machine{Run: func(_ context.Context, name string, args ...string) (Output,
			error) {
			asked = append(asked, name)
			return Output{Text: "pci.bus_id, memory.free [MiB], temperature.gpu, power.draw [W], " +
				"clocks.current.sm [MHz], clocks.current.memory [MHz]\n" +
				"00000000:43:00.0, 100 MiB, [N/A], [N/A], 345 MHz, 405 MHz\n" +
				"00000000:1B:00.0, 143167 MiB, 31, 76.85 W, 1980 MHz, 3201 MHz\n"}, nil
		}})
	if len(asked) != 1 {
		t.Errorf("asked %v", asked)
	}
	if s := r.GPUs[0].Sensors; s == nil || *s != (Sensors{31, 76.85, 1980, 3201}) ||
		r.GPUs[0].FreeMiB != 143167 {
		t.Errorf("%+v, free %d", s, r.GPUs[0].FreeMiB)
	}
	if s := r.GPUs[1].Sensors; s == nil || *s != (Sensors{ClockMHz: 345, MemoryMHz: 405}) ||
		r.GPUs[1].FreeMiB != 7 {
		t.Errorf("%+v, free %d", s, r.GPUs[1].FreeMiB)
	}
	if s := r.GPUs[2].Sensors; s != nil {
		t.Errorf("a card that nobody spoke of has %+v", s)
	}
}

// AMD's are files; power has two names.
func TestSensorsOfAMD(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s + "\n")} }
	const a, b = "sys/bus/pci/devices/0000:03:00.0", "sys/bus/pci/devices/0000:07:00.0"
	r := Result{GPUs: []GPU{{Vendor: AMD, BDF: "0000:03:00.0"}, {Vendor: AMD, BDF: "0000:07:00.0"},
		{Vendor: AMD, BDF: "0000:0a:00.0"}, {Vendor: AMD}}}
	r.ReadSensors(t.Context(), Machine{Files: fstest.MapFS{
		a + "/mem_info_vram_total": file("34208743424"), a +
			"/mem_info_vram_used": file("1073741824"),
		a + "/hwmon/hwmon4/temp1_input": file("45000"), a +
			"/hwmon/hwmon4/power1_average": file("31000000"),
		a + "/hwmon/hwmon4/freq1_input": file("2350000000"), a +
			"/hwmon/hwmon4/freq2_input": file("1258000000"),
		b + "/hwmon/hwmon5/power1_input": file("140000000"), b +
			"/hwmon/hwmon5/temp1_input": file("no"),
	}})
	if s := r.GPUs[0].Sensors; s == nil || *s != (Sensors{45, 31, 2350, 1258}) ||
		r.GPUs[0].FreeMiB != 31600 {
		t.Errorf("%+v, free %d", s, r.GPUs[0].FreeMiB)
	}
	if s := r.GPUs[1].Sensors; s == nil || *s != (Sensors{Watts: 140}) || r.GPUs[1].FreeMiB != 0 {
		t.Errorf("%+v", s)
	}
	if r.GPUs[2].Sensors != nil || r.GPUs[3].Sensors != nil {
		t.Error("sensors of a card without files")
	}
}

// A tool that is missing, or says something else, costs the sensors alone.
func TestSensorsOfNobody(t *testing.T) {
	for _, run := range []func(context.Context, string, ...string) (Output, error){nil,
		func(context.Context, string, ...string) (Output, error) {
			return Output{},
				errors.New("not there")
		},
		func(context.Context, string, ...string) (Output, error) {
			return Output{Text: "No devices were found", Exit: 6}, nil
		}} {
		r := Result{GPUs: []GPU{{Vendor: NVIDIA, BDF: "0000:1b:00.0", Usable: true}}}
		if r.ReadSensors(t.Context(), Machine{Run: run}); r.GPUs[0].Sensors != nil {
			t.Errorf("%+v", r.GPUs[0].Sensors)
		}
	}
}
