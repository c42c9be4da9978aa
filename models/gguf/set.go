package gguf

// A model in several files: NAME-00001-of-00003.gguf and so on, each with its own header. The first
// has the keys of the model.

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/ossrun/ossrun/models/safetensors"
)

// Set is all files of one model.
type Set struct {
	Files   []string // paths, in order
	Keys    map[string]any
	Tensors map[string]TensorInfo
	Size    int64 // of all files, in bytes
}

var part = regexp.MustCompile(`^(.*-)(\d{5})-of-(\d{5})(\.gguf)$`)

// maxFiles is the maximum number of a model's files.
const maxFiles = 1000

// IsFirst reports whether a name is that of a single file or of the first of several.
func IsFirst(name string) bool {
	m := part.FindStringSubmatch(name)
	return m == nil || m[2] == "00001"
}

// OpenSet opens the model at path, which may be any of its files.
func OpenSet(path string) (*Set, error) {
	s := &Set{Files: []string{path}, Tensors: map[string]TensorInfo{}}
	if m := part.FindStringSubmatch(filepath.Base(path)); m != nil {
		n, err := strconv.Atoi(m[3])
		if err != nil || n < 1 || n > maxFiles {
			return nil, &Error{File: filepath.Base(path), What: "is, by its name, one of " + m[3] +
				" files"}
		}
		s.Files = nil
		for i := range n {
			s.Files = append(s.Files, filepath.Join(filepath.Dir(path),
				fmt.Sprintf("%s%05d-of-%s%s", m[1], i+1, m[3], m[4])))
		}
	}
	for i, file := range s.Files {
		h, err := Open(file)
		if err != nil {
			return nil, err
		}
		s.Size += h.Size
		if i == 0 {
			s.Keys = maps.Clone(h.Keys)
		}
		for _, t := range h.Tensors {
			if first, ok := s.Tensors[t.Name]; ok {
				return nil, &Error{File: filepath.Base(file),
					What: fmt.Sprintf("holds tensor %s, which %s holds too",
						safetensors.Printable(t.Name), filepath.Base(s.Files[first.File]))}
			}
			t.File = i
			s.Tensors[t.Name] = t
		}
	}
	return s, nil
}

func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.Tensors)) }

func (s *Set) Base(t TensorInfo) string { return filepath.Base(s.Files[t.File]) }

// ChatDefaults returns the file's chat template, in Jinja, and its sampling and end-of-turn
// settings as generation_config.json, nil if the header is not of a gpt-oss.
func (s *Set) ChatDefaults() (template string, generation []byte) {
	template, _ = s.Keys["tokenizer.chat_template"].(string)
	if _, generation, err := describe(s); err == nil {
		return template, generation
	}
	return template, nil
}

// ChatDefaults are those of the set.
func (m *Model) ChatDefaults() (template string, generation []byte) { return m.set.ChatDefaults() }
