package checkpoint

// A GGUF model's weights in the released order, in a cache file: written while nothing else runs,
// and mapped by later starts like a released checkpoint.
//
// What must stay true: an existing file is complete, and was made from exactly the GGUF files,
// paths and metadata that its name is a hash of. It is written under another name and renamed once
// it is on disk. An unusable file costs only time: the GGUF files are read as if it did not exist.

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/safetensors"
	"github.com/ossrun/ossrun/models/store"
)

const (
	orderedVersion = 1 // changes with the order of the weights; older files are removed
	orderedSuffix  = ".safetensors"
	orderedTemp    = ".making-"
	// MaxOrdered is the number of files that are kept: the newest and one more.
	MaxOrdered   = 2
	orderedSync  = 64 << 20 // so that little unsynced data accumulates
	metaVersion  = "ossrun"
	metaGGUF     = "gguf" // the files' paths, one per line
	orderedSpace = 2      // times its size must be free, because no user asked for the file
)

// Settling exceeds the resolution of any file system's times: a file that was changed within it
// could change again without a new time.
const Settling = 2 * time.Second

// settling is a variable for tests.
var settling = Settling

// OrderedFolder is the folder of these files.
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
	now := time.Now()
	_ = os.Chtimes(path, now, now) // time of last use; else only removed sooner
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
func (c *Checkpoint) WriteOrdered(pause func() error) (err error) {
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
	for _, s := range states.Files {
		if s.ChangedSince(states.Seen.Add(-settling)) {
			return fmt.Errorf("%s was just changed", filepath.Base(s.Path))
		}
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	ForgetOrdered(MaxOrdered - 1)
	if free, err := store.Free(folder); err == nil && free < orderedSpace*c.bytes {
		return fmt.Errorf("%s has %.1f GB free, %.1f GB are wanted", folder, float64(free)/1e9,
			float64(orderedSpace*c.bytes)/1e9)
	}
	f, unmark, err := store.Create(folder, orderedTemp)
	if err != nil {
		return err
	}
	defer unmark()
	defer func() {
		if err != nil {
			os.Remove(f.Name())
			err = fmt.Errorf("writing %s: %w", path, err)
		}
	}()
	if err = c.fillOrdered(f, weights, states, pause); err != nil {
		return err
	}
	if !slices.Equal(statesOf(files).Files, states.Files) {
		return fmt.Errorf("%s changed meanwhile", filepath.Base(c.Path))
	}
	return os.Rename(f.Name(), path)
}

func (c *Checkpoint) fillOrdered(f *os.File, weights *gguf.Weights, states FileStates,
	pause func() error) error {
	var paths []string
	for _, s := range states.Files {
		paths = append(paths, s.Path)
	}
	head, places := models.FileHeader(c.Spec.Tensors(), map[string]string{
		metaVersion: strconv.Itoa(orderedVersion), metaGGUF: strings.Join(paths, "\n")})
	_, err := f.Write(head)
	unsynced := 0
	if err == nil {
		err = weights.Write(pause, func(tensor string, offset int64, data []byte) error {
			if _, err := f.WriteAt(data, places[tensor]+offset); err != nil {
				return err
			}
			if unsynced += len(data); unsynced < orderedSync {
				return nil
			}
			unsynced = 0
			return f.Sync()
		})
	}
	return cmp.Or(err, f.Chmod(0o644), f.Sync(), f.Close())
}

// ForgetOrdered removes files of dead processes, files whose GGUF files are gone or changed, and
// all others except the most recently used ones. Files in use by a running ossrun are kept.
func ForgetOrdered(keep int) {
	stale, _ := filepath.Glob(filepath.Join(OrderedFolder(), orderedTemp+"*")) // it is well formed
	for _, path := range stale {
		store.RemoveUnused(path)
	}
	type aged struct {
		path string
		used time.Time
	}
	var list []aged
	all, _ := filepath.Glob(filepath.Join(OrderedFolder(), "*"+orderedSuffix)) // likewise
	for _, path := range all {
		header, err := safetensors.Inspect(path)
		stat, refused := os.Stat(path)
		if err == nil && refused == nil {
			version, _ := strconv.Atoi(header.Metadata[metaVersion])
			states := statesOf(strings.Split(header.Metadata[metaGGUF], "\n"))
			if version > orderedVersion || orderedPath(states) == path {
				list = append(list, aged{path, stat.ModTime()})
				continue
			}
		}
		store.RemoveUnused(path)
	}
	slices.SortFunc(list, func(a, b aged) int { return b.used.Compare(a.used) })
	for _, old := range list[min(keep, len(list)):] {
		store.RemoveUnused(old.path)
	}
}
