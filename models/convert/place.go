package convert

// Where the files of a source are: on the disk, or in a repository of which nothing is stored, so
// that 16 bits of a model need no more disk than its 4 bits.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/safetensors"
)

// place has files by their names.
type place interface {
	String() string // as a person names it
	// read gives a whole file of at most this many bytes; fs.ErrNotExist if there is none.
	read(name string, most int64) ([]byte, error)
	open(name string) (file, error)
}

// file is an open file.
type file interface {
	io.ReaderAt
	io.Closer
	is() sourceFile
}

// disk is a folder, or a file that is the whole source.
type disk string

func (d disk) String() string { return string(d) }

func (d disk) read(name string, most int64) ([]byte, error) {
	text, err := mapping.ReadFile(filepath.Join(string(d), name), most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

func (d disk) open(name string) (file, error) {
	f, _, err := mapping.OpenRegular(filepath.Join(string(d), name))
	switch {
	case errors.Is(err, mapping.ErrNotRegular):
		return nil, &safetensors.Error{File: name, What: mapping.ErrNotRegular.Error()}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	state, err := stateOf(f.Name())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return onDisk{f, state}, nil
}

type onDisk struct {
	*os.File
	state sourceFile
}

func (f onDisk) is() sourceFile { return f.state }

// stateOf is what tells whether a file is still the same.
func stateOf(path string) (sourceFile, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return sourceFile{}, err
	}
	stat, err := os.Stat(path)
	if err != nil {
		return sourceFile{}, err
	}
	return sourceFile{absolute, stat.Size(), stat.ModTime().UTC().Format(time.RFC3339Nano)}, nil
}

// remote is a repository that is read until ctx ends.
type remote struct {
	*hub.Remote
	ctx context.Context
}

func (r remote) String() string { return "hf:" + r.Repo.ID() }

func (r remote) read(name string, most int64) ([]byte, error) {
	return r.ReadFile(r.ctx, name, most)
}

func (r remote) open(name string) (file, error) {
	f, err := r.Open(r.ctx, name)
	if err != nil {
		return nil, err
	}
	return onHub{f, sourceFile{fmt.Sprintf("%s@%s/%s", r, r.Commit, name), f.Stat().Size,
		f.Stat().ETag}}, nil
}

type onHub struct {
	*hub.RemoteFile
	state sourceFile
}

func (f onHub) is() sourceFile { return f.state }

// Close has nothing to give back: connections belong to the client.
func (f onHub) Close() error { return nil }
