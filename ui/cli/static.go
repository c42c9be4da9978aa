//go:build static

package cli

import "github.com/ossrun/ossrun/assets"

// linkedStatically: this executable has no dynamic loader, so it cannot load a GPU driver into itself (assets/release/go sets the tag).
const linkedStatically = true

// gpuNote is what doctor says of the GPU beside the rest, when no worker is inside.
func gpuNote() string {
	if len(assets.GPUWorker) > 0 {
		return ""
	}
	return "; " + noWorker
}

const noWorker = "this static executable cannot load GPU drivers and carries no worker that could: the GPU needs the dynamic build (go build .)"
