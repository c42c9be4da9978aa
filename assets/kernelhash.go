package assets

// The GPU kernels of a build. An executable that leaves them to its worker reports the same hash as
// the worker, so the hash is of the manifest, which every build has. The manifest holds the
// kernels' digests, which a test of gpu/kernels compares with their bytes.

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
