// Command ossrun-gpu is the GPU worker that a static release carries: the other side of gpu/worker
// and nothing else. assets/release/build-static compiles it for glibc and embeds it; a dynamic
// build is its own worker (ossrun --isolate). The CPU engine is in it for the experts of a model
// that the GPUs have no room for.
package main

import (
	"fmt"
	"os"

	"github.com/ossrun/ossrun/gpu"
)

func main() {
	if err := gpu.RunWorker(); err != nil {
		fmt.Fprintln(os.Stderr, "ossrun:", err)
		os.Exit(1)
	}
}
