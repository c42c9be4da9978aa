//go:build !static

package cli

// linkedStatically: an executable of go build loads the GPU driver into itself.
const linkedStatically = false

// gpuNote is what a static executable says of the GPU.
const gpuNote = ""
