package serve

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/adrg/xdg"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// TestNotes: sampling defaults other than the released models', and end tokens other than
// Harmony's, are reported.
func TestNotes(t *testing.T) {
	const recommends = "its generation config recommends temperature 0.6, top_p 0.95, top_k 20, " +
		"repetition_penalty 1.1. Requests that set nothing are sampled at temperature 1, top_p 1: " +
		"send these values to use them"
	for generation, want := range map[string][]string{
		"": nil, "{": nil, "7": nil, `{"eos_token_id": "x", "top_k": "y", "min_p": null}`: nil,
		`{"bos_token_id": 199998, "do_sample": true, "eos_token_id": [200002, 199999, 200012],
			"pad_token_id": 199999, "max_length": 131072, "temperature": 1.0, "top_p": 1.0,
			"top_k": 0, "min_p": 0}`: nil,
		`{"temperature": 0.6, "top_p": 0.95, "top_k": 20, "repetition_penalty": 1.1}`: {recommends},
		`{"eos_token_id": 200007}`: {"its generation config ends turns with <|end|>, which ends a " +
			"message in Harmony: turns end with <|return|> and <|call|>"},
		`{"eos_token_id": [200002, 200007]}`: {"its generation config ends turns with <|end|>, " +
			"which ends a message in Harmony: turns end with <|return|> and <|call|>"},
	} {
		got := Notes(checkpoint.ChatDefaults{Generation: []byte(generation)})
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", generation, got)
		}
	}
	if got := Notes(checkpoint.ChatDefaults{Template: "<|im_start|>"}); !slices.Equal(got, []string{
		"Harmony is used in place of its own chat template, which has <|im_start|> in place of " +
			"Harmony's tokens"}) {
		t.Errorf("%q", got)
	}
}

// TestSlowGGUF: weights of a GGUF file that loads slowly are written in order while nothing runs,
// with a notice; the next start maps them and answers the same. If that fails, or if starts are
// quick, every start reads the file.
func TestSlowGGUF(t *testing.T) {
	ckpt := hosttest.Must(denseModel(t).Open())(t)
	defer ckpt.Close()
	path := hosttest.Must(modeltest.WriteGGUF(ckpt, t.TempDir(), "tune", modeltest.LlamaQ8, 1))(t)
	written := hosttest.Must(checkpoint.Resolve(path))(t)
	settle(t, written)
	full := filepath.Join(t.TempDir(), "file")
	hosttest.Check(t, os.WriteFile(full, nil, 0o644))
	t.Cleanup(xdg.Reload) // once the variable is what it was
	before := slowLoad
	defer func() { slowLoad = before }()
	start := func(cache string, slow time.Duration, want ...string) (mapped bool, said []float32) {
		t.Helper()
		t.Setenv("XDG_CACHE_HOME", cache)
		xdg.Reload()
		found := hosttest.Must(checkpoint.Resolve(path))(t)
		slowLoad = slow
		m, lines := denseModels(t, found, engine.DenseBF16, "")
		hosttest.Check(t, m.Ensure(t.Context()))
		for _, words := range want {
			heard(t, lines, words)
		}
		mapped = m.loaded.stateOf(keyOf(found)).model.(*Model).ckpt.Mapped()
		said = answered(t, m)
		for len(lines) > 0 {
			if line := <-lines; strings.Contains(line, "in order") {
				t.Errorf("it is said: %s", line)
			}
		}
		return mapped, said
	}
	cache := t.TempDir()
	mapped, first := start(cache, before)
	if again, _ := start(cache, before); mapped || again {
		t.Error("a quick start is kept in order")
	}
	start(full, 0, "in order took", "each start puts the weights")
	start(cache, 0, "in order took", "are kept in order now")
	mapped, second := start(cache, 0)
	if !mapped || !slices.Equal(first, second) {
		t.Errorf("mapped %v, answers %v and %v", mapped, first, second)
	}
}

// FuzzNotes: for any files of a model, each note is one line.
func FuzzNotes(f *testing.F) {
	f.Add(`{"chat_template": "<|start|><|message|>{% set model_identity = 'x' %}"}`,
		`{"temperature": 0.6, "top_k": 20, "eos_token_id": [200007]}`)
	f.Add(`{"chat_template": [{"name": "default", "template": "<|im_start|>"}]}`,
		`{"top_p": 1e999, "min_p": "0", "eos_token_id": 200007}`)
	f.Fuzz(func(t *testing.T, tokenizer, generation string) {
		for _, template := range []string{tokenizer, models.TemplateOf([]byte(tokenizer))} {
			for _, note := range Notes(checkpoint.ChatDefaults{Template: template,
				Generation: []byte(generation)}) {
				if strings.ContainsAny(note, "\n\x1b") || len(note) > 2000 {
					t.Errorf("no line: %q", note)
				}
			}
		}
	})
}
