// The models in Ollama's form: what clients look at before they chat.
//
// What must stay true: nothing is said of a model that is not known here. Sizes and digests of
// Ollama's own files are left out.

package openai

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

// ollamaAPI is the version of Ollama whose API this is: Codex asks for at least this one.
const ollamaAPI = "0.13.4"

type ollamaModel struct {
	Name          string        `json:"name"`
	Model         string        `json:"model"`
	ModifiedAt    string        `json:"modified_at"`
	Details       ollamaDetails `json:"details"`
	ContextLength int           `json:"context_length"`
}

type ollamaDetails struct {
	Format       string   `json:"format"`
	Family       string   `json:"family"`
	Families     []string `json:"families"`
	Quantization string   `json:"quantization_level"`
}

var gptOSSDetails = ollamaDetails{Format: "safetensors", Family: "gptoss",
	Families: []string{"gptoss"}, Quantization: "MXFP4"}

func (p *port) ollamaVersion(*exchange, *http.Request) (any, *fault) {
	return map[string]string{"version": ollamaAPI}, nil
}

// ollamaTags lists every name of every model.
func (p *port) ollamaTags(*exchange, *http.Request) (any, *fault) {
	return p.ollamaModels(func(modelObject) bool { return true }), nil
}

// ollamaLoaded lists those in memory, under every name too: clients look for the one they use.
func (p *port) ollamaLoaded(*exchange, *http.Request) (any, *fault) {
	loaded := p.Models.Stats()
	return p.ollamaModels(func(m modelObject) bool {
		return slices.ContainsFunc(append(m.Aliases, m.ID), func(name string) bool {
			_, ok := loaded[name]
			return ok
		})
	}), nil
}

func (p *port) ollamaModels(shown func(modelObject) bool) map[string][]ollamaModel {
	list := []ollamaModel{}
	for _, m := range p.allModels() {
		if shown(m) {
			list = append(list, ollamaModel{Name: m.ID, Model: m.ID, Details: gptOSSDetails,
				ModifiedAt:    time.Unix(m.Created, 0).UTC().Format(time.RFC3339),
				ContextLength: m.Context})
		}
	}
	return map[string][]ollamaModel{"models": list}
}

// namedModel is the model that a request is about; the name stands in model, or, of older clients,
// in name.
func (p *port) namedModel(r *http.Request, o *object) (session.Runner, *fault) {
	name := cmp.Or(o.text("model"), o.text("name"))
	if name == "" {
		o.get("model").missing()
	}
	if o.c.first != nil {
		return nil, o.c.first
	}
	runner, err := p.Models.Get(r.Context(), name)
	if err != nil {
		return nil, unavailable(err)
	}
	return runner, nil
}

func (p *port) ollamaShow(_ *exchange, r *http.Request, o *object) (any, *fault) {
	runner, f := p.namedModel(r, o)
	if f != nil {
		return nil, f
	}
	return struct {
		Modelfile    string         `json:"modelfile"`
		Parameters   string         `json:"parameters"`
		Template     string         `json:"template"`
		Details      ollamaDetails  `json:"details"`
		Info         map[string]any `json:"model_info"`
		Capabilities []string       `json:"capabilities"`
	}{"", "temperature 1", "", gptOSSDetails,
		map[string]any{"general.architecture": "gptoss",
			"gptoss.context_length": runner.ContextLength()},
		[]string{"completion", "tools", "thinking"}}, nil
}

// ollamaPull succeeds for a model that is here. Others are fetched by ossrun pull, by the person
// whose disk and line it is.
func (p *port) ollamaPull(e *exchange, r *http.Request, o *object) (any, *fault) {
	if _, f := p.namedModel(r, o); f != nil {
		return nil, f
	}
	done := map[string]string{"status": "success"}
	if stream := o.boolean("stream", true); !stream || o.c.first != nil {
		return done, o.c.first
	}
	lines := startLines(e, func() {})
	lines.event("", done)
	_ = lines.flush() // the client is gone, or has its answer
	return nil, nil
}
