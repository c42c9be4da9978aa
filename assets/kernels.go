//go:build !gpuworker

package assets

import "embed"

// Kernels are the GPU kernels, compiled: PTX and AMD code objects by architecture,
// kernels/sm_80.ptx to kernels/gfx1201.co, cubins as gzip, kernels/sm_80.cubin.gz to
// kernels/sm_121a.cubin.gz, and kernels/manifest.json. `go generate ./gpu/...` builds them;
// gpu/kernels says what they are, and kernels.CubinFor finds the cubin of a card.
//
//go:embed kernels
var Kernels embed.FS
