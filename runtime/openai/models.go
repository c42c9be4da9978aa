// The models as clients see them, each under all its names.

package openai

import (
	"slices"
)

type modelObject struct {
	ID          string   `json:"id"`
	Object      string   `json:"object"` // model
	Created     int64    `json:"created"`
	OwnedBy     string   `json:"owned_by"`
	MaxModelLen int      `json:"max_model_len"`  // vLLM's name for the context length
	Context     int      `json:"context_length"` // OpenRouter's
	Aliases     []string `json:"aliases"`        // the model's other names
}

func modelNamed(name string, names []string, context int, created int64) modelObject {
	others := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
	return modelObject{ID: name, Object: "model", Created: created, OwnedBy: "ossrun",
		MaxModelLen: context, Context: context, Aliases: others}
}

// allModels lists every name of every model.
func (d *driver) allModels() []modelObject {
	list := []modelObject{}
	for _, m := range d.Models.List() {
		names := append([]string{m.ID}, m.Aliases...)
		for _, name := range names {
			list = append(list, modelNamed(name, names, m.ContextLength, m.Created))
		}
	}
	return list
}
