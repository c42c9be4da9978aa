package device

import (
	"context"
	"io/fs"
	"os"
	"runtime"

	"github.com/ossrun/ossrun/gpu/detect"
	"github.com/ossrun/ossrun/gpu/driver"
)

// Opens a vendor's library, however the card is opened. What must stay true: the environment that
// AMD's runtime needs is set before the library is loaded, because the runtime reads it once; what
// the user has set stays.

// machineFiles gives the machine's files; nil where there are none to look at.
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

// SetEnvironment sets the environment variables that this machine's cards need. Call it before
// opening AMD's library.
func SetEnvironment() { settle(machineFiles) }

// settle sets what the cards of a machine need, from its files alone: it loads nothing and runs no
// tool.
func settle(files fs.FS) {
	if files == nil {
		return
	}
	for name, value := range detect.Detect(context.Background(),
		detect.Machine{Files: files}).Environment() {
		if _, set := os.LookupEnv(name); !set {
			// sets C's environment too; it fails only for invalid names, and this one is valid
			os.Setenv(name, value)
		}
	}
}
