package models

// Reading weights into the page cache before they are mapped. A first forward pass over cold weights faults page by page, in the order of the
// layers; several readers with large requests keep a disk busy instead. What is in memory already is not read again, and nothing is read
// that would only push itself out.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

const (
	aheadReaders = 8
	aheadBytes   = 4 << 20 // of one request
)

// ReadAhead reads the weights, at most free bytes of them, and tells how far it is as Conversion.Run does. A file that cannot be read is left
// to Open, which says why.
func (f Found) ReadAhead(ctx context.Context, free int64, progress func(done, total int64)) error {
	if f.Demo || f.Bytes > free {
		return nil
	}
	folder := f.Path
	if inside := originalIn(folder); inside != "" {
		folder = inside
	}
	index, err := shards(folder)
	if err != nil {
		return nil
	}
	var spans []span
	var total int64
	for _, name := range index.Files {
		file, err := os.Open(filepath.Join(folder, name))
		if err != nil {
			return nil
		}
		defer file.Close()
		list, err := missingSpans(file, aheadBytes)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, s := range list {
			total += s.length
		}
		spans = append(spans, list...)
	}
	if total == 0 {
		return nil
	}
	var done atomic.Int64
	stop := tell(&done, total, progress)
	defer stop()
	return readSpans(ctx, spans, &done)
}

// span is a part of a file.
type span struct {
	file          *os.File
	begin, length int64
}

// readSpans reads spans with several readers, in order.
func readSpans(ctx context.Context, spans []span, done *atomic.Int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range aheadReaders {
		group.Go(func() {
			buffer := make([]byte, aheadBytes)
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if i >= int64(len(spans)) {
					return
				}
				s := spans[i]
				if _, err := s.file.ReadAt(buffer[:s.length], s.begin); err != nil && !errors.Is(err, io.EOF) {
					cancel(err)
				}
				done.Add(s.length)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// whole cuts a file into spans of at most each bytes.
func whole(f *os.File, each int64) ([]span, error) {
	stat, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var list []span
	for at := int64(0); at < stat.Size(); at += each {
		list = append(list, span{f, at, min(each, stat.Size()-at)})
	}
	return list, nil
}
