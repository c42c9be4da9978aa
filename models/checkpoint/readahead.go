package checkpoint

// Reading weights into the page cache before their first use. A forward pass over cold weights
// faults page by page in the order of the layers; several readers with large requests keep a disk
// busy. Pages in memory are not read again, and nothing is read that would only evict itself.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/safetensors"
)

const (
	aheadReaders = 4
	aheadBytes   = 16 << 20 // of one request
)

// Replaced says that another file replaces some of the weights. The zero value replaces nothing.
type Replaced struct {
	File   string                   // the file; "" for none
	Covers func(tensor string) bool // which tensors, by their names in the Hugging Face layout
}

// ReadAhead reads the weight files if they fit in free bytes, and reports progress as
// Checkpoint.Load does. It skips replaced weights and reads their replacement. Unreadable files are
// skipped: Open reports the error.
func (f Model) ReadAhead(ctx context.Context, free int64, replaced Replaced,
	progress func(done, total int64)) error {
	if f.Demo {
		return nil
	}
	parts, need, err := f.partsToRead(replaced)
	if err != nil || need > free {
		return nil
	}
	var spans []span
	var total int64
	for _, p := range parts {
		file, size, err := mapping.OpenRegular(p.path)
		if err != nil {
			return nil
		}
		defer file.Close()
		data, unmap, err := mapping.File(file, size)
		if err != nil {
			return nil
		}
		defer unmap()
		for _, s := range missing(spansOf(file, data, p.without, aheadBytes)) {
			total += int64(len(s.data))
			spans = append(spans, s)
		}
	}
	if total == 0 {
		return nil
	}
	var done atomic.Int64
	stop := mapping.ReportProgress(&done, total, progress)
	defer stop()
	return mapping.Parallel(ctx, aheadReaders, len(spans), &done, func(i int, _ *[]byte) (int64,
		error) {
		err := spans[i].read()
		if err != nil {
			err = fmt.Errorf("reading %s: %w", filepath.Base(spans[i].file.Name()), err)
		}
		return int64(len(spans[i].data)), err
	})
}

// filesToRead returns the weight files, or the one file in the released order.
func (f Model) filesToRead() ([]string, error) {
	if ordered := f.Ordered(); ordered != "" {
		return []string{ordered}, nil
	}
	return f.files()
}

// partOfFile is a file without some ranges of it.
type partOfFile struct {
	path    string
	without []mapping.Range
}

// partsToRead returns the parts of files to read ahead, and the memory that they take.
func (f Model) partsToRead(replaced Replaced) (parts []partOfFile, need int64, err error) {
	paths, err := f.filesToRead()
	if err != nil {
		return nil, 0, err
	}
	need = f.Bytes
	for _, path := range paths {
		parts = append(parts, partOfFile{path: path})
	}
	if replaced.File == "" {
		return parts, need, nil
	}
	stat, err := os.Stat(replaced.File)
	if err != nil {
		return nil, 0, err
	}
	skip, err := f.skippedRanges(replaced.Covers)
	if err != nil {
		return nil, 0, err
	}
	for i := range parts {
		parts[i].without = skip[i]
		for _, s := range skip[i] {
			need -= s.End - s.Begin
		}
	}
	return append(parts, partOfFile{path: replaced.File}), need + stat.Size(), nil
}

type span struct {
	file  *os.File
	begin int64
	data  []byte
}

// spansOf cuts a mapped file into spans of at most limit bytes. It leaves out the ranges of
// without, which are sorted.
func spansOf(f *os.File, data []byte, without []mapping.Range, limit int) (list []span) {
	cut := func(from, to int64) {
		for pos := from; pos < to; pos += int64(limit) {
			list = append(list, span{f, pos, data[pos:min(pos+int64(limit), to)]})
		}
	}
	size, pos := int64(len(data)), int64(0)
	for _, s := range without {
		cut(pos, min(s.Begin, size))
		pos = max(pos, s.End)
	}
	cut(pos, size)
	return list
}

// The byte ranges of replaced tensors (by a copy of the dense weights in 8 bits), so that they are
// not read ahead. A tensor that has another use is never among them.

// skippedRanges returns the ranges of skipped tensors in each weight file, in the file's order.
// skip gets names of the Hugging Face layout. A tensor of another layout is skipped if all tensors
// made from it are.
func (f Model) skippedRanges(skip func(tensor string) bool) ([][]mapping.Range, error) {
	paths, err := f.filesToRead()
	if err != nil {
		return nil, err
	}
	var spec models.Spec
	switch ordered := f.Ordered(); {
	case ordered != "":
		spec = f.GGUF.Spec()
	case f.GGUF != nil:
		return f.GGUF.SkippedRanges(skip), nil
	default:
		if spec, err = models.ReadSpec(f.folder()); err != nil {
			return nil, err
		}
	}
	var list [][]mapping.Range
	var original bool
	for _, path := range paths {
		header, err := safetensors.Inspect(path)
		if err != nil {
			return nil, err
		}
		list = append(list, nil)
		for _, t := range header.Tensors {
			original = original || strings.HasPrefix(t.Name, "block.")
		}
		skipped := skippedTensors(spec, skip, original)
		for _, t := range header.Tensors {
			if skipped[t.Name] {
				list[len(list)-1] = append(list[len(list)-1],
					mapping.Range{Begin: t.Begin, End: t.End})
			}
		}
	}
	return list, nil
}

// skippedTensors returns the names, as in the file, of tensors made from skipped ones only.
func skippedTensors(s models.Spec, skip func(tensor string) bool, original bool) map[string]bool {
	skipped := map[string]bool{}
	for _, t := range s.Tensors() {
		name := t.Name
		if original {
			name = originalNames.Replace(name)
		}
		if all, seen := skipped[name]; !seen || all {
			skipped[name] = skip(t.Name)
		}
	}
	return skipped
}
