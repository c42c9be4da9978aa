package models

import "testing"

// The names that Ollama, Hugging Face and people have for the models; ours, of each, and of those
// that are none.
func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"20b": "20b", "gpt-oss": "20b", "gpt-oss:latest": "20b", "gpt-oss:20b": "20b",
		"library/gpt-oss": "20b", "library/gpt-oss:20b": "20b", "library/gpt-oss:latest": "20b",
		"registry.ollama.ai/library/gpt-oss:120b": "120b", "ollama.com/library/gpt-oss": "20b",
		"GPT-OSS:20B": "20b", "Library/GPT-OSS:Latest": "20b", " gpt-oss-120b ": "120b",
		"openai/gpt-oss-20b": "20b", "openai/gpt-oss-20b:latest": "20b",
		"hf:openai/gpt-oss-120b": "120b", "https://huggingface.co/openai/gpt-oss-20b/": "20b",
		"gpt-oss-safeguard": "safeguard-20b", "gpt-oss-safeguard:latest": "safeguard-20b",
		"library/gpt-oss-safeguard:120b": "safeguard-120b",
		"demo:latest":                    "demo", "library/demo": "demo",
		"": "", ":latest": "", "library/": "", "library/:latest": "", "latest": "",
		// their capital and small letters differ in length
		"Ⱥ": "", "library/Ⱥ:latest": "", "Ⱥ:latest": "", "\xff:latest": "", "İ:LATEST": "",
		"gpt-oss:": "", "gpt-oss:7b": "", "mylibrary/gpt-oss": "", "gpt-oss:latest:latest": "",
	} {
		if e, ok := Lookup(name); e.ID != want || ok != (want != "") {
			t.Errorf("%q is %q, not %q", name, e.ID, want)
		}
	}
	if short := ShortName("Library/Ⱥ:Latest"); short != "Ⱥ" {
		t.Errorf("%q", short)
	}
}
