package store

// Deleting a repository's snapshots. What must stay true: a blob is deleted only if no remaining
// snapshot links to it and no ossrun reads it. Nothing is deleted before all of that is known.
// Links are deleted before their targets, so that an interrupted removal leaves an incomplete
// model, never a broken one.

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

type Removal struct {
	Repo      Repo
	Snapshots []Snapshot // these
	Bytes     int64      // freed on disk
	Complete  bool       // the complete repository is removed

	root  string
	files []string // regular files and links to a shared store, to be deleted
	refs  []string
}

// InUseError reports that a file cannot be deleted now.
type InUseError struct {
	Path string
	User string // "a running ossrun" or "a running download"
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("%s is in use by %s: stop it first", filepath.Base(e.Path), e.User)
}

// PlanRemoval plans the removal of a revision of a repository, or all of it (revision ""). For a
// missing repository or revision the Removal is nil.
func PlanRemoval(root string, repo Repo, revision string) (*Removal, error) {
	folder := filepath.Join(root, repo.Folder())
	if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	all, err := Snapshots(root, repo)
	if err != nil {
		return nil, err
	}
	chosen, err := Select(root, repo, revision)
	if err != nil {
		return nil, err
	}
	if revision != "" && len(chosen) == 0 {
		return nil, nil
	}
	for _, below := range []string{folder, filepath.Join(folder, "blobs"),
		filepath.Join(folder, "snapshots"), filepath.Join(root, ".locks", repo.Folder())} {
		if err := checkInside(root, below); err != nil {
			return nil, err
		}
	}
	r := &Removal{Repo: repo, Snapshots: chosen, root: root, Complete: len(chosen) == len(all)}
	if r.Complete {
		return r, r.add(folder, nil)
	}
	keep := map[string]bool{}
	for _, s := range all {
		if slices.ContainsFunc(chosen, func(c Snapshot) bool { return c.Commit == s.Commit }) {
			continue
		}
		if err := blobsOf(folder, s.Path, func(blob string) { keep[blob] = true }); err != nil {
			return nil, err
		}
	}
	for _, s := range chosen {
		var orphans []string
		if err := blobsOf(folder, s.Path, func(blob string) {
			if !keep[blob] {
				keep[blob] = true // counted once
				orphans = append(orphans, blob, blob+StampSuffix)
			}
		}); err != nil {
			return nil, err
		}
		for _, name := range orphans {
			if err := r.add(name, nil); err != nil {
				return nil, err
			}
		}
		if err := r.add(s.Path, keep); err != nil {
			return nil, err
		}
		if err := r.addRefs(folder, s.Commit); err != nil {
			return nil, err
		}
	}
	slices.Sort(r.files)
	return r, nil
}

// walk calls do with all files and links under path, which may be missing.
func walk(path string, do func(path string, e fs.DirEntry) error) error {
	err := filepath.WalkDir(path, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return do(path, e)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// add lists the regular files under path, and the links of a blobs folder, except those in keep.
func (r *Removal) add(path string, keep map[string]bool) error {
	return walk(path, func(path string, e fs.DirEntry) error {
		if keep[path] {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch {
		case info.Mode().IsRegular():
			r.files = append(r.files, path)
			r.Bytes += occupied(info)
		case filepath.Dir(path) == filepath.Join(r.root, r.Repo.Folder(), "blobs"):
			r.files = append(r.files, path)
		}
		return nil
	})
}

func (r *Removal) addRefs(folder, commit string) error {
	refs := filepath.Join(folder, "refs")
	return walk(refs, func(path string, _ fs.DirEntry) error {
		name, err := filepath.Rel(refs, path)
		if err == nil && readRef(folder, name) == commit {
			r.refs = append(r.refs, path)
		}
		return err
	})
}

// blobsOf calls visit with every blob of the repository's folder that a snapshot links to.
func blobsOf(folder, snapshot string, visit func(blob string)) error {
	return walk(snapshot, func(path string, e fs.DirEntry) error {
		if e.Type()&fs.ModeSymlink == 0 {
			return nil
		}
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		blobs := filepath.Join(folder, "blobs")
		if where, err := os.Stat(filepath.Dir(target)); err == nil {
			if info, err := os.Stat(blobs); err == nil && os.SameFile(where, info) {
				visit(filepath.Join(blobs, filepath.Base(target)))
			}
		}
		return nil
	})
}

// Run deletes. *InUseError if a file is being read or downloaded; then nothing was deleted.
func (r *Removal) Run() error {
	var locks []io.Closer
	locked := map[string]bool{} // a blob's stamp and its partial download share the blob's lock
	release := func() {
		for _, f := range locks {
			f.Close()
		}
		locks = nil
	}
	defer release()
	for _, path := range r.files {
		f, err := seize(path)
		if errors.Is(err, ErrLocked) {
			return &InUseError{path, "a running ossrun"}
		}
		if err != nil {
			return err
		}
		if f != nil {
			locks = append(locks, f)
		}
		if filepath.Base(filepath.Dir(path)) != "blobs" {
			continue
		}
		etag, _, _ := strings.Cut(filepath.Base(path), ".")
		lock := LockPath(r.root, r.Repo, etag)
		if _, err := os.Stat(lock); err != nil || locked[lock] {
			continue // no process ever locked it, or we hold it
		}
		l, err := TryLock(lock)
		if errors.Is(err, ErrLocked) {
			return &InUseError{path, "a running download"}
		}
		if err != nil {
			return err
		}
		locked[lock] = true
		locks = append(locks, l)
	}
	var shared []string
	for _, path := range r.files {
		if target, ok := sharedTarget(r.root, path); ok {
			shared = append(shared, target)
		}
	}
	if runtime.GOOS == "windows" {
		// Windows deletes no open file: the locks would prevent it, and files in use are safe
		// without them
		release()
	}
	for _, s := range r.Snapshots {
		if err := os.RemoveAll(s.Path); err != nil {
			return err
		}
	}
	for _, path := range slices.Concat(r.refs, r.files) {
		if err := IgnoreMissing(os.Remove(path)); err != nil {
			return err
		}
	}
	for _, target := range shared {
		sweepShared(r.root, target)
	}
	if !r.Complete {
		return nil
	}
	return errors.Join(os.RemoveAll(filepath.Join(r.root, r.Repo.Folder())),
		os.RemoveAll(filepath.Join(r.root, ".locks", r.Repo.Folder())))
}

// sharedTarget returns the content of a blob that is itself a link: huggingface_hub stores content
// of several repositories once in blobs/ of the cache.
func sharedTarget(root, blob string) (string, bool) {
	stat, err := os.Lstat(blob)
	if err != nil || stat.Mode()&fs.ModeSymlink == 0 {
		return "", false
	}
	target, err := filepath.EvalSymlinks(blob)
	if err != nil {
		return "", false
	}
	real, err := filepath.EvalSymlinks(root)
	prefix := filepath.Join(real, "blobs") + string(filepath.Separator)
	return target, err == nil && strings.HasPrefix(target, prefix)
}

// sweepShared deletes a shared content without links from any repository. On an error it is left
// for huggingface_hub to sweep.
func sweepShared(root, target string) {
	lock, err := TryLock(target + ".lock")
	if err != nil {
		return
	}
	defer lock.Close()
	links, err := filepath.Glob(filepath.Join(root, "*--*", "blobs", "*"))
	if err != nil {
		return
	}
	for _, link := range links {
		if shared, ok := sharedTarget(root, link); ok && shared == target {
			return
		}
	}
	if os.Remove(target) == nil {
		os.Remove(target + ".refs")
	}
}
