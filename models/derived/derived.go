// Package derived stores files that are made of other files and can be made again: 8-bit copies of
// weights, GGUF weights in the released order, parts of an import, pages of KV.
//
// What must stay true: a file is complete under its name, because it is written under a temporary
// one and renamed. So a dead process leaves no partial file, and if two processes write a file at
// once, one of two equal files stays. A dead process's temporary file is recognised by its lock,
// which ended with the process. Checksums in the file find changed bytes (sums.go).
package derived

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ossrun/ossrun/models/store"
)

const syncBytes = 64 << 20 // so that little unsynced data accumulates

// CheckRoom returns an error if a folder's disk has fewer free bytes.
func CheckRoom(folder string, bytes int64) error {
	if free, err := store.Free(folder); err == nil && free < bytes {
		return fmt.Errorf("%s has %.1f GB free, %.1f GB are wanted", folder, float64(free)/1e9,
			float64(bytes)/1e9)
	}
	return nil
}

// File is a file being written.
type File struct {
	*os.File
	unsynced atomic.Int64
}

// WriteAt writes a piece. It may be called concurrently.
func (f *File) WriteAt(data []byte, offset int64) (int, error) {
	n, err := f.File.WriteAt(data, offset)
	if err == nil && f.unsynced.Add(int64(n)) >= syncBytes {
		f.unsynced.Store(0)
		err = f.Sync()
	}
	return n, err
}

// Write creates or replaces the file at path, once its content is on disk. fill writes it.
func Write(path string, fill func(f *File) error) error {
	return store.Write(path, 0o644, func(f *os.File) error {
		if err := fill(&File{File: f}); err != nil {
			return err
		}
		return f.Sync()
	})
}

// List removes the temporary files of dead processes from a folder and returns its files with a
// suffix, the most recently used first.
func List(folder, suffix string) (list []fs.FileInfo, err error) {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), store.TempPrefix) {
			store.RemoveUnused(filepath.Join(folder, e.Name()))
		} else if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), suffix) {
			list = append(list, info)
		}
	}
	slices.SortFunc(list, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	return list, err
}

// Touch records that a file is used now. If it cannot, the file is only removed sooner.
func Touch(path string) {
	now := time.Now()
	_ = os.Chtimes(path, now, now)
}

// Forget removes temporary files as List does, and of the files with a suffix those that are not
// valid and all but the keep most recently used others. Files in use by a running ossrun stay.
func Forget(folder, suffix string, keep int, valid func(path string) bool) {
	list, _ := List(folder, suffix) // a missing folder has none
	for _, e := range list {
		if path := filepath.Join(folder, e.Name()); !valid(path) || keep <= 0 {
			store.RemoveUnused(path)
		} else {
			keep--
		}
	}
}
