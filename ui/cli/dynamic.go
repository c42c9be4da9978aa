//go:build !static

package cli

// linkedStatically: an executable of go build loads the GPU driver into itself.
const linkedStatically = false

// gpuNote is what a static executable says of the GPU.
func gpuNote() string { return "" }

// noWorker is what a static executable without a worker says.
const noWorker = ""
