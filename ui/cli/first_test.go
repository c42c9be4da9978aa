package cli

import (
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/runtime/serve"
	"github.com/ossrun/ossrun/ui/chat/screentest"
)

var updateScreens = flag.Bool("update-screens", false, "write the golden screens anew")

// What the first run shows on three screens: each is one screen, and every word is whole.
func TestFirstScreens(t *testing.T) {
	entry, _ := models.Lookup("20b")
	const needs = 13_100_000_000
	plan := serve.Plan{Context: 131072, Total: 20_500_000_000}
	card := detect.GPU{Vendor: detect.NVIDIA, Name: "NVIDIA H100 80GB HBM3", Usable: true}
	for name, c := range map[string]struct {
		f     firstRun
		first []string
	}{
		"cpu": {f: firstRun{cpu: "AMD EPYC 7763 64-Core Processor", cores: 2, disk: 36_100_000_000,
			preview: serve.Preview{Total: 25_300_000_000, Free: 24_400_000_000, Rate: 7.9,
				Needs: needs, Plan: plan}}},
		"small": {f: firstRun{cpu: "Intel(R) Core(TM) i5-8250U CPU @ 1.60GHz", cores: 4, disk: 9e9,
			preview: serve.Preview{Total: 8_200_000_000, Free: 5_900_000_000,
				Needs: needs, PlanErr: errors.New("not enough memory")}}},
		"disk": {f: firstRun{cpu: "AMD Ryzen 5 5600U with Radeon Graphics", cores: 6, disk: 80e9,
			preview: serve.Preview{Total: 16_500_000_000, Free: 9_800_000_000, Rate: 2.4,
				Needs: needs, Plan: serve.Plan{Context: 8192, Total: 8_800_000_000,
					OnDisk: 5_300_000_000}}}},
		"gpu": {f: firstRun{cpu: "INTEL(R) XEON(R) PLATINUM 8562Y+", cores: 16, disk: -1,
			gpus: detect.Result{GPUs: []detect.GPU{card, card}}, preview: serve.Preview{OnGPU: true,
				Needs: needs, Total: 85_000_000_000, Free: 84_300_000_000, Rate: 891,
				Plan: plan}}},
		"elsewhere": {f: firstRun{cpu: "Apple M3 Pro", cores: 12, disk: 212e9,
			preview: serve.Preview{Total: 36e9, Free: 24e9, Rate: 40, Needs: needs, Plan: plan}},
			first: []string{"use gpt-oss:20b, which ollama has here: nothing is downloaded or " +
				"copied"}},
	} {
		c.f.model = entry
		var all strings.Builder
		for _, size := range [][2]int{{80, 24}, {160, 50}, {40, 12}} {
			words := append(c.first[:len(c.first):len(c.first)], c.f.downloadChoice(),
				"talk to the built-in demo: tiny, knows a little about ossrun")
			text := c.f.text(min(size[0], 100), words) + whichOf(len(words))
			screen := screentest.New(size[0], size[1])
			fmt.Fprint(screen, strings.ReplaceAll(text, "\n", "\r\n"))
			rows := strings.Count(text, "\n") + 1
			if over := rows - size[1]; over > 0 && name != "elsewhere" {
				t.Errorf("%s: %d rows more than the screen of %dx%d has", name, over, size[0],
					size[1])
			}
			fmt.Fprintf(&all, "== %dx%d\n%s", size[0], size[1], screen)
		}
		if strings.Contains(all.String(), "GiB") || strings.Contains(all.String(), "MiB") {
			t.Errorf("%s: memory is not told in GB", name)
		}
		goldenScreen(t, "first-"+name, all.String())
	}
}
