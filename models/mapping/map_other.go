//go:build !unix && !windows

package mapping

// Systems without a mapping that Go reaches: the file is read whole.

import (
	"io"
	"os"
)

// mapFile reads the first size bytes of f.
func mapFile(f *os.File, size int) (data []byte, unmap func() error, err error) {
	data = make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, int64(size)), data); err != nil {
		return nil, nil, err
	}
	return data, func() error { return nil }, nil
}
