package models

// A repository and a revision to download or to remove, under the name that people know.

import (
	"fmt"
	"strings"

	"github.com/ossrun/ossrun/models/safetensors"
	"github.com/ossrun/ossrun/models/store"
)

// Target is a revision of a repository.
type Target struct {
	Repo     store.Repo
	Revision string // "" for the current main
	Name     string // for people: "gpt-oss-20b", "owner/name@revision"
}

// ParseTarget reads a name of the catalogue or owner/name, with optional prefix hf: or Hugging
// Face's address, and optional suffix @revision. It returns *UnknownModelError for anything else,
// and for the demo, which has no repository.
func ParseTarget(name string) (Target, error) {
	name = strings.TrimSpace(name)
	if IsForeignName(name) {
		return Target{}, &UnknownModelError{Name: name,
			Meaning: "kept by another program: download and delete it there"}
	}
	address, revision, pinned := strings.Cut(name, "@")
	if pinned && !store.ValidRevision(revision) {
		return Target{}, fmt.Errorf(
			"%s names no revision after the @: write a branch, a tag or a commit",
			safetensors.Printable(name))
	}
	if r, ok := LookupRelated(address); ok {
		return Target{}, &UnknownModelError{Name: r.HF, Meaning: r.Description}
	}
	if e, ok := Lookup(address); ok {
		if e.HF == "" {
			return Target{}, &UnknownModelError{Name: e.ID,
				Meaning: "built in: there is nothing to download"}
		}
		repo, _ := store.ParseRepo(e.HF)
		return target(repo, revision, e.Spec.Name), nil
	}
	if repo, ok := store.ParseRepo(bare(address)); ok {
		return target(repo, revision, repo.ID()), nil
	}
	if id, ok := strings.CutPrefix(name, "hf:"); ok {
		_, _, err := ParseHF(id)
		return Target{}, err
	}
	return Target{}, Unknown(name)
}

func target(repo store.Repo, revision, name string) Target {
	if revision != "" {
		name += "@" + revision
	}
	return Target{repo, revision, name}
}

// ParseHF reads owner/name[@revision].
func ParseHF(id string) (store.Repo, string, error) {
	address, revision, pinned := strings.Cut(id, "@")
	repo, ok := store.ParseRepo(address)
	if !ok {
		return store.Repo{}, "",
			fmt.Errorf("hf:%s is not a Hugging Face repository: write hf:owner/name or "+
				"hf:owner/name@revision", safetensors.Printable(id))
	}
	if pinned && !store.ValidRevision(revision) {
		return store.Repo{}, "",
			fmt.Errorf("hf:%s names no revision after the @: write a branch, a tag or a commit",
				safetensors.Printable(id))
	}
	return repo, revision, nil
}
