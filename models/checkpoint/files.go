package checkpoint

// The files that hold a model's weights: which they are, and whether they have changed since
// something was made from them. What the system says about a file decides that, so that no weight
// is read for it.

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// FileState is what the system says about a file. While two states are equal, so are the bytes:
// whoever writes to a file, or puts another in its place, changes its time of change or its number,
// and no program can set these. (A modification time can be set, and copying tools do set it.)
type FileState struct {
	Path          string // absolute
	Size          int64
	Modified      int64 // in ns since 1970
	Changed       int64 // likewise
	Device, Inode uint64
	Scale         string // of an adapter's file: how much of it is added
}

// String is one line with all of it.
func (s FileState) String() string {
	line := fmt.Sprintf("%q size %d modified %d changed %d device %d inode %d", s.Path, s.Size,
		s.Modified, s.Changed, s.Device, s.Inode)
	if s.Scale != "" {
		line += " scale " + s.Scale
	}
	return line
}

// ChangedSince tells whether the file was changed at or after a time.
func (s FileState) ChangedSince(t time.Time) bool {
	return max(s.Modified,
		s.Changed) >= t.UnixNano()
}

// FileStates are the states of all files of a model's weights, and the time when they were read.
// Files is empty if not all of them could be described, or if the system does not tell when a file
// was changed.
type FileStates struct {
	Files []FileState
	Seen  time.Time
}

func statesOf(paths []string) FileStates {
	list := FileStates{Seen: time.Now()}
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return FileStates{}
		}
		stat, err := os.Stat(absolute)
		if err != nil {
			return FileStates{}
		}
		s := FileState{Path: absolute, Size: stat.Size(), Modified: stat.ModTime().UnixNano()}
		if !describe(&s, stat) {
			return FileStates{}
		}
		list.Files = append(list.Files, s)
	}
	return list
}

// FileStates describes the weights' files, and the adapters', as they are now.
func (f Found) FileStates() FileStates {
	if f.Demo {
		return FileStates{}
	}
	paths, err := f.files()
	if err != nil {
		return FileStates{}
	}
	return statesOf(paths).with(f.Lora)
}

// FileStates describes the weights' files as they were when they were opened.
func (c *Checkpoint) FileStates() FileStates { return c.states }

// files are the paths of the weights.
func (f Found) files() ([]string, error) {
	if f.GGUF != nil {
		return f.GGUF.Files(), nil
	}
	folder := f.folder()
	index, err := shards(folder)
	if err != nil {
		return nil, err
	}
	return under(folder, index.Files), nil
}

// folder is where the weights of a model that is not a GGUF file lie.
func (f Found) folder() string {
	if inside := OriginalIn(f.Path); inside != "" {
		return inside
	}
	return f.Path
}

func under(folder string, names []string) []string {
	var paths []string
	for _, name := range names {
		paths = append(paths, filepath.Join(folder, name))
	}
	return paths
}
