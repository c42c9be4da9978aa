//go:build !gpuworker

package assets

import "embed"

// Kernels are the compiled GPU kernels: AMD code objects, kernels/gfx90a.co to kernels/gfx1201.co,
// as gzip cubins, kernels/sm_80.cubin.gz to kernels/sm_121a.cubin.gz, PTX for other cards,
// kernels/sm_80.ptx.gz and kernels/sm_120.ptx.gz, and kernels/manifest.json. `go generate
// ./gpu/...` builds them; gpu/kernels describes them and chooses one for a card.
//
//go:embed kernels
var Kernels embed.FS

// GPUWorker is empty: this build carries no GPU worker.
var GPUWorker []byte
