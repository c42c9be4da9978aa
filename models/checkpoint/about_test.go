package checkpoint_test

// What models' files say about themselves, with the keys of published ones.

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ossrun/ossrun/models/checkpoint"
	"github.com/ossrun/ossrun/models/modeltest"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

func about(t *testing.T, path, want, trouble string) checkpoint.About {
	t.Helper()
	got, err := checkpoint.Describe(path)
	if err != nil || got.String() != want || !strings.Contains(got.Trouble, trouble) ||
		trouble == "" && got.Trouble != "" {
		t.Errorf("%s says %q, %v, trouble %q\nwant %q", path, got, err, got.Trouble, want)
	}
	return got
}

// TestAboutGGUF: the keys are those of ggml-org's, unsloth's and an abliterated model's files.
func TestAboutGGUF(t *testing.T) {
	source := golden(t, "T1")
	type keys = map[string]any
	eights := modeltest.LlamaQ8
	eights.Experts = "Q8_0"
	for _, test := range []struct {
		style         modeltest.GGUFStyle
		says          keys
		want, trouble string
	}{
		{modeltest.LlamaQ8, keys{"general.name": "Gpt Oss 20b", "general.basename": "gpt-oss"},
			"base model by its name, gpt-oss-20b; GGUF, experts MXFP4, the rest Q8_0, F32", ""},
		{modeltest.Published["Q4_K_M"], keys{"general.name": "Gpt-Oss-20B",
			"general.quantized_by": "Unsloth", "general.base_model.0.name": "Gpt Oss 20b"},
			"base model by its name, gpt-oss-20b; GGUF, experts MXFP4, the rest Q5_0, Q8_0, Q4_K, F32; " +
				"by Unsloth", ""},
		{eights, keys{"general.name": "Gpt Oss 20b BF16 Abliterated",
			"general.base_model.0.name": "Gpt Oss 20b BF16", "general.organization": "Some\x1bone"},
			`fine-tune of "Gpt Oss 20b BF16"; GGUF, experts Q8_0, the rest Q8_0, F32; by ` +
				`"Some\x1bone"`, "`ossrun import` makes a checkpoint of it"},
		{modeltest.Ollama, nil, "gpt-oss whose files do not name its base; GGUF, experts MXFP4 " +
			"(ollama's), the rest BF16", ""},
	} {
		path := hosttest.Must(modeltest.WriteGGUF(source, t.TempDir(), "tune", test.style, 2,
			test.says))(t)
		about(t, path, test.want, test.trouble)
	}
}

func TestAboutFolders(t *testing.T) {
	c := modeltest.New(modeltest.Tiny(), 2)
	put := func(folder, name, text string) {
		t.Helper()
		hosttest.Check(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	named := func(name string) string {
		t.Helper()
		folder := filepath.Join(t.TempDir(), name)
		hosttest.Check(t, c.Write(folder))
		return folder
	}
	const files = "safetensors, experts MXFP4, the rest BF16"
	about(t, named("gpt-oss-20b"), "base model by its name, gpt-oss-20b; "+files, "")
	tune := named("gpt-oss-20b-law")
	about(t, tune, "fine-tune or conversion by its name, gpt-oss-20b-law; "+files, "")
	for _, card := range []string{"---\nbase_model: unsloth/gpt-oss-20b-BF16\nlicense: mit\n---\n",
		"---\ntags: [x]\nbase_model:\n- unsloth/gpt-oss-20b-BF16\n---\n# base_model: other\n"} {
		put(tune, "README.md", card)
		about(t, tune, "fine-tune of unsloth/gpt-oss-20b-BF16; "+files, "")
	}
	put(tune, checkpoint.ImportRecord, `{"exact": 0.25, "relative_error": 0.0412}`)
	put(tune, "tokenizer_config.json", `{"chat_template": [{"name": "rag", "template": "R"}, `+
		`{"name": "default", "template": "D"}]}`)
	got := about(t, tune, "fine-tune of unsloth/gpt-oss-20b-BF16; "+files+
		"; experts rounded by an import: 25.00 % of blocks exact, error 4.12 %", "")
	if got.Template != "D" || !json.Valid(got.Generation) {
		t.Errorf("template %q, generation config %s", got.Template, got.Generation)
	}
	put(tune, "chat_template.jinja", "J")
	if found, err := checkpoint.Resolve(tune); err != nil || found.ChatDefaults().Template != "J" {
		t.Errorf("%+v, %v", found.ChatDefaults(), err)
	}

	adapter := t.TempDir()
	a := modeltest.NewAdapter(modeltest.Tiny(), "q_proj.weight")
	hosttest.Check(t, a.Write(adapter))
	about(t, adapter, "LoRA adapter for someone/tiny; safetensors, BF16", "")

	c.Config["quantization_config"] = nil
	about(t, named("x"), "gpt-oss whose files do not name its base; "+files,
		"its experts are not MXFP4: `ossrun import`")
	c.Config["model_type"] = "qwen3"
	if _, err := checkpoint.Describe(named("y")); err == nil ||
		!strings.Contains(err.Error(), "model_type is qwen3") {
		t.Errorf("another model: %v", err)
	}
	if _, err := checkpoint.Describe(t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), "is an empty folder") {
		t.Errorf("an empty folder: %v", err)
	}
}

// TestGGUFEnds: the end of a turn, of a message to a tool and of generation are all read.
func TestGGUFEnds(t *testing.T) {
	source := golden(t, "T1")
	path := hosttest.Must(modeltest.WriteGGUF(source, t.TempDir(), "tune", modeltest.LlamaQ8, 1,
		map[string]any{"tokenizer.ggml.eot_token_id": 7, "tokenizer.ggml.eom_token_id": -1,
			"general.sampling.temp": 0.6, "general.sampling.top_k": 20}))(t)
	found := hosttest.Must(checkpoint.Resolve(path))(t)
	if ends := found.GGUF.Spec().EOS; len(ends) == 0 || ends[len(ends)-1] != 7 {
		t.Errorf("a turn ends with %v", ends)
	}
	text := string(found.ChatDefaults().Generation)
	if !strings.Contains(text, `"temperature": 0.6,`) || !strings.Contains(text, `"top_k": 20`) {
		t.Errorf("it says %s", text)
	}
}
