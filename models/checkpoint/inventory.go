package checkpoint

// Everything in the Hugging Face cache that is a gpt-oss or belongs to one, for people to look at.

import (
	"encoding/json"
	"path/filepath"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/store"
)

// Stored is one snapshot in the cache.
type Stored struct {
	Found
	Main bool   // what the repository's main was when it was last fetched
	Note string // what this version does with it, when it does not simply run it
}

// Inventory lists the snapshots of the catalogue's models, of their relatives and of whatever else
// says that it is a gpt-oss, by the repository's name and then as store.Snapshots does.
func Inventory() ([]Stored, error) {
	root, err := store.Root()
	if err != nil {
		return nil, err
	}
	repos, err := store.Repos(root)
	if err != nil {
		return nil, err
	}
	var list []Stored
	for _, repo := range repos {
		entry, known := models.Lookup(repo.ID())
		relative, related := models.LookupRelated(repo.ID())
		snapshots, err := store.Snapshots(root, repo)
		if err != nil {
			return nil, err
		}
		for _, s := range snapshots {
			if !known && !related && !describesGPTOSS(filepath.Join(s.Path, "config.json")) {
				continue
			}
			stored := Stored{Found: look(s.Path), Main: s.Main, Note: entry.Special}
			if related {
				stored.Note = relative.Does
			}
			list = append(list, stored)
		}
	}
	return list, nil
}

// describesGPTOSS tells whether a config.json says gpt_oss.
func describesGPTOSS(path string) bool {
	text, err := models.ReadFile(path)
	var config struct {
		Type string `json:"model_type"`
	}
	return err == nil && json.Unmarshal(text, &config) == nil && config.Type == "gpt_oss"
}
