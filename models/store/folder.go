package store

// Deleting a folder of weights that is in no Hugging Face cache: what ossrun itself converted.

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// RemoveFolder deletes a folder and what is in it, and says how many bytes the disk gets back. *InUseError when a running ossrun reads a file
// of it; then nothing was deleted.
func RemoveFolder(folder string) (freed int64, err error) {
	var held []io.Closer
	release := func() {
		for _, f := range held {
			f.Close()
		}
		held = nil
	}
	defer release()
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		f, err := seize(path)
		if errors.Is(err, ErrLocked) {
			return &InUseError{path, "a running ossrun"}
		}
		if f != nil {
			held = append(held, f)
		}
		freed += occupied(info)
		return err
	})
	if err != nil {
		return 0, err
	}
	if runtime.GOOS == "windows" {
		release() // an open file cannot be deleted there
	}
	return freed, os.RemoveAll(folder)
}
