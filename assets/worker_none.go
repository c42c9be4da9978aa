//go:build !gpuworker

package assets

// GPUWorker is empty: this build carries no GPU worker.
var GPUWorker []byte
