// Opening files that others may have put there: a pipe, a device or a file without end must not
// hang this program or fill its memory.

package mapping

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ErrNotRegular is wrapped by errors of paths that are not files.
var ErrNotRegular = errors.New("is not a regular file")

// OpenRegular opens the file at path for reading. It does not wait for the other end of a pipe.
func OpenRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	stat, err := f.Stat()
	if err == nil && !stat.Mode().IsRegular() {
		err = fmt.Errorf("%s %w", path, ErrNotRegular)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadFile reads the file at path, which must have at most this many bytes.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s has more than %d bytes, which no such file needs", path, most)
	}
	return text, err
}
