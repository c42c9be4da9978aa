// Package store manages the Hugging Face cache, which ossrun shares with all other tools that use
// it:
//
//	HUB/models--OWNER--NAME/refs/main              the branch's commit, 40 hex digits
//	HUB/models--OWNER--NAME/snapshots/COMMIT/FILE  links to ../../blobs/HASH, or plain files
//	HUB/.locks/models--OWNER--NAME/HASH.lock       locked while that blob is downloaded
//
// This file finds things in it; write.go and remove.go change it, under lock.go's locks. Nothing
// here reads weights: this package knows where files are stored, package models their content,
// package hub how to download them.
package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/models/mapping"
)

// Root finds the cache's folder: HF_HUB_CACHE (HUGGINGFACE_HUB_CACHE in old setups), HF_HOME/hub,
// XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub, in this order. The folder need not
// exist.
func Root() (string, error) {
	for _, name := range [...]string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"} {
		if path := os.Getenv(name); path != "" {
			return expand(path)
		}
	}
	home, err := Home()
	return filepath.Join(home, "hub"), err
}

// Home finds the folder of Hugging Face's tools: HF_HOME, XDG_CACHE_HOME/huggingface,
// ~/.cache/huggingface, in this order. It has the token of hf auth login.
func Home() (string, error) {
	if path := os.Getenv("HF_HOME"); path != "" {
		return expand(path)
	}
	if path := os.Getenv("XDG_CACHE_HOME"); path != "" {
		return expand(filepath.Join(path, "huggingface"))
	}
	return expand(filepath.Join("~", ".cache", "huggingface"))
}

// expand replaces variables and a leading ~, as the Hugging Face tools do with these settings.
func expand(path string) (string, error) {
	path = os.ExpandEnv(path)
	if path != "~" && !strings.HasPrefix(path, "~/") &&
		!strings.HasPrefix(path, "~"+string(filepath.Separator)) {
		return filepath.Clean(path), nil
	}
	home, err := os.UserHomeDir()
	if err != nil { // HOME is unset, as in some services
		home = xdg.Home
	}
	return filepath.Join(home, path[1:]), nil
}

type Repo struct{ Owner, Name string }

// validPart reports whether text may be an owner's or a repository's name; it cannot leave a
// folder.
func validPart(text string) bool { return validName(text, "_", 96) }

// validName reports whether text is letters, digits, ".", "_" and "-", at most n of them, starting
// with a letter, a digit or one of first. (Regular expressions with such counts cost 0.3 MB and 1
// ms at every start of the program.)
func validName(text, first string, n int) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 && strings.IndexByte(first, c) < 0 || i > 0 &&
			strings.IndexByte("._-", c) < 0) {
			return false
		}
	}
	return text != "" && len(text) <= n
}

// ParseRepo reads "owner/name".
func ParseRepo(id string) (Repo, bool) {
	owner, name, ok := strings.Cut(id, "/")
	if !ok || !validPart(owner) || !validPart(name) || strings.Contains(id, "--") ||
		strings.Contains(id, "..") {
		return Repo{}, false
	}
	return Repo{owner, name}, true
}

func (r Repo) ID() string { return r.Owner + "/" + r.Name }

func (r Repo) Folder() string { return "models--" + r.Owner + "--" + r.Name }

// ParseFolder is the inverse of Repo.Folder.
func ParseFolder(name string) (Repo, bool) {
	rest, ok := strings.CutPrefix(name, "models--")
	if !ok {
		return Repo{}, false
	}
	owner, repo, ok := strings.Cut(rest, "--")
	if !ok {
		return Repo{}, false
	}
	return ParseRepo(owner + "/" + repo)
}

// RepoOf returns the repository of an absolute path .../models--OWNER--NAME/snapshots/COMMIT.
func RepoOf(path string) (Repo, bool) {
	above := filepath.Dir(path)
	if filepath.Base(above) != "snapshots" {
		return Repo{}, false
	}
	return ParseFolder(filepath.Base(filepath.Dir(above)))
}

// Snapshot is one commit of a repository in the cache.
type Snapshot struct {
	Repo   Repo
	Commit string // the folder's name
	Path   string
	Main   bool // refs/main names it
	added  time.Time
}

// Snapshots lists a repository's snapshots in the cache at root: that of refs/main first, then the
// newest first. A missing repository has none.
func Snapshots(root string, repo Repo) ([]Snapshot, error) {
	folder := filepath.Join(root, repo.Folder())
	entries, err := os.ReadDir(filepath.Join(folder, "snapshots"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the snapshots of %s: %w", repo.ID(), err)
	}
	main := readRef(folder, "main")
	var list []Snapshot
	for _, e := range entries {
		info, err := os.Stat(filepath.Join(folder, "snapshots", e.Name()))
		if err != nil || !info.IsDir() {
			continue // deleted meanwhile, or a stray file
		}
		list = append(list, Snapshot{
			Repo: repo, Commit: e.Name(), Path: filepath.Join(folder, "snapshots", e.Name()),
			Main: e.Name() == main, added: info.ModTime(),
		})
	}
	slices.SortStableFunc(list, func(a, b Snapshot) int {
		if a.Main != b.Main {
			if a.Main {
				return -1
			}
			return 1
		}
		return cmp.Or(b.added.Compare(a.added), cmp.Compare(a.Commit, b.Commit))
	})
	return list, nil
}

// Select returns the snapshots of a revision: a branch or tag in refs, a commit, or a prefix of one
// (7 digits or more). An empty revision selects all.
func Select(root string, repo Repo, revision string) ([]Snapshot, error) {
	list, err := Snapshots(root, repo)
	if err != nil || revision == "" {
		return list, err
	}
	if !ValidRevision(revision) {
		return nil, fmt.Errorf("%q is not a revision: a branch, a tag or a commit", revision)
	}
	commit := readRef(filepath.Join(root, repo.Folder()), revision)
	return slices.DeleteFunc(list, func(s Snapshot) bool {
		isPrefix := len(revision) >= 7 && strings.HasPrefix(s.Commit, revision)
		return s.Commit != commit && s.Commit != revision && !isPrefix
	}), nil
}

// ValidRevision reports whether a revision is a name that cannot leave the refs folder.
func ValidRevision(revision string) bool {
	return revision != "" && len(revision) <= 255 &&
		filepath.IsLocal(filepath.FromSlash(revision)) &&
		!strings.ContainsFunc(revision, func(r rune) bool {
			return r <= ' ' || r == '\\' ||
				r == 0x7f
		})
}

func readRef(folder, name string) string {
	text, err := mapping.ReadFile(filepath.Join(folder, "refs", filepath.FromSlash(name)), 1<<10)
	if err != nil || len(text) > 256 {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// Repos lists the model repositories of the cache at root, sorted by name. A missing cache has
// none.
func Repos(root string) ([]Repo, error) {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the Hugging Face cache: %w", err)
	}
	var list []Repo
	for _, e := range entries {
		if repo, ok := ParseFolder(e.Name()); ok {
			list = append(list, repo)
		}
	}
	return list, nil
}
