package store

// Links in a cache that other users can write to. huggingface_hub makes links from snapshots to
// blobs and from blobs to the cache's shared ones; writing and deleting refuse every other link out
// of a repository's folder. The folder of a repository itself may be a link to another disk.

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ossrun/ossrun/models/mapping"
)

// checkInside fails if path, whose links are followed, is not in folder. For a missing path its
// parent counts.
func checkInside(folder, path string) error {
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return IgnoreMissing(err)
	}
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) && path != folder && filepath.Dir(path) != path {
		return checkInside(folder, filepath.Dir(path))
	}
	if err == nil && target != real && !strings.HasPrefix(target, real+string(filepath.Separator)) {
		err = fmt.Errorf("%s is a link out of the cache, to %s; remove the link", path, target)
	}
	return err
}

// IgnoreMissing is err, or nil if it says that a file is missing.
func IgnoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// MakeFolder creates a folder of a repository.
func MakeFolder(root string, repo Repo, folder string) error {
	if err := checkInside(filepath.Join(root, repo.Folder()), folder); err != nil {
		return err
	}
	return os.MkdirAll(folder, 0o777)
}

// Open opens a file for a download. It does not follow a link at path.
func Open(path string, flag int, mode os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, flag|noFollow, mode)
	if err != nil {
		if stat, none := os.Lstat(path); none == nil && !stat.Mode().IsRegular() {
			err = fmt.Errorf("%s %w; remove it", path, mapping.ErrNotRegular)
		}
		return nil, err
	}
	if stat, err := f.Stat(); err != nil || !stat.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s %w; remove it", path, mapping.ErrNotRegular), err,
			f.Close())
	}
	return f, nil
}
