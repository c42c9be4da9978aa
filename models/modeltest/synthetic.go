package modeltest

// Full-size checkpoints on disk with random weights and no holes, for measuring how fast real ones
// would load and run.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
)

// repeatedVocab is the number of drawn embedding rows; larger embeddings repeat them.
const repeatedVocab = 4096

// WriteSynthetic writes a checkpoint of shape s with random weights into a folder, as this many
// files of about equal size; the same seed gives the same bytes. The weights are those of
// checkpoint.Synthetic with one layer and a small vocabulary; each tensor begins at another offset
// of its pattern. It takes the memory of that layer, half a gigabyte for the 20b, for any size.
func WriteSynthetic(folder string, s models.Spec, seed uint64, files int) error {
	small := s
	small.Layers, small.Vocab = 1, min(s.Vocab, repeatedVocab)
	source, err := checkpoint.Synthetic(small, seed)
	if err != nil {
		return err
	}
	defer source.Close()
	var entries []entry
	total, held := int64(0), int64(0)
	for _, t := range s.Tensors() {
		entries = append(entries, entry{t.Name, string(t.DType), t.Shape, t.Bytes()})
		total += t.Bytes()
	}
	var parts [][]entry
	for _, e := range entries {
		if len(parts) == 0 || len(parts) < files && held >= total*int64(len(parts))/int64(files) {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], e)
		held += e.bytes
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	placed := map[string]string{}
	for i, part := range parts {
		name := FileName(i, len(parts))
		for _, e := range part {
			placed[e.name] = name
		}
		if err := writeRepeated(filepath.Join(folder, name), part, source); err != nil {
			return err
		}
	}
	objects := map[string]any{"config.json": Config(s),
		"generation_config.json": map[string]any{"eos_token_id": s.EOS}}
	if len(parts) > 1 {
		objects["model.safetensors.index.json"] = map[string]any{
			"metadata": map[string]any{"total_size": total}, "weight_map": placed}
	}
	return writeObjects(folder, objects)
}

var layerNumber = regexp.MustCompile(`\.layers\.\d+\.`)

// writeRepeated writes one file and waits until it is on disk, so that the write does not disturb a
// later measurement.
func writeRepeated(path string, part []entry, source *checkpoint.Checkpoint) (err error) {
	head, _ := header(part, nil)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(head); err != nil {
		return err
	}
	for i, e := range part {
		t, err := source.Tensor(layerNumber.ReplaceAllString(e.name, ".layers.0."))
		if err != nil {
			return err
		}
		pattern := t.Data
		if len(pattern) == 0 {
			return fmt.Errorf("tensor %s has no pattern", e.name)
		}
		at := i * 4096 * 61 % len(pattern) / 64 * 64
		for left := e.bytes; left > 0; at = 0 {
			n, err := f.Write(pattern[at : at+int(min(left, int64(len(pattern)-at)))])
			if err != nil {
				return err
			}
			left -= int64(n)
		}
	}
	return f.Sync()
}
