package kernels

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// The digest of the sources, by which the generator and a test find artefacts of older ones.

// Manifest is assets/kernels/manifest.json: the sources and tools of the artefacts next to it.
type Manifest struct {
	Artefacts map[string]Artefact `json:"artefacts"`
}

type Artefact struct {
	Sources   string   `json:"sources"` // Digest of the sources
	SHA256    string   `json:"sha256"`
	Bytes     int      `json:"bytes"`
	Compiler  string   `json:"compiler"` // one line of its --version
	Flags     []string `json:"flags"`
	PTXDigest string   `json:"of,omitempty"` // of a cubin: SHA256 of the PTX that was assembled
}

// Digest is the SHA-256 of the device compilers' input in dir: *.cu and *.h.
func Digest(dir string) (string, error) {
	var files []string
	for _, pattern := range []string{"*.cu", "*.h"} {
		matches, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return "", err
		}
		files = append(files, matches...)
	}
	if len(files) == 0 {
		return "", fmt.Errorf("no kernel sources in %s", dir)
	}
	slices.Sort(files)
	h := sha256.New()
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n", filepath.Base(file), len(data))
		h.Write(data)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
