package checkpoint

// A checkpoint's name, and what to do about a broken one. Both follow from its path.

import (
	"errors"
	"path/filepath"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/safetensors"
	"github.com/ossrun/ossrun/models/store"
)

// nameOf gives the model's name: the repository's for a snapshot in the Hugging Face cache, else
// the folder's.
func nameOf(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	if repo, ok := store.RepoOf(path); ok {
		if e, known := models.Lookup(repo.ID()); known {
			return e.Spec.Name
		}
		return repo.Name
	}
	return filepath.Base(path)
}

// remedy ends the sentence about a checkpoint whose files are missing or cut: what to run for a
// snapshot in the cache.
func remedy(err error, path string) string {
	var broken *safetensors.Error
	var missing *missingError
	if !(errors.As(err, &broken) && broken.Cut) && !errors.As(err, &missing) {
		return ""
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	repo, ok := store.RepoOf(path)
	if !ok {
		return ": download or copy it again"
	}
	return ": download it again with ossrun pull " + pullName(repo)
}

// pullName is the name of a repository for ossrun pull.
func pullName(repo store.Repo) string {
	if e, known := models.Lookup(repo.ID()); known {
		return e.ID
	}
	return "hf:" + repo.ID()
}
