package device

import (
	"context"
	"io/fs"
	"os"
	"runtime"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/gpu/driver"
)

// Opening a vendor's library, by whatever way a card is opened. What must stay true: what AMD's
// runtime must find in its environment is there before the library is loaded, since it reads that
// once, and what the user has set stays.

// machineFiles is where the machine's files are looked at, nil where there are none to look at.
var machineFiles = func() fs.FS {
	if runtime.GOOS == "linux" {
		return os.DirFS("/")
	}
	return nil
}()

// openVendor opens one of Libraries.
func openVendor(api driver.API, path string) (*driver.Driver, error) {
	if api == driver.HIP {
		SetEnvironment()
	}
	return driver.Open(api, path)
}

// SetEnvironment sets what this machine's cards need in the environment, for whoever opens AMD's
// library.
func SetEnvironment() { settle(machineFiles) }

// settle sets what the cards of a machine need, by its files alone: nothing is loaded and no tool
// is run.
func settle(files fs.FS) {
	if files == nil {
		return
	}
	for name, value := range detect.Detect(context.Background(),
		detect.Machine{Files: files}).Environment() {
		if _, set := os.LookupEnv(name); !set {
			// in C's environment too; fails for names that no environment can hold, which this is
			// not
			os.Setenv(name, value)
		}
	}
}
