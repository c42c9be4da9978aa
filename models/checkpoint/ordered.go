package checkpoint

// A GGUF model's weights in the released order, in a cache file: written while nothing else runs,
// and mapped by later starts like a released checkpoint.
//
// What must stay true: an existing file was made from exactly the GGUF files, paths and metadata
// that its name is a hash of. An unusable file costs only time: the GGUF files are read as if it
// did not exist. Earlier releases' files have no checksums, and are used without.

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/models/derived"
	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/safetensors"
	"github.com/ossrun/ossrun/models/store"
)

const (
	orderedVersion = 1 // changes with the order of the weights; older files are removed
	orderedSuffix  = ".safetensors"
	// MaxOrdered is the number of files that are kept: the newest and one more.
	MaxOrdered   = 2
	metaVersion  = "ossrun"
	metaGGUF     = "gguf" // the files' paths, one per line
	orderedSpace = 2      // times its size must be free, because no user asked for the file
)

func OrderedFolder() string { return filepath.Join(xdg.CacheHome, "ossrun", "gguf") }

// orderedPath is the file's path for GGUF files in these states, "" if changes cannot be detected.
func orderedPath(states FileStates) string {
	if len(states.Files) == 0 {
		return ""
	}
	hash := sha256.New()
	fmt.Fprintln(hash, metaVersion, orderedVersion)
	for _, s := range states.Files {
		fmt.Fprintln(hash, s)
	}
	return filepath.Join(OrderedFolder(), hex.EncodeToString(hash.Sum(nil)[:16])+orderedSuffix)
}

// Ordered is the path of a GGUF model's weights in the released order, "" if there is no such file.
func (f Model) Ordered() string {
	if f.GGUF == nil {
		return ""
	}
	return orderedFor(statesOf(f.GGUF.Files()))
}

// orderedFor is orderedPath if the file exists, or "".
func orderedFor(states FileStates) string {
	path := orderedPath(states)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// openOrdered maps a model's weights in the released order, or returns nil.
func openOrdered(m *gguf.Model, states FileStates) *Checkpoint {
	path := orderedFor(states)
	if path == "" {
		return nil
	}
	c := &Checkpoint{Spec: m.Spec(), Path: m.Source, format: views{}, states: states}
	err := c.mark([]string{path})
	if err == nil {
		var file *safetensors.File
		if file, err = safetensors.Open(path); err == nil {
			c.close = append(c.close, file.Close)
			err = c.check([]*safetensors.File{file}, nil)
		}
	}
	if err != nil {
		c.Close()
		store.RemoveUnused(path)
		return nil
	}
	derived.Touch(path)
	return c
}

// Mapped reports whether the weights are views of files. The demo's, and a GGUF file's that are not
// in the released order, are in private memory.
func (c *Checkpoint) Mapped() bool { return c.ggufWeights() == nil && c.Path != "" }

// ggufWeights returns the weights of a GGUF file in its own order, or nil.
func (c *Checkpoint) ggufWeights() *gguf.Weights {
	f := c.format
	if a, ok := f.(*adapted); ok {
		f = a.format
	}
	weights, _ := f.(*gguf.Weights)
	return weights
}

// WriteOrdered writes a GGUF model's weights in the released order, piece by piece. pause is called
// before each piece, which takes some milliseconds; its error stops the work.
func (c *Checkpoint) WriteOrdered(pause func() error) error {
	weights := c.ggufWeights()
	files := weights.Files()
	states := statesOf(files)
	path, folder := orderedPath(states), OrderedFolder()
	switch {
	case path == "":
		return fmt.Errorf("this system does not tell when a file was changed")
	// the mapped file is the opened one, which may have been replaced since; the states of
	// adapters' files follow
	case len(c.states.Files) < len(files) ||
		!slices.Equal(states.Files, c.states.Files[:len(files)]):
		return fmt.Errorf("%s is another file than the one that was loaded", filepath.Base(c.Path))
	}
	if unsettled := states.Unsettled(); unsettled != "" {
		return fmt.Errorf("%s was just changed", filepath.Base(unsettled))
	}
	var paths []string
	for _, s := range states.Files {
		paths = append(paths, s.Path)
	}
	ForgetOrdered(MaxOrdered - 1)
	if err := derived.CheckRoom(folder, orderedSpace*c.bytes); err != nil {
		return err
	}
	if err := derived.WriteTensors(path, c.Spec.Tensors(), map[string]string{
		metaVersion: strconv.Itoa(orderedVersion), metaGGUF: strings.Join(paths, "\n")}, pause,
		func(put derived.Put) error {
			if err := weights.Write(pause, put); err != nil {
				return err
			}
			if !slices.Equal(statesOf(files).Files, states.Files) {
				return fmt.Errorf("%s changed meanwhile", filepath.Base(c.Path))
			}
			return nil
		}); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// CheckOrdered compares a GGUF model's weights in the released order, or an import's, with their
// checksums. Damaged ones are removed, those of an import are put aside, with derived.ErrDamaged;
// missing ones are no error.
func (f Model) CheckOrdered(pause func() error) error {
	if path := f.Ordered(); path != "" {
		return derived.CheckTensors(path, os.Remove, pause)
	}
	if !f.IsImport() {
		return nil
	}
	paths, err := f.files()
	for _, path := range paths {
		if err == nil {
			err = derived.CheckTensors(path, derived.Aside, pause)
		}
	}
	return err
}

// IsImport tells whether ossrun import has written the weights.
func (f Model) IsImport() bool {
	return f.GGUF == nil && !f.Demo && exists(filepath.Join(f.folder(), ImportRecord))
}

// ForgetOrdered removes files of dead processes, files whose GGUF files are gone or changed, and
// all others except the most recently used ones. Files in use by a running ossrun are kept.
func ForgetOrdered(keep int) {
	derived.Forget(OrderedFolder(), orderedSuffix, keep, func(path string) bool {
		header, err := safetensors.Inspect(path)
		if err != nil {
			return false
		}
		version, _ := strconv.Atoi(header.Metadata[metaVersion])
		return version > orderedVersion ||
			orderedPath(statesOf(strings.Split(header.Metadata[metaGGUF], "\n"))) == path
	})
}
