package checkpoint

// gpt-oss weights that other programs on this machine keep: ollama, LM Studio and llama.cpp each
// have a folder of GGUF files. They are looked for by their headers, so that a fine-tune is found
// too and another architecture is passed over; nothing is written there.

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
	// what --model takes: "ollama:gpt-oss:20b", "lmstudio:OWNER/REPO/FILE", "llama.cpp:FILE"
	Name    string
	Program string // "ollama", "LM Studio", "llama.cpp"
	Path    string // the GGUF file
	Bytes   int64  // its size, with its siblings if it is one of several
	Model   *gguf.Model
	Trouble error // why it cannot be used; Model is nil then

	other bool // it is no gpt-oss, or nobody knows
}

// SameShape tells whether a model of the catalogue has its shape.
func (e Foreign) SameShape(as models.Entry) bool {
	return e.Model != nil && e.Model.Spec().SameShape(as.Spec)
}

// ListForeign looks into the folders of other programs, in the order of their names. Folders that
// are not there or cannot be read are passed over: they are not ours.
func ListForeign() []Foreign {
	list := slices.DeleteFunc(allForeign(), func(e Foreign) bool { return e.other })
	slices.SortStableFunc(list, func(a, b Foreign) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// allForeign lists everything there, other models too.
func allForeign() []Foreign {
	list := append(ollamaModels(), llamaModels()...)
	for _, root := range lmStudioFolders() {
		list = append(list, considerFiles("LM Studio", "lmstudio:", root, "*/*/*.gguf")...)
	}
	return list
}

// consider looks at one GGUF file.
func consider(program, name, path string) Foreign {
	e := Foreign{Name: name, Program: program, Path: path}
	header, err := gguf.Open(path)
	if e.other = err != nil; !e.other {
		_, is := gguf.IsGPTOSS(header.Keys)
		e.other, e.Bytes = !is, header.Size
		e.Model, err = gguf.ReadModel(path, gguf.ModelName(name))
	}
	if e.Model != nil {
		e.Bytes = e.Model.Size
	}
	if wrong, ok := errors.AsType[*gguf.Error](err); ok {
		e.Trouble = fmt.Errorf("%s %s", name, wrong.What) // the file may be called by its hash
	} else if e.Trouble = err; e.other && errors.Is(err, fs.ErrNotExist) {
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
				list = append(list, consider("ollama", name,
					filepath.Join(root, "blobs", "sha256-"+digest)))
			}
		}
	}
	return list
}

// lmStudioFolders are where LM Studio keeps models: in its home, which a file may point to, or
// where the settings there say.
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
		if json.Unmarshal(text, &settings) == nil { // settings that cannot be read move nothing
			roots = append(roots, settings.DownloadsFolder)
		}
	}
	return folders(roots...)
}

// llamaModels looks into llama.cpp's own cache, and at GGUF files in the Hugging Face cache, where
// its newer versions put them.
func llamaModels() (list []Foreign) {
	own := []string{os.Getenv("LLAMA_CACHE"), "~/.cache/llama.cpp"}
	switch runtime.GOOS {
	case "darwin":
		own = append(own, "~/Library/Caches/llama.cpp")
	case "windows":
		own = append(own, "~/AppData/Local/llama.cpp")
	}
	for _, root := range folders(own...) {
		list = append(list, considerFiles("llama.cpp", "llama.cpp:", root, "*.gguf")...)
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
		list = append(list, considerFiles("the Hugging Face cache", "gguf:"+repo.ID()+"/",
			snapshots[0].Path, "*.gguf")...)
	}
	return list
}

// considerFiles looks at the GGUF files of a folder that a pattern matches, each named by its path
// in it.
func considerFiles(program, prefix, root, pattern string) (list []Foreign) {
	for _, path := range glob(root, pattern) {
		within, err := filepath.Rel(root, path)
		if err != nil || !gguf.First(filepath.Base(path)) {
			continue
		}
		list = append(list, consider(program, prefix+filepath.ToSlash(within), path))
	}
	return list
}

// folders gives those of the paths that are folders, each once. "~/" is the person's home.
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

// findElsewhere finds a model of another program by its name.
func findElsewhere(name string) (Found, bool, error) {
	if !models.OfProgram(name) {
		return Found{}, false, nil
	}
	for _, e := range allForeign() {
		if e.Name == name || e.Name == name+":latest" {
			if e.Trouble != nil {
				return Found{}, true, e.Trouble
			}
			return foundGGUF(e.Model), true, nil
		}
	}
	return Found{}, true, &models.UnknownModelError{Name: name,
		Is: "not among the weights of other programs here: ossrun list shows them"}
}

// Everything in the Hugging Face cache that is a gpt-oss or belongs to one, for people to look at.

// Stored is one snapshot in the cache.
type Stored struct {
	Found
	Main bool   // what the repository's main was when it was last fetched
	Note string // what this version does with it, when it does not simply run it
}

// Inventory lists the snapshots of the catalogue's models, of their relatives and of whatever else
// says that it is a gpt-oss, by the repository's name and then as store.Snapshots does.
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
		entry, known := models.Lookup(repo.ID())
		relative, related := models.LookupRelated(repo.ID())
		snapshots, err := store.Snapshots(root, repo)
		if err != nil {
			return nil, err
		}
		for _, s := range snapshots {
			adapter := lora.Of(s.Path)
			if !known && !related && !strings.Contains(adapter, "gpt-oss") &&
				!describesGPTOSS(filepath.Join(s.Path, "config.json")) {
				continue
			}
			stored := Stored{Found: inspect(s.Path), Main: s.Main, Note: entry.Special}
			if adapter != "" {
				stored.Note = "a LoRA adapter for " + adapter + ", which --lora hf:" + repo.ID() +
					" adds"
			}
			if related {
				stored.Note = relative.Does
			}
			list = append(list, stored)
		}
	}
	return list, nil
}

// describesGPTOSS tells whether a config.json says gpt_oss.
func describesGPTOSS(path string) bool {
	text, err := models.ReadFile(path)
	var config struct {
		Type string `json:"model_type"`
	}
	return err == nil && json.Unmarshal(text, &config) == nil && config.Type == "gpt_oss"
}
