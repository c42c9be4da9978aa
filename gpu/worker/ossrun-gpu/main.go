// Command ossrun-gpu is the GPU worker that a static release carries: gpu/worker's other side and nothing else. assets/release/build-static compiles it for
// glibc and embeds it; a dynamic build is its own worker (ossrun --isolate). The CPU engine is in it for the experts of a model that the GPUs have no room for.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/ossrun/ossrun/gpu/card"
	"github.com/ossrun/ossrun/gpu/spread"
	"github.com/ossrun/ossrun/gpu/worker"
	"github.com/ossrun/ossrun/runtime/engine"
)

func main() {
	if err := worker.Serve(open); err != nil {
		fmt.Fprintln(os.Stderr, "ossrun:", err)
		os.Exit(1)
	}
}

func open(w worker.Wanted) (engine.Device, []string, error) {
	if w.Place != nil {
		return spread.OpenText(context.Background(), w.GPUs, w.Place, card.Records())
	}
	c, err := card.Open(w.GPUs)
	if err != nil {
		return nil, nil, err
	}
	c.Trust(context.Background(), card.Records())
	return c, nil, nil
}
