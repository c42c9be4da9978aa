package checkpoint

// Errors for files and folders that are not a gpt-oss checkpoint in the Hugging Face layout: what
// each is and what to do. Order matters in both lists: the more specific sign is checked first.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/mapping"
	"github.com/ossrun/ossrun/models/store"
)

// foreignFile describes a file that was given instead of a folder.
func foreignFile(path string) error {
	name := filepath.Base(path)
	begin := make([]byte, 8)
	f, _, err := mapping.OpenRegular(path)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer f.Close()
	n, err := io.ReadFull(f, begin)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", name, err)
	}
	switch begin = begin[:n]; {
	case strings.EqualFold(filepath.Ext(name), ".gguf") && !bytes.HasPrefix(begin, []byte("GGUF")):
		return fmt.Errorf("%s is not a GGUF file, whatever its name: it begins with %q", name,
			begin)
	case bytes.HasPrefix(begin, []byte("GGUF")):
		return fmt.Errorf("%s is a GGUF file, llama.cpp's format: give its own path to --model",
			name)
	case strings.HasSuffix(name, ".safetensors"), strings.HasSuffix(name, ".json"):
		return fmt.Errorf("%s is one file of a checkpoint: point at its folder", name)
	}
	return fmt.Errorf("%s is a file: point at a folder with config.json and model.safetensors",
		name)
}

// ForeignFolder describes a folder without config.json.
func ForeignFolder(path string) error {
	name, modelArg := filepath.Base(path), path
	if absolute, err := filepath.Abs(path); err == nil {
		if repo, ok := store.RepoOf(absolute); ok {
			name, modelArg = repo.ID(), "hf:"+repo.ID()
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	holds := func(extensions ...string) bool {
		return slices.ContainsFunc(names, func(file string) bool {
			return slices.Contains(extensions, strings.ToLower(filepath.Ext(file)))
		})
	}
	switch {
	case slices.Contains(names, "adapter_config.json"):
		return fmt.Errorf(
			"%s holds a LoRA adapter, not a model: choose its base model, and add --lora %s", name,
			modelArg)
	case holds(".gguf"):
		if files := glob(path, "*.gguf"); len(files) > 0 {
			_, err := gguf.Open(files[0])
			if wrong, ok := errors.AsType[*gguf.Error](err); ok && !wrong.Cut {
				return fmt.Errorf("%s: %w", name, wrong)
			}
		}
		return fmt.Errorf(
			"%s holds GGUF files, llama.cpp's format: give the path of the file to --model", name)
	case slices.Contains(names, "model.bin"):
		return fmt.Errorf(
			"%s holds the weights for Metal, which OpenAI ships beside the ones that ossrun "+
				"reads: point at the folder above it", name)
	case slices.Contains(names, "original") && !holds(".safetensors"):
		return fmt.Errorf(
			"%s has an original/ folder without a config.json of that layout: download original/ "+
				"again", name)
	case holds(".safetensors"):
		return fmt.Errorf("%s has no config.json beside its safetensors: download config.json too",
			name)
	case holds(".pt", ".pth", ".ckpt", ".bin"):
		return fmt.Errorf("%s holds PyTorch files without a config.json: %s", name, models.Advice)
	case len(entries) == 0:
		return fmt.Errorf(
			"%s is an empty folder: point at one with config.json and model.safetensors", name)
	}
	return fmt.Errorf(
		"%s has no config.json: point at a folder with config.json and model.safetensors", name)
}

// exists reports whether there is a file or folder at path, following links.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}
