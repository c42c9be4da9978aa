//go:build gpuworker

package assets

import "embed"

// Kernels is empty: a static executable's worker, which loads the GPU's driver, carries them.
var Kernels embed.FS
