package mapping

// Text files named by a flag: a path that is not a file must not hang this program or fill its
// memory, but shells make pipes for <(command).

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

// MaxSettings is the limit in bytes for settings, a key or a schema; MaxData for questions,
// requests and results.
const (
	MaxSettings = 16 << 20
	MaxData     = 4 << 30
)

// pipeTimeout is how long a pipe may be silent. Tests shorten it.
var pipeTimeout = 30 * time.Second

// OpenText opens a file, or a pipe that a process writes into.
func OpenText(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	stat, err := f.Stat()
	if err == nil && stat.Mode()&os.ModeType&^os.ModeNamedPipe != 0 && path != os.DevNull {
		err = fmt.Errorf("%s %w", path, ErrNotRegular)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadText reads a file or pipe of at most this many bytes, without its byte order mark.
func ReadText(path string, most int64) ([]byte, error) {
	f, err := OpenText(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := readAll(patientPipe{f}, path, most)
	stat, broken := f.Stat()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("%s is a pipe that was silent for %v", path, pipeTimeout)
	case err == nil && broken == nil && len(text) == 0 && stat.Mode()&os.ModeNamedPipe != 0:
		err = fmt.Errorf("%s is a pipe into which no program writes", path)
	}
	return jsondoc.StripBOM(text), err
}

// patientPipe is a pipe with a timeout for every read; files need none.
type patientPipe struct{ *os.File }

func (p patientPipe) Read(b []byte) (int, error) {
	_ = p.SetReadDeadline(time.Now().Add(pipeTimeout))
	return p.File.Read(b)
}

func readAll(r io.Reader, path string, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s has more than %d bytes, which no such file needs", path, most)
	}
	return text, err
}
