package assets

// Which GPU kernels a build has. The executable that leaves them to its worker says the same as the
// worker does, so this is told by the manifest, which every build has: it holds the digest of each
// of them, and a test of gpu/kernels holds it to their bytes.

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"sync"
)

//go:embed kernels/manifest.json
var kernelManifest []byte

// KernelHash is the first 12 digits of SHA-256 over the manifest of the compiled GPU kernels.
var KernelHash = sync.OnceValue(func() string {
	sum := sha256.Sum256(kernelManifest)
	return hex.EncodeToString(sum[:])[:12]
})
