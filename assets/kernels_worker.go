//go:build gpuworker

package assets

import "embed"

// Kernels is empty: a static executable's worker, which loads the GPU's driver, has them.
var Kernels embed.FS
