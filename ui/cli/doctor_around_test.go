package cli

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/runtime/remote/vllm"
	"github.com/ossrun/ossrun/runtime/serve/doctor"
)

func TestDoctorSeesServersAndCache(t *testing.T) {
	t.Parallel()
	s := askDemo(t)
	file := filepath.Join(t.TempDir(), "report.tar.gz")
	out := s.with("doctor", "--device", "cpu", "--json", "--bundle", file)
	var r doctor.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(r.Servers) != 1 || r.Servers[0].URL != s.url || r.Servers[0].Models[0] != "demo" {
		t.Errorf("%+v", r.Servers)
	}
	if !strings.HasPrefix(r.Cache.Path, s.home) || r.Cache.Free <= 0 {
		t.Errorf("%+v", r.Cache)
	}
	for _, m := range r.Models {
		if m.ReadBound <= 0 {
			t.Errorf("%s: no speed", m.Name)
		}
		if m.Fits != (m.Expected > 0) && m.Name != "demo" {
			t.Errorf("%s: %v tokens a second are expected", m.Name, m.Expected)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Size() < 500 || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

func TestTroublesOfVLLM(t *testing.T) {
	for card, want := range map[string]int{"NVIDIA H100 80GB HBM3": 5, "NVIDIA B200": 5,
		"NVIDIA A100-SXM4-80GB": 4, "AMD Instinct MI300X": 1, "NVIDIA GeForce RTX 5090": 0, "": 0} {
		list := vllm.TroublesOn(card)
		if len(list) != want {
			t.Errorf("%s: %d troubles", card, len(list))
		}
		for _, one := range list {
			if one.NotHere == "" || one.Cure == "" || one.Place == "" {
				t.Errorf("%+v", one)
			}
		}
	}
}

// The port of ossrun serve: free, another program's, one of ours.
func TestDoctorSeesThePort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if p := portFor(address, nil); !strings.Contains(p.Unavailable, "another program") {
		t.Errorf("%+v", p)
	}
	if p := portFor(address, []doctor.Server{{URL: "http://" + address}}); !strings.Contains(p.Unavailable,
		"servers above") {
		t.Errorf("%+v", p)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if p := portFor(address, nil); p.Unavailable != "" || p.Address != address {
		t.Errorf("%+v", p)
	}
	if p := portFor("192.0.2.1:8000", nil); p.Unavailable == "" {
		t.Error("a foreign address is free")
	}
}

func TestDoctorNamesTheDriver(t *testing.T) {
	var b strings.Builder
	printGPUs(&report{Writer: &b}, detect.Result{DriverVersion: "570.86.15", OpenModule: true, AMDDriver: "6.12.12",
		GPUs: []detect.GPU{{Name: "AMD Instinct MI300X", MECFirmware: 138, Usable: true}}})
	for _, want := range []string{"driver\tNVIDIA 570.86.15, open kernel module\n",
		"driver\tamdgpu 6.12.12\n", "MEC firmware 138"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %s", want, b.String())
		}
	}
}
