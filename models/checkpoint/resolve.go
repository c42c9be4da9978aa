package checkpoint

// From a typed name to the weights: a name of the catalogue or hf:owner/name[@revision] in the
// Hugging Face cache, a folder, or the embedded demo. Resolving opens no weights and downloads
// nothing. A catalogue name wins over a folder of that name; "./20b" is the folder.

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/safetensors"
	"github.com/ossrun/ossrun/models/store"
)

// Model is a model and its place on disk.
type Model struct {
	// "openai/gpt-oss-20b" for a snapshot in the Hugging Face cache, "" for anything else
	Repo   string
	Commit string // the snapshot's
	Name   string // what Spec.Name will be
	ID     string // the catalogue's, "" for anything else
	Path   string // the folder or GGUF file to open, "" for the demo
	Demo   bool
	// size of the existing weight files; of a GGUF model, of the weights in memory
	Bytes int64
	// all weight files are complete, by their headers; Open checks the tensors
	Complete bool

	GGUF *gguf.Model // a GGUF model, whose first file is Path; else nil
	Refs []lora.Ref  // adapters that are merged into it
}

// Source is what Resolve takes to find the model again: "" if its name does, or if nothing does
// because it has adapters.
func (f Model) Source() string {
	switch {
	case f.Demo, f.ID != "", len(f.Refs) > 0:
		return ""
	case f.Repo != "":
		return "hf:" + f.Repo + "@" + f.Commit
	}
	return f.Path
}

// Open opens the model, with its adapters merged.
func (f Model) Open() (*Checkpoint, error) {
	c, err := f.open()
	if err != nil {
		return nil, err
	}
	if err = c.Adapt(f.Refs); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (f Model) open() (*Checkpoint, error) {
	if f.GGUF != nil {
		return openGGUF(f.GGUF)
	}
	if f.Demo {
		return OpenDemo()
	}
	return Open(f.Path)
}

// NotCachedError says that a known model's weights are not on this machine.
type NotCachedError struct {
	Name  string // the model: "gpt-oss-20b" or "owner/name@revision"
	Pull  string // argument of ossrun pull
	Bytes int64  // size of the download, 0 if unknown
}

func (e *NotCachedError) Error() string {
	size := ""
	if e.Bytes > 0 {
		size = fmt.Sprintf(" (%.1f GB)", float64(e.Bytes)/1e9)
	}
	return fmt.Sprintf("%s is not downloaded: run ossrun pull %s%s", e.Name, e.Pull, size)
}

// Resolve finds a model: *NotCachedError when it is known but not here, *UnknownModelError when
// nothing has that name.
func Resolve(name string) (Model, error) {
	name = strings.TrimSpace(name)
	if e, ok := models.Lookup(name); ok {
		return find(e)
	}
	if r, ok := models.LookupRelated(name); ok {
		return Model{}, &models.UnknownModelError{Name: r.HF, Meaning: r.Description}
	}
	if id, ok := strings.CutPrefix(name, "hf:"); ok {
		repo, revision, err := models.ParseHF(id)
		if err != nil {
			return Model{}, err
		}
		return findCached(repo, revision)
	}
	if stat, err := os.Stat(name); err == nil && name != "" {
		if !stat.IsDir() {
			return findFile(name)
		}
		return findFolder(name)
	}
	if model, ok, err := findForeign(name); ok {
		return model, err
	}
	if strings.ContainsAny(name, `/\`) {
		if repo, ok := store.ParseRepo(name); ok {
			// A repository without "hf:" is accepted only if it is in the cache, so that a mistyped
			// path does not start a download.
			model, err := findCached(repo, "")
			if _, missing := errors.AsType[*NotCachedError](err); !missing {
				return model, err
			}
		}
	}
	return Model{}, models.Unknown(name)
}

func find(e models.Entry) (Model, error) {
	if e.HF == "" {
		return Model{Name: models.Demo, ID: models.Demo, Demo: true,
			Bytes: int64(len(assets.DemoPack)), Complete: true}, nil
	}
	repo, _ := store.ParseRepo(e.HF)
	return findCached(repo, "")
}

// findCached finds a repository in the cache: the first complete snapshot of the revision, or the
// first.
func findCached(repo store.Repo, revision string) (Model, error) {
	root, err := store.Root()
	if err != nil {
		return Model{}, err
	}
	snapshots, err := store.Select(root, repo, revision)
	if err != nil {
		return Model{}, err
	}
	var first *Model
	for _, s := range snapshots {
		model := inspect(s.Path)
		if model.Complete {
			return model, nil
		}
		if first == nil {
			first = &model
		}
	}
	if first != nil {
		return *first, nil
	}
	missing := &NotCachedError{Name: repo.ID(), Pull: pullName(repo)}
	if revision != "" {
		// without a size, which is known only for the release's main
		missing.Name = repo.ID() + "@" + revision
		missing.Pull = "hf:" + missing.Name
	} else if e, ok := models.Lookup(repo.ID()); ok {
		missing.Name, missing.Bytes = e.Spec.Name, e.DownloadBytes
	}
	return Model{}, missing
}

// findFile finds a model in a GGUF file. For other files the error says what they are.
func findFile(path string) (Model, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return Model{}, err
	}
	if !gguf.IsFile(absolute) {
		return Model{}, foreignFile(path)
	}
	g, err := gguf.ReadModel(absolute, gguf.ModelName(filepath.Base(absolute)))
	if err != nil {
		return Model{}, err
	}
	return ggufModel(g), nil
}

func ggufModel(m *gguf.Model) Model {
	return Model{Name: m.Name, Path: m.Source, Bytes: m.Bytes, Complete: true, GGUF: m}
}

// findFolder finds a folder, also a repository's folder in a Hugging Face cache.
func findFolder(path string) (Model, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return Model{}, err
	}
	if repo, ok := store.ParseFolder(filepath.Base(absolute)); ok &&
		!exists(filepath.Join(absolute, "config.json")) {
		snapshots, err := store.Snapshots(filepath.Dir(absolute), repo)
		if err != nil {
			return Model{}, err
		}
		if len(snapshots) > 0 {
			absolute = snapshots[0].Path
		}
	}
	return inspect(absolute), nil
}

// inspect describes the checkpoint in a folder by the names and headers of its files.
func inspect(folder string) Model {
	model := Model{Name: nameOf(folder), Path: folder}
	if inside := OriginalIn(folder); inside != "" {
		folder = inside
	}
	model.Complete = exists(filepath.Join(folder, "config.json"))
	if repo, ok := store.RepoOf(model.Path); ok {
		model.Repo, model.Commit = repo.ID(), filepath.Base(model.Path)
		if e, ok := models.Lookup(repo.ID()); ok {
			model.ID = e.ID
		}
	}
	names := []string{singleFile}
	if adapter := lora.IsAdapter(folder) && !model.Complete; adapter {
		names, model.Complete = []string{lora.WeightsName}, true
	} else if index, err := safetensors.ReadIndex(filepath.Join(folder,
		safetensors.IndexName)); err == nil {
		names = index.Files
	} else if !exists(filepath.Join(folder, singleFile)) {
		model.Complete = false
		names, _ = fs.Glob(os.DirFS(folder), "model-*-of-*.safetensors") // it is well formed
	}
	for _, name := range names {
		path := filepath.Join(folder, name)
		if stat, err := os.Stat(path); err == nil {
			model.Bytes += stat.Size()
		}
		if _, err := safetensors.Inspect(path); err != nil {
			model.Complete = false
		}
	}
	return model
}

// Cached lists the catalogue's models in the Hugging Face cache, complete or not, the smallest
// first.
func Cached() ([]Model, error) {
	var list []Model
	for _, e := range models.Catalogue() {
		if e.HF == "" {
			continue
		}
		model, err := find(e)
		var missing *NotCachedError
		switch {
		case errors.As(err, &missing):
		case err != nil:
			return nil, err
		default:
			list = append(list, model)
		}
	}
	return list, nil
}

// BestFit returns the largest complete general model of the catalogue in the cache whose weight
// files take at most freeBytes; false if there is none. The caller subtracts KV pages and scratch
// from freeBytes.
func BestFit(freeBytes int64) (Model, bool) {
	cached, err := Cached()
	if err != nil {
		return Model{}, false
	}
	var best Model
	for _, model := range cached {
		if e, ok := models.Lookup(model.ID); !ok || e.Special != "" {
			continue
		}
		if model.Complete && model.Bytes <= freeBytes && model.Bytes > best.Bytes {
			best = model
		}
	}
	return best, best.Complete
}

// FindTarget finds a target in the cache. *NotCachedError if it is missing.
func FindTarget(t models.Target) (Model, error) { return findCached(t.Repo, t.Revision) }

// A checkpoint's name, and the remedy for a broken one. Both follow from its path.

// nameOf returns the repository's name for a snapshot in the Hugging Face cache, else the folder's.
func nameOf(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	if repo, ok := store.RepoOf(path); ok {
		if e, ok := models.Lookup(repo.ID()); ok {
			return e.Spec.Name
		}
		return repo.Name
	}
	return filepath.Base(path)
}

// remedy ends the sentence about a checkpoint with missing or truncated files: the command for a
// snapshot in the cache.
func remedy(err error, path string) string {
	broken, _ := errors.AsType[*safetensors.Error](err)
	if _, missing := errors.AsType[*missingError](err); !missing &&
		(broken == nil || !broken.Cut) {
		return ""
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	repo, ok := store.RepoOf(path)
	if exists(filepath.Join(path, ImportRecord)) {
		return ": repeat its ossrun import, which writes that file again"
	}
	if !ok {
		return ": download or copy it again"
	}
	return ": download it again with ossrun pull " + pullName(repo)
}

// pullName is the argument of ossrun pull for a repository.
func pullName(repo store.Repo) string {
	if e, ok := models.Lookup(repo.ID()); ok {
		return e.ID
	}
	return "hf:" + repo.ID()
}
