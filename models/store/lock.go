package store

// Locks between processes. A download locks a file in .locks that exists only for this. It uses
// huggingface_hub's path and kind of lock, so that both programs take turns. Readers of weights
// lock the weights themselves, shared, which is how a removal sees that they are in use. The
// operating system releases both when a process ends, however it ends.

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// ErrLocked says that another process holds a lock.
var ErrLocked = errors.New("locked by another process")

// LockPath is the lock of one blob of a repository, as huggingface_hub names it.
func LockPath(root string, repo Repo, etag string) string {
	return filepath.Join(root, ".locks", repo.Folder(), etag+".lock")
}

// Lock is an exclusive lock that this process holds.
type Lock struct{ file *os.File }

// TryLock takes the lock at path, whose folder and file are made if need be. ErrLocked when another
// process (or another Lock of this one) holds it.
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
		// A holder that deletes the file on its way out leaves us a lock that nobody else can see.
		if mine, err := f.Stat(); err == nil {
			if now, err := os.Stat(path); err == nil && os.SameFile(mine, now) {
				return &Lock{f}, nil
			}
		}
		f.Close()
	}
}

// Close gives the lock up. The file stays, since deleting it would leave its waiters with locks on
// different files.
func (l *Lock) Close() error { return l.file.Close() }

// Use marks the file of weights at path as in use until the Closer is closed or the process ends. A
// file system without locks marks nothing, and the file can be used all the same.
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

// Create makes a file in the folder, whose name begins with prefix, and marks it as in use. If
// another process takes it for a dead process's file before the mark, Create makes another one.
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
	refused := os.Remove(path) // while nobody can mark it
	f.Close()
	if refused != nil { // Windows deletes no open file
		os.Remove(path)
	}
}

// seize locks an existing file against Use. nil without an error: the file is gone, or its file
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
