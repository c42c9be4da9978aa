package models

// Reading weights into the page cache before they are used from there. A first forward pass over cold weights faults page by page, in the order of the
// layers; several readers with large requests keep a disk busy instead. What is in memory already is not read again, and nothing is read
// that would only push itself out.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/ossrun/ossrun/models/safetensors"
)

const (
	aheadReaders = 4
	aheadBytes   = 16 << 20 // of one request
)

// ReadAhead reads the weights' files, if free bytes have room for them, and tells how far it is as Checkpoint.Load does. A file that cannot be read is left
// to Open, which says why.
func (f Found) ReadAhead(ctx context.Context, free int64, progress func(done, total int64)) error {
	if f.Demo || f.Bytes > free {
		return nil
	}
	paths, err := f.files()
	if err != nil {
		return nil
	}
	var spans []span
	var total int64
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return nil
		}
		defer file.Close()
		stat, err := file.Stat()
		if err != nil {
			return nil
		}
		data, unmap, err := safetensors.MapFile(file, stat.Size())
		if err != nil {
			return nil
		}
		defer unmap()
		for _, s := range missing(whole(file, data, aheadBytes)) {
			total += int64(len(s.data))
			spans = append(spans, s)
		}
	}
	if total == 0 {
		return nil
	}
	var done atomic.Int64
	stop := tell(&done, total, progress)
	defer stop()
	return readSpans(ctx, spans, &done)
}

// files are the paths of the weights.
func (f Found) files() ([]string, error) {
	if f.GGUF != nil {
		return f.GGUF.set.Files, nil
	}
	folder := f.Path
	if inside := originalIn(folder); inside != "" {
		folder = inside
	}
	index, err := shards(folder)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range index.Files {
		paths = append(paths, filepath.Join(folder, name))
	}
	return paths, nil
}

// span is a part of a mapped file.
type span struct {
	file  *os.File
	begin int64
	data  []byte
}

// readSpans reads spans with several readers, in order.
func readSpans(ctx context.Context, spans []span, done *atomic.Int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range aheadReaders {
		group.Go(func() {
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if i >= int64(len(spans)) {
					return
				}
				if err := spans[i].read(); err != nil {
					cancel(fmt.Errorf("reading %s: %w", filepath.Base(spans[i].file.Name()), err))
					return
				}
				done.Add(int64(len(spans[i].data)))
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// whole cuts a mapped file into spans of at most each bytes.
func whole(f *os.File, data []byte, each int) (list []span) {
	for at := 0; at < len(data); at += each {
		list = append(list, span{f, int64(at), data[at:min(at+each, len(data))]})
	}
	return list
}
