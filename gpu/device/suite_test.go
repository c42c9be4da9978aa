package device

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/ossrun/ossrun/gpu/driver"
	"github.com/ossrun/ossrun/gpu/driver/drivertest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// What the tests of this folder share: a device whose driver is the fake, and the check that
// nothing of it is left.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testdata = "../../testdata/model/"

// apis are both vendors' interfaces: the CUDA fake has warps of 32, the HIP fake of 64.
var apis = []driver.API{driver.CUDA, driver.HIP}

// open makes a device that the test closes; leaks fail the test.
func open(t testing.TB, api driver.API) (*Device, *drivertest.Fake) {
	t.Helper()
	return openWith(t, api, Options{})
}

// openWith takes Options.Arch for what the fake is to be: the CUDA fake has its compute capability
// then, the HIP fake has no place to tell it.
func openWith(t testing.TB, api driver.API, o Options) (*Device, *drivertest.Fake) {
	t.Helper()
	if o.Arch == "" {
		o.Arch = arch(api)
	}
	m := drivertest.Machine{}
	if card := smOf(o.Arch); card > 0 {
		m = drivertest.Machine{Devices: 1, Name: "Fake " + o.Arch, Major: card / 10,
			Minor: card % 10, Memory: 64 << 30}
	}
	f := hosttest.Must(drivertest.Open(api, m))(t)
	dev := hosttest.Must(Open(f.Driver, o))(t)
	t.Cleanup(func() { closeAll(t, dev, f) })
	return dev, f
}

// closeAll closes a device and its fake; leaks fail the test.
func closeAll(t testing.TB, dev *Device, f *drivertest.Fake) {
	t.Helper()
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if left := f.Leaks(); left != "" {
		t.Errorf("not given back: %s", left)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// smOf is 90 of "sm_90", 0 of an AMD architecture.
func smOf(arch string) (card int) {
	fmt.Sscanf(arch, "sm_%d", &card)
	return card
}

// arch is the card that the fake of an API is unless a test wants another. KFD, which names an AMD
// card, is not faked, so it must be said.
func arch(api driver.API) string {
	return map[driver.API]string{driver.CUDA: "sm_90", driver.HIP: "gfx942"}[api]
}
