package lora

// From text to an adapter: a folder, or a repository in the Hugging Face cache, and its scale.

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/safetensors"
	"github.com/ossrun/ossrun/models/store"
)

type Ref struct {
	Name  string  // the folder's, or the repository's without its owner
	Path  string  // the folder, absolute
	Scale float64 // 1: as it was trained
}

// Named splits NAME=ADAPTER, an adapter as a separate model; otherwise text is the source.
func Named(text string) (name, source string, ok bool) {
	name, source, ok = strings.Cut(text, "=")
	if !ok || name == "" || strings.ContainsAny(name, `/\: `) || exists(text) {
		return "", text, false
	}
	return name, source, true
}

// maxScale bounds an adapter's scale.
const maxScale = 100

// Find reads FOLDER[:SCALE] or hf:owner/name[@revision][:SCALE]. It opens nothing.
func Find(text string) (Ref, error) {
	r, source := Ref{Scale: 1}, text
	if colon := strings.LastIndex(text, ":"); colon > 0 && !exists(text) {
		if scale, err := strconv.ParseFloat(text[colon+1:], 64); err == nil {
			r.Scale, source = scale, text[:colon]
		}
	}
	if !(math.Abs(r.Scale) <= maxScale) {
		return r, fmt.Errorf("the scale of adapter %s must lie between -%d and %[2]d, not %v",
			safetensors.Printable(source), maxScale, r.Scale)
	}
	if id, ok := strings.CutPrefix(source, "hf:"); ok && !exists(source) {
		return r.cached(id)
	}
	path, err := filepath.Abs(source)
	if err != nil {
		return r, err
	}
	if _, err := os.Stat(path); err != nil {
		return r, notAFolder(source, err)
	}
	r.Name, r.Path = filepath.Base(path), path
	if repo, ok := store.RepoOf(path); ok {
		r.Name = repo.Name
	}
	return r, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (r Ref) cached(id string) (Ref, error) {
	repo, revision, err := models.ParseHF(id)
	if err != nil {
		return r, err
	}
	root, err := store.Root()
	if err != nil {
		return r, err
	}
	snapshots, err := store.Select(root, repo, revision)
	if err != nil {
		return r, err
	}
	for _, s := range snapshots {
		if r.Name, r.Path = repo.Name, s.Path; exists(filepath.Join(s.Path, WeightsName)) {
			return r, nil
		}
	}
	if len(snapshots) > 0 && exists(filepath.Join(r.Path, "config.json")) {
		return r, notAnAdapter("hf:" + id)
	}
	return r, &NotCachedError{id}
}

// NotCachedError says that an adapter's repository is not on this machine.
type NotCachedError struct{ ID string } // owner/name[@revision]

func (e *NotCachedError) Error() string {
	return fmt.Sprintf("adapter %s is not downloaded: run ossrun pull hf:%[1]s", e.ID)
}

func (r Ref) Files() []string {
	return []string{filepath.Join(r.Path, models.LoRAConfig), filepath.Join(r.Path, WeightsName)}
}

// String identifies an adapter with its scale.
func (r Ref) String() string { return fmt.Sprintf("%s:%v", r.Path, r.Scale) }

func IsAdapter(folder string) bool { return exists(filepath.Join(folder, models.LoRAConfig)) }

// BaseOf is the base model of the adapter in a folder, "" without an adapter.
func BaseOf(folder string) string {
	text, err := models.ReadFile(filepath.Join(folder, models.LoRAConfig))
	if err != nil {
		return ""
	}
	config, err := models.ParseLoRA(text)
	if err != nil {
		return ""
	}
	return safetensors.Printable(config.Base)
}
