package assets

import "embed"

// Kernels are the GPU kernels, compiled: PTX and AMD code objects by architecture, kernels/sm_80.ptx to kernels/gfx1201.co, and
// kernels/manifest.json. `go generate ./gpu/...` builds them; gpu/kernels says what they are.
//
//go:embed kernels
var Kernels embed.FS
