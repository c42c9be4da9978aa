//go:build gpuworker

package assets

import _ "embed"

// GPUWorker is the GPU worker as gzip: the program that loads the GPU driver for a static
// executable, which cannot. A release build adds it (docs/release.md); builds without the tag
// gpuworker have none.
//
//go:embed worker/amd64.gz
var GPUWorker []byte
