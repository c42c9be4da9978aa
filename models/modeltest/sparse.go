package modeltest

// Full-size checkpoints that take no disk: released headers, and holes as weights, which read as
// zeros.

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/ossrun/ossrun/models"
)

// WriteSparse writes a checkpoint of any size into a folder, with zero weights. The file system
// must support sparse files, as on Linux.
func WriteSparse(folder string, s models.Spec, files int) error {
	var entries []entry
	for _, t := range s.Tensors() {
		entries = append(entries, entry{t.Name, string(t.DType), t.Shape, t.Bytes()})
	}
	// The names and the index come from Write, with tensors without bytes; then the files are
	// corrected.
	c := &Checkpoint{Config: Config(s)}
	var parts [][]entry
	for part := range slices.Chunk(entries, (len(entries)+files-1)/files) {
		var empty []Tensor
		for _, e := range part {
			empty = append(empty, Tensor{Name: e.name, DType: e.dtype, Shape: e.shape})
		}
		c.Shards, parts = append(c.Shards, empty), append(parts, part)
	}
	if err := c.Write(folder); err != nil {
		return err
	}
	for i, part := range parts {
		text, data := header(part, nil)
		path := filepath.Join(folder, FileName(i, len(parts)))
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
		if err := os.Truncate(path, int64(len(text))+data); err != nil {
			return err
		}
	}
	return nil
}
