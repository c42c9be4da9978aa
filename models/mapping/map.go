// Package mapping maps files into memory and reads their pages, several at a time.
//
// What must stay true: a mapping is read-only and shared, so that processes use one copy in the
// page cache; loading never evicts pages that were cached before.
package mapping

import (
	"errors"
	"fmt"
	"os"
)

// ErrTruncated is wrapped by Damaged.
var ErrTruncated = errors.New("has become shorter while it is in use")

// Open maps the file at path, which must have exactly size bytes, read-only.
func Open(path string, size int64) (data []byte, unmap func() error, err error) {
	f, have, err := OpenRegular(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() // a mapping outlives its descriptor
	if have != size {
		return nil, nil, fmt.Errorf("%s has %d bytes, not %d. Remove it, and it is made again",
			path, have, size)
	}
	return File(f, size)
}

// File maps the first size bytes of an open file read-only. The mapping stays valid when the file
// is closed.
func File(f *os.File, size int64) (data []byte, unmap func() error, err error) {
	if size <= 0 || size > int64(^uint(0)>>1) {
		return nil, nil, fmt.Errorf("%d bytes cannot be mapped", size)
	}
	return mapFile(f, int(size))
}

type Range struct{ Begin, End int64 }

// Opening files of other users: a pipe, a device or an endless file must not hang this program or
// fill its memory.

// ErrNotRegular is wrapped by errors about paths that are not files.
var ErrNotRegular = errors.New("is not a regular file")

// OpenRegular opens the file at path for reading and returns its size. It does not wait for the
// other end of a pipe.
func OpenRegular(path string) (_ *os.File, bytes int64, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, 0, err
	}
	stat, err := f.Stat()
	if err == nil && !stat.Mode().IsRegular() {
		err = fmt.Errorf("%s %w", path, ErrNotRegular)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, stat.Size(), nil
}

// ReadFile reads the file at path, which must have at most this many bytes.
func ReadFile(path string, most int64) ([]byte, error) {
	f, _, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, path, most)
}
