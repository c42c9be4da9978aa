package harmony

import (
	"slices"
	"testing"
)

// TestTemplateDiffers: the defaults of OpenAI's template, written as in it, are no difference.
func TestTemplateDiffers(t *testing.T) {
	released := `{%- if model_identity is not defined %}{%- set model_identity = "` +
		DefaultIdentity + `" %}{%- endif %}{{- "Knowledge cutoff: 2024-06\n" }}` +
		`{%- if reasoning_effort is not defined %}{%- set reasoning_effort = "medium" %}` +
		`{{- "<|start|>system<|message|>" }}{{- build_system_message() }}{{- "<|end|>" }}`
	for template, want := range map[string][]string{
		"": nil, released: nil,
		`{%- set model_identity='I am Law.' -%}{{"Knowledge cutoff: 2025-01"}}<|start|><|message|>` +
			`{% set reasoning_effort = "high" %}`: {`sets the model's identity to "I am Law."`,
			`sets the knowledge cutoff to "2025-01"`, `sets the reasoning effort to "high"`},
		"<|im_start|>user": {"has <|im_start|> in place of Harmony's tokens"},
		"[INST]\x1b[2J":    {"has none of Harmony's tokens"},
		"<|start|><|message|>{% set model_identity = \"\x1b[2J\" %}": {
			`sets the model's identity to "\x1b[2J"`},
	} {
		if got := TemplateDiffers(template); !slices.Equal(got, want) {
			t.Errorf("%q differs in %q, want %q", template, got, want)
		}
	}
}
