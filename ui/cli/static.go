//go:build static

package cli

// linkedStatically: this executable has no dynamic loader, so it cannot load a GPU driver into itself (assets/release/go sets the tag).
const linkedStatically = true

// gpuNote is what doctor says of the GPU beside the rest, when no worker is inside.
const gpuNote = "; this static executable cannot load GPU drivers and carries no worker that could: the GPU needs the dynamic build (go build .)"
