//go:build !static

package gpu

// Static: an executable of go build loads the GPU driver into itself.
const Static = false

// NoWorker is what a static executable without a worker says.
const NoWorker = ""
