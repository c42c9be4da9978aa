// The models in Ollama's form: what clients look at before they chat.
//
// What must stay true: nothing is said of a model that is not known here. Sizes and digests of
// Ollama's own files are left out.

package openai

import (
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

func (p *port) ollamaVersion(e *exchange, _ *http.Request) {
	writeJSON(e, http.StatusOK, map[string]string{"version": ollamaAPI})
}

// ollamaTags lists every name of every model.
func (p *port) ollamaTags(e *exchange, _ *http.Request) {
	p.writeModels(e, func(modelObject) bool { return true })
}

// ollamaLoaded lists those in memory, under every name too: clients look for the one they use.
func (p *port) ollamaLoaded(e *exchange, _ *http.Request) {
	loaded := p.Models.Stats()
	p.writeModels(e, func(m modelObject) bool {
		return slices.ContainsFunc(append(m.Aliases, m.ID), func(name string) bool {
			_, ok := loaded[name]
			return ok
		})
	})
}

func (p *port) writeModels(e *exchange, shown func(modelObject) bool) {
	list := []ollamaModel{}
	for _, m := range p.allModels() {
		if shown(m) {
			list = append(list, ollamaModel{Name: m.ID, Model: m.ID, Details: gptOSSDetails,
				ModifiedAt:    time.Unix(m.Created, 0).UTC().Format(time.RFC3339),
				ContextLength: m.Context})
		}
	}
	writeJSON(e, http.StatusOK, map[string][]ollamaModel{"models": list})
}

// namedModel is the model that a request is about; the name stands in model, or, of older clients,
// in name.
func (p *port) namedModel(e *exchange, r *http.Request) (o *object, runner session.Runner) {
	o, f := p.readBody(e, r)
	if f == nil {
		name := o.text("model")
		if name == "" {
			name = o.text("name")
		}
		if name == "" {
			o.complain(missing("model"))
		}
		if f = o.c.first; f == nil {
			var err error
			if runner, err = p.Models.Get(r.Context(), name); err != nil {
				f = unavailable(err)
			}
		}
	}
	if f != nil {
		writeFault(e, f)
		return nil, nil
	}
	return o, runner
}

func (p *port) ollamaShow(e *exchange, r *http.Request) {
	_, runner := p.namedModel(e, r)
	if runner == nil {
		return
	}
	writeJSON(e, http.StatusOK, struct {
		Modelfile    string         `json:"modelfile"`
		Parameters   string         `json:"parameters"`
		Template     string         `json:"template"`
		Details      ollamaDetails  `json:"details"`
		Info         map[string]any `json:"model_info"`
		Capabilities []string       `json:"capabilities"`
	}{"", "temperature 1", "", gptOSSDetails,
		map[string]any{"general.architecture": "gptoss",
			"gptoss.context_length": runner.ContextLength()},
		[]string{"completion", "tools", "thinking"}})
}

// ollamaPull succeeds for a model that is here. Others are fetched by ossrun pull, by the person
// whose disk and line it is.
func (p *port) ollamaPull(e *exchange, r *http.Request) {
	o, runner := p.namedModel(e, r)
	if runner == nil {
		return
	}
	stream := o.boolean("stream", true)
	if o.c.first != nil {
		writeFault(e, o.c.first)
		return
	}
	if !stream {
		writeJSON(e, http.StatusOK, map[string]string{"status": "success"})
		return
	}
	lines := startLines(e, func() {})
	lines.event("", map[string]string{"status": "success"})
	_ = lines.flush() // the client is gone, or has its answer
}
