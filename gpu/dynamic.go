//go:build !static

package gpu

// Static: an executable of go build loads the GPU driver into itself.
const Static = false

// NoWorker is the message of a static executable without a worker.
const NoWorker = ""
