package detect

// The readers of outside text on their own: what they make of odd input, and that no input breaks
// them.

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func TestModuleVersion(t *testing.T) {
	for text, want := range map[string]string{
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.84  Release Build":      "595.84",
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.173.02  Tue Jun 23 08:38:17 UTC": "580.173.02",
		"NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.4.0  Release Build":    "540.4.0",
		"something else 555.1": "",
		"":                     "",
	} {
		if got, _ := moduleVersion(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for v, want := range map[int]string{90010: "gfx90a", 90402: "gfx942", 90500: "gfx950",
		100300: "gfx1030", 110000: "gfx1100", 110501: "gfx1151", 120001: "gfx1201"} {
		if got := gfxName(v); got != want {
			t.Errorf("%d: %s, want %s", v, got, want)
		}
	}
	for in, want := range map[string]string{"00000000:0E:00.0": "0000:0e:00.0",
		"0000000F:01:00.0": "000f:01:00.0", "0009:01:00.0": "0009:01:00.0", "": "", "x": "x"} {
		if got := normalBDF(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := kfdBDF(0, 34304); got != "0000:86:00.0" {
		t.Error(got)
	}
	for in, want := range map[string]int{"sm_90a": 90, "sm_121": 121, "gfx942": 0, "": 0,
		"sm_x": 0} {
		if got := smOf(in); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
}

// The list of chips says what the recorded figures say, and nothing is lost on the way.
func TestChipsAgreeWithTheirSource(t *testing.T) {
	b := hosttest.Must(os.ReadFile("testdata/gpus.json"))(t)
	var source struct {
		GPUs []map[string]json.RawMessage `json:"gpus"`
	}
	hosttest.Check(t, json.Unmarshal(b, &source))
	if len(source.GPUs) != len(Chips()) {
		t.Fatalf("%d chips, the source has %d", len(Chips()), len(source.GPUs))
	}
	for i, g := range source.GPUs {
		c := Chips()[i]
		figure := func(name string, got float64) {
			var f struct {
				Value   *float64 `json:"value"`
				Sources []string `json:"sources"`
			}
			if err := json.Unmarshal(g[name], &f); err != nil {
				t.Fatalf("%s: %s: %v", c.ID, name, err)
			}
			if want := f.Value; want != nil && *want != got || want == nil && got != 0 {
				t.Errorf("%s: %s is %v, the source says %v", c.ID, name, got, want)
			}
		}
		figure("memory_mib", float64(c.MemoryMiB))
		figure("units", float64(c.Units))
		figure("bandwidth_gbs", c.Bandwidth)
		figure("bf16_tflops", c.BF16)
		figure("int8_tops", c.Int8)
		figure("fp8_tflops", c.FP8)
		figure("fp4_tflops", c.FP4)
		figure("shared_per_block_optin_bytes", float64(c.Shared))
		figure("l2_bytes", float64(c.L2))
		if len(c.PCI) == 0 || len(c.Names) == 0 || c.Arch == "" {
			t.Errorf("%s lacks ids, names or an architecture", c.ID)
		}
	}
}

// One id, several products: units and memory decide.
func TestSharedIDs(t *testing.T) {
	if c := chipOf("1002:744c", 96, 0); c == nil || c.ID != "amd-rx-7900-xtx" {
		t.Errorf("%+v", c)
	}
	if c := chipOf("1002:744c", 84, 20464); c == nil || c.ID != "amd-rx-7900-xt" {
		t.Errorf("%+v", c)
	}
	if c := chipOf("10de:ffff", 0, 0); c != nil {
		t.Errorf("%+v", c)
	}
}

// Nothing there at all: no GPUs, no problem, no sentence.
func TestEmptyMachine(t *testing.T) {
	for _, m := range []Machine{{}, {Files: fstest.MapFS{}}, {Platform: "windows"}} {
		if r := Detect(t.Context(), m); len(r.GPUs) > 0 || len(r.Problems) > 0 || r.Why() != "" {
			t.Errorf("%+v", r)
		}
	}
}

// This machine, whatever it is: detection ends and says why where no GPU is used.
func TestHere(t *testing.T) {
	r := Detect(t.Context(), ThisMachine(nil))
	if r.Platform == "" {
		t.Error("where?")
	}
	for _, g := range r.GPUs {
		if !g.Usable && g.Reason == "" {
			t.Errorf("%+v is not used and nothing says why", g)
		}
	}
}

func FuzzDetect(f *testing.F) {
	f.Add("index, name, memory.total [MiB]\n0, NVIDIA H200, 143771 MiB",
		"  Name: gfx942\n  Chip ID: 29857(0x74a1)\n  BDFID: 9728",
		`{"card0":{"Card Model":"0x744c"}}`,
		"simd_count 1216\ngfx_target_version 90402\nsimd_per_cu 4\nlocation_id 9728",
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.173.02")
	f.Add("No devices were found", "ROCk module is NOT loaded", "", "simd_count 4", "x")
	f.Fuzz(func(t *testing.T, smi, rocminfo, rocm, properties, version string) {
		for _, text := range []string{smi, rocminfo, rocm} {
			smiAnswers(text)
			agents(text)
			smiCards(text)
		}
		files := fstest.MapFS{
			"proc/driver/nvidia/version":                                {Data: []byte(version)},
			"proc/driver/nvidia/gpus/0000:01:00.0/information":          {Data: []byte(smi)},
			"sys/class/kfd/kfd/topology/nodes/1/properties":             {Data: []byte(properties)},
			"sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties": {Data: []byte(properties)},
			"sys/bus/pci/devices/0000:01:00.0/vendor":                   {Data: []byte("0x10de")},
			"sys/bus/pci/devices/0000:01:00.0/class":                    {Data: []byte("0x030000")},
			"sys/bus/pci/devices/0000:01:00.0/device":                   {Data: []byte(rocm)},
			"sys/class/drm/card0/device/mem_info_gtt_total":             {Data: []byte(version)},
			"sys/bus/pci/devices/" + strings.Repeat("0", 4) +
				":02/vendor": {Data: []byte("0x1002")},
		}
		r := Detect(t.Context(), Machine{Files: files})
		for _, g := range r.GPUs {
			if !g.Usable && g.Reason == "" {
				t.Errorf("%+v is not used and nothing says why", g)
			}
		}
	})
}

// rocm-smi is asked for the cards, and on MI300 for the firmware, in the guide's words.
func TestRocmSmi(t *testing.T) {
	for _, c := range []struct {
		arch, firmware string
		want           int
	}{
		{"gfx942", "GPU[0]\t\t: MEC firmware version: \t138\nGPU[0]\t\t: MEC2 firmware version: \t140\n",
			138},
		{"gfx942", "", 0}, {"gfx950", "not asked", 0},
	} {
		asked := ""
		m := Machine{Run: func(_ context.Context, name string, args ...string) (Output, error) {
			asked += name + " " + strings.Join(args, " ") + "\n"
			if slices.Contains(args, "--showfw") {
				return Output{Text: c.firmware}, nil
			}
			return Output{Text: `{"card0": {"Card Series": "AMD Instinct", "Node ID": "2", ` +
				`"GFX Version": "` + c.arch + `"}, "card1": {"Node ID": "3"}}`}, nil
		}}
		gpus := new(Result).rocmTools(t.Context(), m)
		want := "rocm-smi --showproductname --showmeminfo vram --json\n"
		if c.arch == "gfx942" {
			want += "rocm-smi --showfw\n"
		}
		if len(gpus) != 2 || gpus[1].MECFirmware != c.want || asked != want {
			t.Errorf("%s: %+v, asked\n%s", c.arch, gpus, asked)
		}
	}
}

// TestKFDArch: what an AMD card's kernel driver shows.
func TestKFDArch(t *testing.T) {
	files := fstest.MapFS{}
	for name, properties := range map[string]string{
		"0": "cpu_cores_count 64\ngfx_target_version 0\nlocation_id 0\ndomain 0\n",
		"1": "gfx_target_version 90402\nlocation_id 1280\ndomain 0\n",
		"2": "gfx_target_version 90010\nlocation_id 35841\ndomain 2\n",
		"3": "gfx_target_version 120001\nlocation_id 768\ndomain 0\n",
	} {
		files[kfdNodes+"/"+name+"/properties"] = &fstest.MapFile{Data: []byte(properties)}
	}
	for pci, want := range map[string]string{"0000:05:00.0": "gfx942", "0002:8C:00.1": "gfx90a",
		"0000:03:00.0": "gfx1201", "0000:06:00.0": "",
		"0002:8c:00.0": "gfx90a"} { // the last: a partition whose number the runtime leaves out
		if got := KFDArch(files, pci); got != want {
			t.Errorf("%s is %q, not %q", pci, got, want)
		}
	}
}

// Each problem that the code finds by itself has its remedy in problems.json.
func TestProblemsHaveRemedies(t *testing.T) {
	found := regexp.MustCompile(`r\.problem\((NVIDIA|AMD), "([^"]+)"`)
	n := 0
	for _, file := range []string{"amd.go", "nvidia.go", "judge.go"} {
		text := hosttest.Must(os.ReadFile(file))(t)
		for _, m := range found.FindAllSubmatch(text, -1) {
			var r Result
			r.problem(strings.ToLower(string(m[1])), string(m[2]), "text")
			if n++; r.Problems[0].Remedy == "" {
				t.Errorf("%s %s has no remedy", m[1], m[2])
			}
		}
	}
	if n < 9 {
		t.Errorf("%d problems", n)
	}
}
