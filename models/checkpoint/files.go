package checkpoint

// The files with a model's weights: their paths, and whether they changed since data was derived
// from them. File metadata decides that, so that no weights are read.

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// FileState is a file's metadata. Equal states mean equal bytes: a write or a replacement changes
// the file's change time or its inode number, and no program can set these. (A modification time
// can be set, and copying tools do set it.)
type FileState struct {
	Path          string // absolute
	Size          int64
	Modified      int64 // in ns since 1970
	Changed       int64 // likewise
	Device, Inode uint64
	Scale         string // of an adapter's file: the factor with which it is added
}

// String returns one line with all fields.
func (s FileState) String() string {
	line := fmt.Sprintf("%q size %d modified %d changed %d device %d inode %d", s.Path, s.Size,
		s.Modified, s.Changed, s.Device, s.Inode)
	if s.Scale != "" {
		line += " scale " + s.Scale
	}
	return line
}

// Settling exceeds the resolution of any file system's times: a file that was changed within it
// could change again without a new time. Tests change it.
var Settling = 2 * time.Second

// FileStates are the states of all files of a model's weights, and the time when they were read.
// Files is empty if a file could not be described, or if the system does not record change times.
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

// Unsettled returns the path of a file that was changed shortly before Seen, "" if there is none.
func (s FileStates) Unsettled() string {
	for _, f := range s.Files {
		if max(f.Modified, f.Changed) >= s.Seen.Add(-Settling).UnixNano() {
			return f.Path
		}
	}
	return ""
}

// FileStates describes the current state of the weight files and adapters.
func (f Model) FileStates() FileStates {
	if f.Demo {
		return FileStates{}
	}
	paths, err := f.files()
	if err != nil {
		return FileStates{}
	}
	return statesOf(paths).with(f.Refs)
}

// FileStates describes the weight files at the time of opening.
func (c *Checkpoint) FileStates() FileStates { return c.states }

func (f Model) files() ([]string, error) {
	if f.GGUF != nil {
		return f.GGUF.Files(), nil
	}
	folder := f.folder()
	index, err := shards(folder)
	if err != nil {
		return nil, err
	}
	return joinAll(folder, index.Files), nil
}

// folder is the folder with the weights of a model that is not a GGUF file.
func (f Model) folder() string {
	if inside := OriginalIn(f.Path); inside != "" {
		return inside
	}
	return f.Path
}

func joinAll(folder string, names []string) []string {
	var paths []string
	for _, name := range names {
		paths = append(paths, filepath.Join(folder, name))
	}
	return paths
}
