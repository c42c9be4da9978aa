package checkpoint

// gpt-oss weights of other programs on this machine: ollama, LM Studio and llama.cpp each have a
// folder of GGUF files. Headers identify them, so that fine-tunes are found and other architectures
// skipped. Nothing is written there.

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/store"
)

// Foreign is a model in another program's folder.
type Foreign struct {
	// the argument of --model: "ollama:gpt-oss:20b", "lmstudio:OWNER/REPO/FILE", "llama.cpp:FILE"
	Name    string
	Program string // "ollama", "LM Studio", "llama.cpp"
	Path    string // the GGUF file
	Bytes   int64  // its size, with its siblings if it is one of several
	Model   *gguf.Model
	Trouble error // why it cannot be used; Model is nil then

	unrelated bool // not a gpt-oss, or unknown
}

// SameShape reports whether a model of the catalogue has its shape.
func (e Foreign) SameShape(entry models.Entry) bool {
	return e.Model != nil && e.Model.Spec().SameShape(entry.Spec)
}

// ListForeign lists the models in other programs' folders, sorted by name. Missing or unreadable
// folders are skipped: they are not ours.
func ListForeign() []Foreign {
	list := slices.DeleteFunc(allForeign(), func(e Foreign) bool { return e.unrelated })
	slices.SortStableFunc(list, func(a, b Foreign) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// allForeign lists all models there, also those that are not gpt-oss.
func allForeign() []Foreign {
	list := append(ollamaModels(), llamaModels()...)
	for _, root := range lmStudioFolders() {
		list = append(list, readForeignFiles("LM Studio", "lmstudio:", root, "*/*/*.gguf")...)
	}
	return list
}

func readForeign(program, name, path string) Foreign {
	e := Foreign{Name: name, Program: program, Path: path}
	header, err := gguf.Open(path)
	if e.unrelated = err != nil; !e.unrelated {
		_, is := gguf.IsGPTOSS(header.Keys)
		e.unrelated, e.Bytes = !is, header.Size
		e.Model, err = gguf.ReadModel(path, gguf.ModelName(name))
	}
	if e.Model != nil {
		e.Bytes = e.Model.Size
	}
	if wrong, ok := errors.AsType[*gguf.Error](err); ok {
		e.Trouble = fmt.Errorf("%s %s", name, wrong.What) // the file may be called by its hash
	} else if e.Trouble = err; e.unrelated && errors.Is(err, fs.ErrNotExist) {
		e.Trouble = fmt.Errorf("%s is listed by %s, and its weights are missing: download it "+
			"again there, or run ossrun pull 20b", name, program)
	}
	return e
}

// ollamaModels follows ollama's manifests: manifests/HOST/OWNER/MODEL/TAG is JSON whose layer of
// the type "model" names a blob.
func ollamaModels() (list []Foreign) {
	for _, root := range folders(os.Getenv("OLLAMA_MODELS"), "~/.ollama/models",
		"/usr/share/ollama/.ollama/models", "/var/lib/ollama/models") {
		for _, tag := range glob(root, "manifests/*/*/*/*") {
			text, err := models.ReadFile(tag)
			if err != nil {
				continue
			}
			var manifest struct {
				Layers []struct{ MediaType, Digest string }
			}
			if json.Unmarshal(text, &manifest) != nil {
				continue
			}
			for _, layer := range manifest.Layers {
				digest, ok := strings.CutPrefix(layer.Digest, "sha256:")
				if layer.MediaType != "application/vnd.ollama.image.model" || !ok ||
					strings.ContainsAny(digest, `/\.`) {
					continue
				}
				model, owner := filepath.Base(filepath.Dir(tag)),
					filepath.Base(filepath.Dir(filepath.Dir(tag)))
				name := "ollama:" + model + ":" + filepath.Base(tag)
				if owner != "library" {
					name = "ollama:" + owner + "/" + model + ":" + filepath.Base(tag)
				}
				list = append(list, readForeign("ollama", name,
					filepath.Join(root, "blobs", "sha256-"+digest)))
			}
		}
	}
	return list
}

// lmStudioFolders are LM Studio's model folders: in its home, which a file may point to, or from
// its settings.
func lmStudioFolders() []string {
	homes := []string{"~/.lmstudio", "~/.cache/lm-studio"}
	for _, home := range folders("~/") {
		pointer := filepath.Join(home, ".lmstudio-home-pointer")
		if text, err := models.ReadFile(pointer); err == nil {
			homes = append(homes, strings.TrimSpace(string(text)))
		}
	}
	var roots []string
	for _, home := range folders(homes...) {
		roots = append(roots, filepath.Join(home, "models"))
		text, _ := models.ReadFile(filepath.Join(home, "settings.json"))
		var settings struct{ DownloadsFolder string }
		if json.Unmarshal(text, &settings) == nil { // unreadable settings are ignored
			roots = append(roots, settings.DownloadsFolder)
		}
	}
	return folders(roots...)
}

// llamaModels lists GGUF files in llama.cpp's own cache and in the Hugging Face cache, which its
// newer versions use.
func llamaModels() (list []Foreign) {
	caches := []string{os.Getenv("LLAMA_CACHE"), "~/.cache/llama.cpp"}
	switch runtime.GOOS {
	case "darwin":
		caches = append(caches, "~/Library/Caches/llama.cpp")
	case "windows":
		caches = append(caches, "~/AppData/Local/llama.cpp")
	}
	for _, root := range folders(caches...) {
		list = append(list, readForeignFiles("llama.cpp", "llama.cpp:", root, "*.gguf")...)
	}
	root, err := store.Root()
	if err != nil {
		return list
	}
	repos, err := store.Repos(root)
	if err != nil {
		return list
	}
	for _, repo := range repos {
		snapshots, err := store.Snapshots(root, repo)
		if err != nil || len(snapshots) == 0 {
			continue
		}
		list = append(list, readForeignFiles("the Hugging Face cache", "gguf:"+repo.ID()+"/",
			snapshots[0].Path, "*.gguf")...)
	}
	return list
}

// readForeignFiles reads the GGUF files of a folder that match a pattern. Each is named by its path
// in the folder.
func readForeignFiles(program, prefix, root, pattern string) (list []Foreign) {
	for _, path := range glob(root, pattern) {
		within, err := filepath.Rel(root, path)
		if err != nil || !gguf.IsFirst(filepath.Base(path)) {
			continue
		}
		list = append(list, readForeign(program, prefix+filepath.ToSlash(within), path))
	}
	return list
}

// folders returns the paths that are folders, without duplicates. "~/" is the user's home.
func folders(paths ...string) (list []string) {
	home, err := os.UserHomeDir()
	for _, path := range paths {
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			if err != nil {
				continue
			}
			path = filepath.Join(home, filepath.FromSlash(rest))
		}
		if path == "" {
			continue
		}
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		} else if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if stat, err := os.Stat(path); err == nil && stat.IsDir() && !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return list
}

// findForeign finds a model of another program by its name.
func findForeign(name string) (Model, bool, error) {
	if !models.IsForeignName(name) {
		return Model{}, false, nil
	}
	for _, e := range allForeign() {
		if e.Name == name || e.Name == name+":latest" {
			if e.Trouble != nil {
				return Model{}, true, e.Trouble
			}
			return ggufModel(e.Model), true, nil
		}
	}
	return Model{}, true, &models.UnknownModelError{Name: name,
		Meaning: "not among the weights of other programs here: ossrun list shows them"}
}

// The Hugging Face cache's snapshots that are a gpt-oss or belong to one, for people to see.

// Stored is one snapshot in the cache.
type Stored struct {
	Model
	Main bool   // the repository's main at the time of the last download
	Note string // how this version uses it, if it does not simply run it
}

// Inventory lists the snapshots of the catalogue's models, of related ones and of any other
// gpt-oss, by the repository's name and then in the order of store.Snapshots.
func Inventory() ([]Stored, error) {
	root, err := store.Root()
	if err != nil {
		return nil, err
	}
	repos, err := store.Repos(root)
	if err != nil {
		return nil, err
	}
	var list []Stored
	for _, repo := range repos {
		entry, inCatalogue := models.Lookup(repo.ID())
		relative, related := models.LookupRelated(repo.ID())
		snapshots, err := store.Snapshots(root, repo)
		if err != nil {
			return nil, err
		}
		for _, s := range snapshots {
			adapter := lora.BaseOf(s.Path)
			config, _ := models.ReadFile(filepath.Join(s.Path, "config.json")) // else of no gpt-oss
			if !inCatalogue && !related && !strings.Contains(adapter, "gpt-oss") &&
				!models.IsGPTOSS(config) {
				continue
			}
			stored := Stored{Model: inspect(s.Path), Main: s.Main, Note: entry.Special}
			if adapter != "" {
				stored.Note = "a LoRA adapter for " + adapter + ", which --lora hf:" + repo.ID() +
					" adds"
			}
			if related {
				stored.Note = relative.Description
			}
			list = append(list, stored)
		}
	}
	return list, nil
}
