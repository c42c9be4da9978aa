package driver_test

import (
	"fmt"
	"testing"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/gpu/kernels"
)

// TestCubins: the fake takes the machine code of its card and of an earlier one of the same major
// number, finds kernels by their names there, and refuses another card's as a driver does.
func TestCubins(t *testing.T) {
	const refused = 209
	for card, takes := range map[[2]int]map[string]int{
		{8, 0}:  {"sm_80": 0, "sm_86": refused, "sm_90": refused},
		{8, 6}:  {"sm_80": 0, "sm_86": 0, "sm_89": refused},
		{9, 0}:  {"sm_90": 0, "sm_89": refused, "sm_100": refused},
		{12, 1}: {"sm_121": 0, "sm_120": refused},
	} {
		t.Run(fmt.Sprintf("%d.%d", card[0], card[1]), func(t *testing.T) {
			f, err := drivertest.Open(driver.CUDA, drivertest.Machine{Devices: 1, Name: "card",
				Major: card[0], Minor: card[1], Memory: 1 << 30})
			must(t, err)
			c := context(t, f, 0)
			for arch, want := range takes {
				cubin, _ := kernels.CubinFor(arch)
				name := cubin.Name
				image, err := cubin.Read(assets.Kernels)
				must(t, err)
				m, err := c.Load(image)
				if code(err) != want {
					t.Errorf("%s: %v, not %d", name, err, want)
				}
				if err != nil {
					continue
				}
				if _, err := m.Function("norm"); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if _, err := m.Function("nor"); code(err) != 500 {
					t.Errorf("%s has a kernel nor: %v", name, err)
				}
				must(t, m.Close())
			}
			must(t, c.Close())
			must(t, f.Close())
		})
	}
}
