package store

// Locks between processes. A download locks a file in .locks that exists only for this, with
// huggingface_hub's path and kind of lock, so that both programs take turns. Readers of weights
// lock the weights themselves, shared, so that a removal detects their use. The operating system
// releases both when a process ends.

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// ErrLocked reports that another process holds a lock.
var ErrLocked = errors.New("locked by another process")

// LockPath is the lock of one blob of a repository, with huggingface_hub's name.
func LockPath(root string, repo Repo, etag string) string {
	return filepath.Join(root, ".locks", repo.Folder(), etag+".lock")
}

// Lock is an exclusive lock that this process holds.
type Lock struct{ file *os.File }

// TryLock takes the lock at path, creating its folder and file. ErrLocked if another process (or
// another Lock of this one) holds it.
func TryLock(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o775); err != nil {
		return nil, fmt.Errorf("making the folder of a lock: %w", err)
	}
	for {
		f, err := Open(path, os.O_RDWR|os.O_CREATE, 0o664)
		if err != nil {
			return nil, fmt.Errorf("opening a lock: %w", err)
		}
		if err := lockFile(f, true); err != nil {
			f.Close()
			if errors.Is(err, ErrLocked) {
				return nil, err
			}
			return nil, fmt.Errorf(
				"locking %s: %w; put the cache on a file system with locks (HF_HUB_CACHE)", path,
				err)
		}
		// A holder that deletes the file on exit leaves us a lock that no other process can see.
		if mine, err := f.Stat(); err == nil {
			if now, err := os.Stat(path); err == nil && os.SameFile(mine, now) {
				return &Lock{f}, nil
			}
		}
		f.Close()
	}
}

// Close releases the lock. The file stays, because deleting it would leave its waiters with locks
// on different files.
func (l *Lock) Close() error { return l.file.Close() }

// Use marks the weight file at path as in use until the Closer is closed or the process ends.
// Without locks in the file system it marks nothing, and the file is usable all the same.
func Use(path string) (io.Closer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	err = lockFile(f, false)
	if errors.Is(err, ErrLocked) {
		f.Close()
		return nil, fmt.Errorf("%s is being deleted by ossrun rm", filepath.Base(path))
	}
	return f, nil
}

// Create creates a file in the folder, whose name begins with prefix, and marks it as in use. If
// another process removes it before the mark, as a dead process's file, Create tries again.
func Create(folder, prefix string) (f *os.File, unmark func(), err error) {
	for range 100 {
		if f, err = os.CreateTemp(folder, prefix+"*"); err != nil {
			return nil, nil, err
		}
		if runtime.GOOS == "windows" { // Windows neither deletes nor renames open files
			return f, func() {}, nil
		}
		mark, refused := Use(f.Name())
		if refused == nil {
			if _, err = os.Stat(f.Name()); err == nil {
				return f, func() { mark.Close() }, nil
			}
			mark.Close()
		}
		err = errors.Join(err, refused)
		f.Close()
	}
	return nil, nil, err
}

// RemoveUnused deletes a file, unless a process has marked it with Use or there are no locks.
func RemoveUnused(path string) {
	f, err := seize(path)
	if err != nil || f == nil {
		return
	}
	refused := os.Remove(path) // while no process can mark it
	f.Close()
	if refused != nil { // Windows deletes no open file
		os.Remove(path)
	}
}

// seize locks an existing file against Use. nil without an error: the file is missing, or its file
// system has no locks.
func seize(path string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := lockFile(f, true); err != nil {
		f.Close()
		if errors.Is(err, ErrLocked) {
			return nil, err
		}
		return nil, nil
	}
	return f, nil
}
