// Package jsonlines keeps results in a file, a JSON value a line, so that interrupted work can
// resume, and does that work.
//
// What must stay true: a line that Append has written survives a crash of the process; a cut last
// line is dropped by the next Open; a file of another kind is not changed; nothing follows a line
// that could not be written.
package jsonlines

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ossrun/ossrun/models/mapping"
)

// File is open for appending.
type File struct{ file *os.File }

// Open opens a file, or creates it, and passes each line to read. An error of read means that the
// file is of another kind.
func Open(name string, read func(line []byte) error) (*File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the results: %w", err)
	}
	if stat, err := f.Stat(); err != nil || !stat.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s %w", name, mapping.ErrNotRegular), err, f.Close())
	}
	in, good := bufio.NewReaderSize(f, 1<<20), int64(0)
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = read(line)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s, line %d is no result of this: %w; name "+
				"another file", name, number, err), f.Close())
		}
		good += int64(len(line))
	}
	if err = f.Truncate(good); err == nil {
		_, err = f.Seek(good, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the results: %w", err), f.Close())
	}
	return &File{f}, nil
}

func (f *File) Name() string { return f.file.Name() }

// Append writes a value as the next line.
func (f *File) Append(value any) error {
	line, err := json.Marshal(value)
	if err == nil {
		_, err = f.file.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep a result: %w", err)
	}
	return nil
}

func (f *File) Close() error { return f.file.Close() }

// ForEach calls do(0..n-1), atOnce of them at once, until ctx ends or one fails. The functions that
// do returns, unless they are nil, are called one at a time.
func ForEach(ctx context.Context, n, atOnce int,
	do func(ctx context.Context, i int) (add func() error)) error {
	var mu sync.Mutex
	var failed error
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(max(atOnce, 1))
	for i := range n {
		work.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			add := do(ctx, i)
			mu.Lock()
			defer mu.Unlock()
			if add != nil && failed == nil {
				failed = add()
			}
			return failed
		})
	}
	return work.Wait()
}
