package store

// Writing the layout that cache.go reads. Every step is one rename or one link, so a dying process
// leaves either the old state or the new one.

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/models/mapping"
)

// ValidETag reports whether an ETag can name a blob. It cannot leave the blobs folder.
func ValidETag(etag string) bool { return validName(etag, "", 200) }

// ValidCommit reports whether text is a full commit hash.
func ValidCommit(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}

// BlobPath is the path of the content with an ETag.
func BlobPath(root string, repo Repo, etag string) string {
	return filepath.Join(root, repo.Folder(), "blobs", etag)
}

func SnapshotPath(root string, repo Repo, commit string) string {
	return filepath.Join(root, repo.Folder(), "snapshots", commit)
}

// Link makes a file of a snapshot point to a blob, replacing an existing file. Without links the
// blob itself becomes the file, as in huggingface_hub.
func Link(root string, repo Repo, commit, name, etag string) error {
	if !ValidCommit(commit) || !ValidETag(etag) || !filepath.IsLocal(filepath.FromSlash(name)) {
		return fmt.Errorf("%s of commit %s cannot be placed in the cache", name, commit)
	}
	path := filepath.Join(SnapshotPath(root, repo, commit), filepath.FromSlash(name))
	blob := BlobPath(root, repo, etag)
	if err := MakeFolder(root, repo, filepath.Dir(path)); err != nil {
		return fmt.Errorf("making a snapshot's folder: %w", err)
	}
	target, err := filepath.Rel(filepath.Dir(path), blob)
	if err != nil {
		return fmt.Errorf("linking %s: %w", name, err)
	}
	if now, err := os.Readlink(path); err == nil && now == target {
		return nil
	}
	if blobStat, err := os.Stat(blob); errors.Is(err, fs.ErrNotExist) {
		if stat, err := os.Lstat(path); err == nil && stat.Mode().IsRegular() {
			return nil // the blob became the file in an earlier pull
		}
		return fmt.Errorf("linking %s: %w", name, err)
	} else if stat, err2 := os.Lstat(path); err == nil && err2 == nil &&
		os.SameFile(stat, blobStat) {
		return nil
	}
	temp := filepath.Join(filepath.Dir(path),
		"."+filepath.Base(path)+"."+strconv.FormatUint(rand.Uint64(), 36))
	if symlink(target, temp) != nil && os.Link(blob, temp) != nil {
		temp = blob
	}
	if err := os.Rename(temp, path); err != nil {
		if temp != blob {
			os.Remove(temp)
		}
		return fmt.Errorf("linking %s: %w", name, err)
	}
	return nil
}

// symlink makes a symbolic link and checks it: Wine reports success without making one.
func symlink(target, path string) error {
	err := os.Symlink(target, path)
	if err == nil {
		_, err = os.Lstat(path)
	}
	return err
}

// WriteRef records the commit of a branch or tag. Nothing is written for a revision that is the
// commit itself.
func WriteRef(root string, repo Repo, revision, commit string) error {
	if revision == commit {
		return nil
	}
	if !ValidRevision(revision) || !ValidCommit(commit) {
		return fmt.Errorf("%q cannot be a ref to %q", revision, commit)
	}
	folder := filepath.Join(root, repo.Folder())
	if readRef(folder, revision) == commit {
		return nil
	}
	ref := filepath.Join(folder, "refs", filepath.FromSlash(revision))
	if err := MakeFolder(root, repo, filepath.Dir(ref)); err != nil {
		return err
	}
	return WriteFile(ref, []byte(commit), 0o644)
}

// TempPrefix begins the name of a file being written.
const TempPrefix = ".making-"

// WriteFile writes a small file.
func WriteFile(path string, content []byte, mode fs.FileMode) error {
	return Write(path, mode, func(f *os.File) error {
		_, err := f.Write(content)
		return err
	})
}

// Write writes a file under a temporary name and renames it, so that readers and a killed process
// never leave or see a part. Folders are created, for this user alone if the file is.
func Write(path string, mode fs.FileMode, fill func(f *os.File) error) error {
	folder := fs.FileMode(0o777)
	if mode&0o077 == 0 {
		folder = 0o700
	}
	if err := os.MkdirAll(filepath.Dir(path), folder); err != nil {
		return err
	}
	f, unmark, err := Create(filepath.Dir(path), TempPrefix)
	if err != nil {
		return err
	}
	defer unmark()
	err = errors.Join(fill(f), f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// Free is the number of free bytes at path, which may not exist yet.
func Free(path string) (int64, error) {
	for {
		if _, err := os.Stat(path); err == nil {
			return freeBytes(path)
		} else if parent := filepath.Dir(path); parent == path || !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		} else {
			path = parent
		}
	}
}

// A stamp, stored next to a blob, records its hash: BLOB.sha256, in the form that sha256sum -c
// reads. It is valid unless the blob was written to later; such a blob is hashed again.

// StampSuffix ends a stamp's name.
const StampSuffix = ".sha256"

// WriteStamp records a blob's sha256.
func WriteStamp(blob string, sha256 []byte) error {
	return WriteFile(blob+StampSuffix,
		[]byte(hex.EncodeToString(sha256)+"  "+filepath.Base(blob)+"\n"), 0o644)
}

// Stamped returns the sha256 (hex) of a blob's last hash, if it was not written to since.
func Stamped(blob string) (string, bool) {
	content, err := os.Stat(blob)
	if err != nil {
		return "", false
	}
	stamp, err := os.Stat(blob + StampSuffix)
	if err != nil || content.ModTime().After(stamp.ModTime()) || stamp.Size() > 512 {
		return "", false
	}
	text, err := mapping.ReadFile(blob+StampSuffix, 1<<20)
	if err != nil {
		return "", false
	}
	sum, name, ok := strings.Cut(strings.TrimSuffix(string(text), "\n"), "  ")
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != 32 || !ok ||
		name != filepath.Base(blob) {
		return "", false
	}
	return sum, true
}

// Pointer is the SHA-256 under which a pull has stored a snapshot's file; "" if it has another name
// or is missing.
func Pointer(path string) string {
	target, err := os.Readlink(path)
	name := filepath.Base(target)
	if err != nil || len(name) != 64 || !ValidCommit(name) {
		return ""
	}
	return name
}

// Hashed returns the SHA-256 of the last hash of a snapshot's file, "" if it was written to since,
// and whether it equals the pull's.
func Hashed(path string) (sum string, named bool) {
	target, err := os.Readlink(path)
	if err != nil {
		return "", false
	}
	sum, ok := Stamped(filepath.Join(filepath.Dir(path), target))
	return sum, ok && sum == Pointer(path)
}
