package models

// The models that ossrun knows by name. Anything else of the same architecture is opened as a folder or as hf:owner/name.

import (
	"slices"
	"strings"
	"sync"

	"github.com/ossrun/ossrun/assets"
)

// Entry is a model of the catalogue.
type Entry struct {
	ID            string   // what a person types: "20b"
	HF            string   // the repository, "" for the demo
	Aliases       []string // further names, in lower case
	Spec          Spec
	DownloadBytes int64 // size of the weights that ossrun pull fetches, 0 for the demo
	Shards        int   // files that hold them, 0 where that is not stated
}

// Demo is the catalogue's name of the embedded model.
const Demo = "demo"

// Catalogue lists the known models, the smallest first.
func Catalogue() []Entry { return slices.Clone(catalogue()) }

var catalogue = sync.OnceValue(func() []Entry {
	// A demo whose config.json is broken cannot be opened either, and OpenDemo says why.
	demo, _ := parseSpec(assets.DemoConfig, assets.DemoGenerationConfig)
	demo.Name = Demo
	list := []Entry{
		{ID: Demo, Aliases: []string{"ossrun-demo"}, Spec: demo},
		{ID: "20b", HF: "openai/gpt-oss-20b", Spec: Spec20B(), Shards: 3, Aliases: []string{"gpt-oss", "gpt-oss:latest",
			"gpt-oss:20b", "gpt-oss-20b", "gpt-oss20b", "gptoss:20b", "gptoss-20b", "openai/gpt-oss-20b", "openai/gpt-oss:20b"}},
		{ID: "120b", HF: "openai/gpt-oss-120b", Spec: Spec120B(), Aliases: []string{
			"gpt-oss:120b", "gpt-oss-120b", "gpt-oss120b", "gptoss:120b", "gptoss-120b", "openai/gpt-oss-120b", "openai/gpt-oss:120b"}},
	}
	for i := range list {
		if list[i].HF != "" {
			list[i].DownloadBytes = list[i].Spec.WeightBytes()
		}
	}
	return list
})

// Lookup finds a model of the catalogue by any of its names, whatever their case. hf: and Hugging Face's address in front of
// a repository are accepted.
func Lookup(name string) (Entry, bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, prefix := range [...]string{"hf:", "https://huggingface.co/", "huggingface.co/", "hf.co/"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && strings.Contains(rest, "/") {
			name = strings.TrimSuffix(rest, "/")
			break
		}
	}
	for _, e := range catalogue() {
		if name == e.ID || slices.Contains(e.Aliases, name) {
			return e, true
		}
	}
	return Entry{}, false
}
