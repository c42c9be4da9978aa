package safetensors

// The index of a checkpoint in several files: model.safetensors.index.json maps each tensor's name
// to the file that holds it. File names come from the index, so they are checked to be plain names
// in printable ASCII: no path leads out of the folder.

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ossrun/ossrun/models/mapping"
)

// IndexName is the index's file name.
const IndexName = "model.safetensors.index.json"

// maxIndex is the longest index that is read, in bytes; the 120b's has about 55 kB.
const maxIndex = MaxHeader

// Index is a checked index.
type Index struct {
	Files []string          // file names, sorted
	Of    map[string]string // tensor's name -> file name
}

// ReadIndex reads the index at path.
func ReadIndex(path string) (*Index, error) {
	name := filepath.Base(path)
	text, err := mapping.ReadFile(path, maxIndex)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return ParseIndex(name, text)
}

// ParseIndex checks an index's text.
func ParseIndex(name string, text []byte) (*Index, error) {
	if what := disguise(text); what != "" {
		return nil, &Error{File: name, What: what}
	}
	if !utf8.Valid(text) {
		return nil, &Error{File: name, What: "is not UTF-8"}
	}
	var object struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, &Error{File: name, Cut: !json.Valid(text), What: fmt.Sprintf("is broken: %v",
			err)}
	}
	if len(object.Map) == 0 {
		return nil, &Error{File: name, What: "lists no tensor in weight_map"}
	}
	files := map[string]bool{}
	for tensor, file := range object.Map {
		if !filepath.IsLocal(file) || strings.ContainsAny(file, `/\`) || file == "." ||
			Show(file) != file {
			return nil, &Error{File: name,
				What: fmt.Sprintf("places tensor %s in %s, which is not a plain file name",
					Show(tensor), Show(file))}
		}
		files[file] = true
	}
	return &Index{Files: slices.Sorted(maps.Keys(files)), Of: object.Map}, nil
}
