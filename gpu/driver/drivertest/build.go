// Package drivertest is a GPU driver without a GPU: a shared library with the symbols of libcuda or
// libamdhip64 that runs the real kernels by emulation, refuses what a driver refuses, fails on
// demand, and counts what is not given back. library/ is its C++; tests build it and open it by its
// path, as any program could.
//
// What it does not know: time. Its clocks measure the emulation, and no figure taken through it
// says anything about a GPU.
package drivertest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ossrun/ossrun/gpu/driver"
)

// layouts are the kinds of GPU that the kernels are emulated as: the lanes of a warp and the layout
// of its matrix fragments.
var layouts = map[driver.API]string{driver.CUDA: "nv", driver.HIP: "cdna"}

var building sync.Mutex

// Build compiles the library for an API with g++ and returns its path. It lies in the user's cache
// under a hash of its sources, so that it is compiled once for each change; several processes may
// build at once.
func Build(api driver.API) (string, error) {
	building.Lock()
	defer building.Unlock()
	emulated, err := exec.Command(filepath.Join(kernels(), "host.sh"), layouts[api]).Output()
	if err != nil {
		return "", fmt.Errorf("building the kernels for the host: %w", err)
	}
	object := strings.TrimSpace(string(emulated)) // its name is a hash of all that is in it
	sources, all, err := find(api)
	if err != nil {
		return "", fmt.Errorf("the fake driver's sources: %w", err)
	}
	options := []string{"-std=c++17", "-O1", "-g1", "-Wall", "-Wextra", "-fPIC",
		"-fvisibility=hidden", "-pthread", "-I", kernels()}
	h := sha256.New()
	fmt.Fprintln(h, options, object)
	for _, path := range all {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, path, len(data))
		h.Write(data)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "ossrun-drivertest")
	target := filepath.Join(folder, map[driver.API]string{driver.CUDA: "libcuda-",
		driver.HIP: "libamdhip64-"}[api]+hex.EncodeToString(h.Sum(nil)[:8])+".so")
	if _, err := os.Stat(target); err == nil {
		return target, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(folder, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	made := filepath.Join(work, "made.so")
	objects, err := compile(work, sources, options)
	if err != nil {
		return "", err
	}
	if err := run("g++", append([]string{"-shared", "-pthread", "-o", made, object},
		objects...)...); err != nil {
		return "", err
	}
	return target, os.Rename(made, target)
}

// compile makes one object per source, as many at once as there are processors.
func compile(work string, sources, options []string) ([]string, error) {
	objects := make([]string, len(sources))
	var all errgroup.Group
	all.SetLimit(runtime.NumCPU())
	for i, source := range sources {
		objects[i] = filepath.Join(work, fmt.Sprintf("%d.o", i))
		all.Go(func() error {
			return run("g++", slices.Concat(options, []string{"-c", "-x", "c++", source, "-o",
				objects[i]})...)
		})
	}
	return objects, all.Wait()
}

func run(name string, arguments ...string) error {
	c := exec.Command(name, arguments...)
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, said.Bytes())
	}
	return nil
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

func library() string { return filepath.Join(Root(), "gpu", "driver", "drivertest", "library") }
func kernels() string { return filepath.Join(Root(), "gpu", "kernels") }

// find lists what is compiled for an API, and everything that goes into it.
func find(api driver.API) (sources, all []string, err error) {
	other := map[driver.API]string{driver.CUDA: "hip.cpp", driver.HIP: "cuda.cpp"}[api]
	files, err := filepath.Glob(filepath.Join(library(), "*"))
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		if filepath.Base(file) == other {
			continue
		}
		all = append(all, file)
		if filepath.Ext(file) == ".cpp" {
			sources = append(sources, file)
		}
	}
	if len(sources) == 0 {
		return nil, nil, fmt.Errorf("none in %s", library())
	}
	return sources, all, nil
}
