// Which kernels a build has, as short hashes for `ossrun version`: two builds that compute the same
// way say the same.

package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/runtime/serve"
)

// kernelHashes are the first 12 digits of SHA-256: over names and contents of the CPU engine's
// sources, and over the manifest of the compiled GPU kernels, which holds the digest of each.
type kernelHashes struct {
	CPU string `json:"cpu"`
	GPU string `json:"gpu"`
}

func kernels() (kernelHashes, error) {
	host, err := hashFiles(serve.CPUSources())
	if err != nil {
		return kernelHashes{}, err
	}
	return kernelHashes{host, assets.KernelHash()}, nil
}

// hashFiles hashes all files of fsys in the order of their names; "" when there are none.
func hashFiles(fsys fs.FS) (string, error) {
	sum, files := sha256.New(), 0
	err := fs.WalkDir(fsys, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(fsys, path)
		if err != nil {
			return err
		}
		files++
		fmt.Fprintf(sum, "%s %d\n", path, len(text))
		sum.Write(text)
		return nil
	})
	if err != nil || files == 0 {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil))[:12], nil
}
