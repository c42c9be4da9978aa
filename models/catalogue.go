package models

// The models that ossrun knows by name. Anything else of the same architecture is opened as a
// folder or as hf:owner/name.

import (
	_ "embed"
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

var catalogue = sync.OnceValue(func() []Entry {
	// A demo with an invalid config.json cannot be opened either; OpenDemo reports the error.
	demo, _ := ParseSpec(assets.DemoConfig, assets.DemoGenerationConfig)
	demo.Name = Demo
	list := []Entry{
		{ID: Demo, Aliases: []string{"ossrun-demo"}, Spec: demo},
		{ID: "20b", HF: "openai/gpt-oss-20b", Spec: Spec20B(), Aliases: []string{
			"gpt-oss", "gpt-oss:20b", "gpt-oss-20b", "gpt-oss20b", "gptoss:20b",
			"gptoss-20b", "openai/gpt-oss-20b", "openai/gpt-oss:20b"}},
		{ID: "120b", HF: "openai/gpt-oss-120b", Spec: Spec120B(), Aliases: []string{
			"gpt-oss:120b", "gpt-oss-120b", "gpt-oss120b", "gptoss:120b", "gptoss-120b",
			"openai/gpt-oss-120b", "openai/gpt-oss:120b"}},
		safeguard("20b", Spec20B()),
		safeguard("120b", Spec120B()),
	}
	list[3].Aliases = append(list[3].Aliases, "gpt-oss-safeguard") // Ollama's latest
	for i := range list {
		if list[i].HF != "" {
			list[i].DownloadBytes = list[i].Spec.WeightBytes() + tokenizerBytes
		}
	}
	return list
})

// safeguard is the variant of a released model that judges text by a policy. It has that model's
// shape.
func safeguard(size string, shape Spec) Entry {
	shape.Name = "gpt-oss-safeguard-" + size
	return Entry{
		ID: "safeguard-" + size, HF: "openai/" + shape.Name, Spec: shape,
		Special: "runs as gpt-oss-" + size + " does; judges a text by the policy in --system",
		Aliases: []string{"gpt-oss-safeguard:" + size, shape.Name, "openai/" + shape.Name},
	}
}

// Related is a repository that is known next to the models and that this version cannot run.
type Related struct{ HF, Description string } // Description ends "HF is ..."

var related = []Related{
	draft("nvidia/gpt-oss-120b-Eagle3-v2", "120b"),
	draft("nvidia/gpt-oss-120b-Eagle3-throughput", "120b"),
	draft("nvidia/gpt-oss-120b-Eagle3-long-context", "120b"),
	draft("nvidia/gpt-oss-120b-Eagle3", "120b"),
	draft("lmsys/EAGLE3-gpt-oss-120b-bf16", "120b"),
	draft("nebius/EAGLE3-gpt-oss-20b", "20b"),
	draft("RedHatAI/gpt-oss-20b-speculator.eagle3", "20b"),
	{"amd/gpt-oss-120b-w-mxfp4-a-fp8",
		"AMD's conversion of gpt-oss-120b to 8-bit activations, which stores the weights in " +
			"another way: this version does not read it; use openai/gpt-oss-120b"},
}

// draft is a small model that proposes tokens for a released one.
func draft(repository, model string) Related {
	return Related{repository, "an EAGLE-3 draft, which guesses tokens for gpt-oss-" + model +
		" and is not a model itself. The engine drafts from the text and needs none; vLLM uses " +
		"one: ossrun vllm serve " + model + " --speculative eagle3"}
}

// LookupRelated finds a related repository by its name. Any other name with EAGLE-3 and gpt-oss is
// also taken for a draft.
func LookupRelated(name string) (Related, bool) {
	name = bare(strings.TrimSpace(name))
	lower := strings.ToLower(name)
	for _, r := range related {
		if lower == strings.ToLower(r.HF) || lower == strings.ToLower(path.Base(r.HF)) {
			return r, true
		}
	}
	if _, ok := store.ParseRepo(name); ok && strings.Contains(lower, "eagle3") &&
		strings.Contains(lower, "gpt-oss-") {
		size := "120b"
		if strings.Contains(lower, "20b") && !strings.Contains(lower, "120b") {
			size = "20b"
		}
		return draft(name, size), true
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
