// Command ossrun-gpu is the GPU worker that a static release carries, compiled for glibc and
// embedded by assets/release/build-static; a dynamic build is its own worker (--isolate). The CPU
// engine is in it for experts that the GPUs have no room for.
package main

import (
	"fmt"
	"os"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/gpu"
	"github.com/ossrun/ossrun/gpu/worker"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "ossrun:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	if len(assets.DemoPack) == 0 { // as it is compiled for a release
		if assets.DemoPack, err = worker.Handed(); err != nil {
			return err
		}
	}
	return gpu.RunWorker()
}
