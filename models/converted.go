package models

// Copies that earlier versions made of GGUF models, in XDG_CACHE_HOME/ossrun/converted/ID/NAME. Nothing makes or needs them any more; they are listed so
// that people can delete them, and can be given to --model like any folder.

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ossrun/ossrun/models/store"
)

// Converted is what source.json beside such a copy says.
type Converted struct {
	Source string `json:"source"` // path of the GGUF file when it was converted
	Folder string `json:"-"`      // where it lies
}

// ConvertedRoot is the folder of all conversions.
func ConvertedRoot() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the folder of converted models: %w", err)
	}
	return filepath.Join(cache, "ossrun", "converted"), nil
}

// ListConverted lists what was converted, in the order of the folders.
func ListConverted() ([]Converted, error) {
	root, err := ConvertedRoot()
	if err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(escapeGlob(root), "*", "*", "source.json"))
	if err != nil {
		return nil, err
	}
	var list []Converted
	for _, path := range found {
		text, err := readFile(path)
		var about Converted
		if err != nil || json.Unmarshal(text, &about) != nil {
			continue // deleted meanwhile, or written by somebody else
		}
		about.Folder = filepath.Dir(path)
		list = append(list, about)
	}
	return list, nil
}

// FindConverted finds what was converted from a model of another program, from a GGUF file, or in a folder; false when nothing was.
func FindConverted(name string) (Converted, bool, error) {
	list, err := ListConverted()
	if err != nil || len(list) == 0 {
		return Converted{}, false, err
	}
	path := name
	if found, ok, err := findElsewhere(name); ok && err == nil {
		path = found.Path
	}
	if path, err = filepath.Abs(path); err != nil {
		return Converted{}, false, err
	}
	for _, c := range list {
		if c.Folder == path || c.Source == path {
			return c, true, nil
		}
	}
	return Converted{}, false, nil
}

// Remove deletes the conversion, never what it was made from. *store.InUseError when a running ossrun reads it.
func (c Converted) Remove() (freed int64, err error) {
	return store.RemoveFolder(filepath.Dir(c.Folder))
}
