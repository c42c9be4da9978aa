// Command ossrun-gpu is the GPU worker that a static release carries: gpu/worker's other side and nothing else. assets/release/build-static compiles it for
// glibc and embeds it; a dynamic build is its own worker (ossrun --isolate).
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/ossrun/ossrun/gpu/card"
	"github.com/ossrun/ossrun/gpu/worker"
	"github.com/ossrun/ossrun/runtime/engine"
)

func main() {
	if err := worker.Serve(open); err != nil {
		fmt.Fprintln(os.Stderr, "ossrun:", err)
		os.Exit(1)
	}
}

func open(gpus []int) (engine.Device, error) {
	c, err := card.Open(gpus)
	if err != nil {
		return nil, err
	}
	c.Trust(context.Background(), card.Records())
	return c, nil
}
