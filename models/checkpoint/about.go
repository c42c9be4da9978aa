package checkpoint

// What a model's files say about themselves: author, base model, number types, the rounding of an
// import, chat template, sampling. None of it affects the computation or is verified. Only headers
// are read, no weights.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/gguf"
	"github.com/ossrun/ossrun/models/lora"
	"github.com/ossrun/ossrun/models/safetensors"
)

// About is the part that is shown.
type About struct {
	Format  string `json:"format"`
	Kind    string `json:"kind,omitempty"` // base model or fine-tune, by its names
	Author  string `json:"made_by,omitempty"`
	Types   string `json:"types,omitempty"`
	Rounded string `json:"rounded,omitempty"`
	Trouble string `json:"trouble,omitempty"` // why it does not run as it is, and what to do

	ChatDefaults `json:"-"`
}

// ChatDefaults are the chat template and the sampling defaults in a model's own files.
type ChatDefaults struct {
	Template   string // of chats, in Jinja; "" if the files have none
	Generation []byte // generation_config.json; nil if the files have none
}

// String returns one line.
func (a About) String() string {
	parts := []string{a.Kind, a.Format + ", " + a.Types, a.Rounded}
	if a.Author != "" {
		parts = append(parts, "by "+a.Author)
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// Describe describes a folder or a GGUF file. If it is no gpt-oss, the error says what it is.
func Describe(path string) (About, error) {
	stat, err := os.Stat(path)
	switch {
	case err != nil:
		return About{}, err
	case stat.IsDir():
		return aboutFolder(path)
	case gguf.IsFile(path):
		return aboutGGUF(path)
	}
	return About{}, foreignFile(path)
}

func aboutFolder(path string) (a About, err error) {
	a.Format = "safetensors"
	name, files := nameOf(path), []string{filepath.Join(path, lora.WeightsName)}
	if inside := OriginalIn(path); inside != "" {
		path = inside
	}
	config, err := models.ReadFile(filepath.Join(path, "config.json"))
	switch {
	case err != nil && !lora.IsAdapter(path):
		return a, ForeignFolder(path)
	case err != nil:
		a.Kind = "LoRA adapter for " + cmp.Or(lora.BaseOf(path), "a model that it does not name")
	default:
		if err := models.ForeignError(config); err != nil {
			return a, err
		}
		if c, err := Open(path); err != nil {
			a.Trouble = err.Error()
		} else if err := c.Close(); err != nil {
			return a, err
		}
		index, err := shards(path)
		if err != nil {
			return a, nil // reported in Trouble
		}
		files, a.Kind = joinAll(path, index.Files), kindOf(name, baseModelIn(path))
		a.ChatDefaults, a.Rounded = chatDefaultsIn(path), importSummary(path)
	}
	var seen census
	for _, file := range files {
		header, err := safetensors.Inspect(file)
		if err != nil {
			continue // reported in Trouble
		}
		for _, t := range header.Tensors {
			kind := string(t.DType)
			if t.DType == models.U8 {
				kind = "MXFP4"
			}
			seen.add(t.Name, kind, t.End-t.Begin)
		}
	}
	a.Types = seen.String()
	return a, nil
}

func aboutGGUF(path string) (About, error) {
	set, err := gguf.OpenSet(path)
	if err != nil {
		return About{}, err
	}
	a := About{Format: "GGUF"}
	if _, err := gguf.ReadModel(path, gguf.ModelName(path)); err != nil {
		a.Trouble = err.Error()
	}
	var seen census
	for name, t := range set.Tensors {
		seen.add(name, t.Type.String(), t.End-t.Begin)
	}
	a.Types = seen.String()
	value := func(keys ...string) (text string) {
		for _, key := range keys {
			if text, _ = set.Keys[key].(string); text != "" {
				break
			}
		}
		return text
	}
	author := value("general.quantized_by", "general.organization", "general.author")
	if author != "" {
		a.Author = safetensors.Printable(author)
	}
	a.Kind = kindOf(cmp.Or(value("general.name", "general.basename"), gguf.ModelName(path)),
		value("general.base_model.0.name", "general.base_model.0.repo_url"))
	a.Template, a.Generation = set.ChatDefaults()
	return a, nil
}

// census counts the bytes of each type, of experts and of the rest.
type census [2]map[string]int64

func (c *census) add(tensor, kind string, bytes int64) {
	group := &c[1]
	if !strings.HasSuffix(tensor, "bias") && (strings.Contains(tensor, ".mlp.experts.") ||
		strings.Contains(tensor, ".mlp.mlp") || strings.Contains(tensor, "_exps.")) {
		group = &c[0]
	}
	if *group == nil {
		*group = map[string]int64{}
	}
	(*group)[kind] += bytes
}

// String lists the types with at least a hundredth of the bytes, the largest first.
func (c *census) String() string {
	var lists [2]string
	for i, group := range c {
		var sum int64
		for _, n := range group {
			sum += n
		}
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(group)),
			func(name string) bool { return group[name] < sum/100 })
		slices.SortStableFunc(names,
			func(a, b string) int { return cmp.Compare(group[b], group[a]) })
		lists[i] = strings.Join(names, ", ")
	}
	if lists[0] == "" {
		return lists[1]
	}
	return fmt.Sprintf("experts %s, the rest %s", lists[0], lists[1])
}

// plainName normalises a model's name to the catalogue's form.
func plainName(name string) string {
	name = strings.NewReplacer(" ", "-", "_", "-").Replace(strings.ToLower(name))
	return strings.TrimPrefix(name[strings.LastIndex(name, "/")+1:], "openai-")
}

// kindOf tells a base model from a fine-tune by its name and that of its base.
func kindOf(name, base string) string {
	plain := plainName(name)
	for _, e := range models.Catalogue() {
		if plain == e.Spec.Name {
			return "base model by its name, " + plain
		}
	}
	switch {
	case base != "" && plainName(base) != plain:
		return "fine-tune of " + safetensors.Printable(base)
	case strings.Contains(plain, "gpt-oss"):
		return "fine-tune or conversion by its name, " + safetensors.Printable(name)
	}
	return "gpt-oss whose files do not name its base"
}

func baseModelIn(folder string) string {
	text, err := models.ReadFile(filepath.Join(folder, "README.md"))
	_, rest, ok := strings.Cut(string(text), "---\n")
	if err != nil || !ok {
		return ""
	}
	front, _, _ := strings.Cut(rest, "\n---")
	_, base, ok := strings.Cut("\n"+front, "\nbase_model:")
	if !ok {
		return ""
	}
	first, rest, _ := strings.Cut(base, "\n")
	if strings.TrimSpace(first) == "" { // a list
		first, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(rest), "-"), "\n")
	}
	return strings.Trim(first, ` "'[]`)
}

// chatDefaultsIn reads the files in a folder. Unreadable ones count as absent.
func chatDefaultsIn(folder string) (w ChatDefaults) {
	read := func(name string) []byte {
		text, err := models.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil
		}
		return text
	}
	w.Generation = read("generation_config.json")
	w.Template = string(read("chat_template.jinja"))
	for _, name := range [...]string{"tokenizer_config.json", "chat_template.json"} {
		if w.Template == "" {
			w.Template = models.TemplateOf(read(name))
		}
	}
	return w
}

// ChatDefaults are the chat template and sampling defaults of a found model.
func (f Model) ChatDefaults() (w ChatDefaults) {
	switch {
	case f.GGUF != nil:
		w.Template, w.Generation = f.GGUF.ChatDefaults()
	case !f.Demo:
		w = chatDefaultsIn(f.folder())
	}
	return w
}

// ImportRecord is the file in which an import records its rounding.
const ImportRecord = "ossrun-rounded.json"

// Imported is the content of ImportRecord.
type Imported struct {
	Source   string  `json:"source"`
	Exact    float64 `json:"exact"`          // of the experts' blocks, 0..1
	Relative float64 `json:"relative_error"` // root mean square
}

func importSummary(folder string) string {
	var r Imported
	text, err := models.ReadFile(filepath.Join(folder, ImportRecord))
	if err != nil || json.Unmarshal(text, &r) != nil {
		return ""
	}
	if r.Exact == 1 {
		return "imported without loss"
	}
	return fmt.Sprintf("experts rounded by an import: %.2f %% of blocks exact, error %.2f %%",
		100*r.Exact, 100*r.Relative)
}
