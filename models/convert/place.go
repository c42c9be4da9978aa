package convert

// A source's files on disk, or in a repository of which nothing is stored, so that a 16-bit model
// needs only the disk space of its 4 bits.

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

// place opens files by name.
type place interface {
	String() string // for messages
	// read returns a file of at most this many bytes; fs.ErrNotExist if it is missing.
	read(name string, most int64) ([]byte, error)
	open(name string) (file, error)
}

// file is an open file.
type file struct {
	io.ReaderAt
	io.Closer
	state sourceFile
}

// disk is a folder, or the single file of a source.
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
	f, _, err := safetensors.OpenFile(filepath.Join(string(d), name))
	if err != nil {
		return file{}, err
	}
	state, err := stateOf(f.Name())
	if err != nil {
		return file{}, errors.Join(err, f.Close())
	}
	return file{f, f, state}, nil
}

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
		return file{}, err
	}
	// closing does nothing: connections belong to the client
	return file{f, io.NopCloser(nil), sourceFile{fmt.Sprintf("%s@%s/%s", r, r.Commit, name),
		f.Stat().Size, f.Stat().ETag}}, nil
}
