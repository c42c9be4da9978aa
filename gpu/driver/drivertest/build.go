// Package drivertest is a GPU driver without a GPU: a shared library with the symbols of libcuda or
// libamdhip64 that runs the real kernels by emulation, refuses what a driver refuses, fails on
// demand, and counts leaks. library/ is its C++; tests build it and open it by its
// path, as any program could.
//
// What it does not know: time. Its clocks measure the emulation, and no figure taken through it
// says anything about a GPU.
package drivertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/gpu/driver"
)

// Build compiles the library for an API with g++, once, and returns its path. It is kept in the
// user's cache under a hash of its sources; several processes may build at once.
func Build(api driver.API) (string, error) { return builds[api]() }

var builds = map[driver.API]func() (string, error){
	driver.CUDA: sync.OnceValues(func() (string, error) { return build(driver.CUDA) }),
	driver.HIP:  sync.OnceValues(func() (string, error) { return build(driver.HIP) }),
}

func build(api driver.API) (string, error) {
	script := filepath.Join(Root(), "gpu", "driver", "drivertest", "build.sh")
	path, err := exec.Command(script, string(api)).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("%w\n%s", err, failed.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("building the fake driver: %w", err)
	}
	return strings.TrimSpace(string(path)), nil
}

// Root is the module's folder, above the one in which a test runs: the library is built where its
// sources are.
func Root() string {
	folder, _ := os.Getwd()
	for folder != filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			break
		}
		folder = filepath.Dir(folder)
	}
	return folder
}
