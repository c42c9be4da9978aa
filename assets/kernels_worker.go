//go:build gpuworker

package assets

import "embed"

// Kernels is empty: a static executable loads no GPU driver, and its worker, which does, carries
// the kernels.
var Kernels embed.FS
