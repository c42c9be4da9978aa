package models

// The models that ossrun knows by name. Anything else of the same architecture is opened as a
// folder or as hf:owner/name.

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/assets"
	"github.com/ossrun/ossrun/models/store"
)

type Entry struct {
	ID            string   // the name to type: "20b"
	HF            string   // the repository, "" for the demo
	Aliases       []string // further names, in lower case
	Spec          Spec
	DownloadBytes int64 // what ossrun pull fetches, 0 for the demo
	// its purpose if it is not a general chat model, otherwise ""
	Special string
}

// tokenizerBytes is the size of the published tokenizer.json, which comes with the weights.
const tokenizerBytes = 27_868_174

// Demo is the catalogue's name of the embedded model.
const Demo = "demo"

// Catalogue lists the known models, the smallest first.
func Catalogue() []Entry { return slices.Clone(catalogue()) }

//go:embed catalogue.json
var catalogueText []byte

// listed is catalogue.json. A related repository without a description is a draft, which proposes
// tokens for a released model.
var listed = sync.OnceValue(func() (list struct {
	Models []struct {
		Entry
		Large bool // of the 120b's shape
	}
	Related []Related
}) {
	if err := json.Unmarshal(catalogueText, &list); err != nil {
		panic("catalogue.json: " + err.Error()) // every test reads it
	}
	return list
})

var catalogue = sync.OnceValue(func() []Entry {
	// A demo with an invalid config.json cannot be opened either; OpenDemo reports the error.
	demo, _ := ParseSpec(assets.DemoConfig, assets.DemoGenerationConfig)
	demo.Name = Demo
	list := []Entry{{ID: Demo, Aliases: []string{"ossrun-demo"}, Spec: demo}}
	for _, m := range listed().Models {
		if m.Spec = Spec20B(); m.Large {
			m.Spec = Spec120B()
		}
		m.Spec.Name = path.Base(m.HF)
		m.DownloadBytes = m.Spec.WeightBytes() + tokenizerBytes
		list = append(list, m.Entry)
	}
	return list
})

// Related is a repository that is known next to the models and that this version cannot run.
type Related struct{ HF, Description string } // Description ends "HF is ..."

// LookupRelated finds a related repository by its name. Any other name with EAGLE-3 and gpt-oss is
// also taken for a draft.
func LookupRelated(name string) (Related, bool) {
	name = bare(strings.TrimSpace(name))
	lower := strings.ToLower(name)
	for _, r := range listed().Related {
		if lower != strings.ToLower(r.HF) && lower != strings.ToLower(path.Base(r.HF)) {
			continue
		}
		if r.Description != "" {
			return r, true
		}
		name, lower = r.HF, strings.ToLower(r.HF)
	}
	if _, ok := store.ParseRepo(name); ok && strings.Contains(lower, "eagle3") &&
		strings.Contains(lower, "gpt-oss-") {
		size := "120b"
		if strings.Contains(lower, "20b") && !strings.Contains(lower, "120b") {
			size = "20b"
		}
		return Related{name, "an EAGLE-3 draft, which guesses tokens for gpt-oss-" + size +
			" and is not a model itself. The engine drafts from the text and needs none; vLLM " +
			"uses one: ossrun vllm serve " + size + " --speculative eagle3"}, true
	}
	return Related{}, false
}

// bare removes hf: or Hugging Face's address from the front of a repository's name.
func bare(name string) string {
	for _, prefix := range [...]string{"hf:", "https://huggingface.co/", "huggingface.co/",
		"hf.co/"} {
		if len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) &&
			strings.Contains(name[len(prefix):], "/") {
			return strings.TrimSuffix(name[len(prefix):], "/")
		}
	}
	return name
}

// ShortName removes what Ollama adds to a name: its library in front, the default tag at the end.
func ShortName(name string) string {
	const tag = ":latest"
	for _, prefix := range [...]string{"library/", "ollama.com/library/",
		"registry.ollama.ai/library/"} {
		// not by ToLower, which changes the length of some letters
		if n := len(prefix); len(name) >= n && strings.EqualFold(name[:n], prefix) {
			name = name[n:]
			break
		}
	}
	if n := len(name) - len(tag); n >= 0 && strings.EqualFold(name[n:], tag) {
		name = name[:n]
	}
	return name
}

// Lookup finds a model of the catalogue by any of its names, ignoring case. A prefix hf:, Hugging
// Face's address and Ollama's additions are accepted.
func Lookup(name string) (Entry, bool) {
	name = strings.ToLower(ShortName(bare(strings.TrimSpace(name))))
	for _, e := range catalogue() {
		if name == e.ID || slices.Contains(e.Aliases, name) {
			return e, true
		}
	}
	return Entry{}, false
}

//go:embed published.txt
var published string

// Published returns the SHA-256 of a repository's weight files by name, or nil if this version does
// not know them.
func Published(repository string) map[string]string {
	_, text, ok := strings.Cut(published, "\n# "+repository+"\n")
	if !ok {
		return nil
	}
	text, _, _ = strings.Cut(text, "\n#")
	sums, named := strings.Fields(text), map[string]string{}
	for i, sum := range sums {
		named[fmt.Sprintf("model-%05d-of-%05d.safetensors", i, len(sums)-1)] = sum
	}
	return named
}
