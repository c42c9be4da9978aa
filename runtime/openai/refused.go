// Parameters that are refused because nothing here can honour them, and members of a request that
// nobody reads.
//
// What must stay true: a parameter that would change the answer is honoured or refused by its name;
// one that this server does not know is left out and named in the X-Ossrun-Ignored header, so that
// a misspelt parameter is seen.

package openai

import (
	"bytes"
	"slices"

	"github.com/ossrun/ossrun/harmony/jsondoc"
)

// refusedParameter would change the answer. off is its value, as JSON, that asks for nothing.
type refusedParameter struct{ name, off, instead string }

// refusedEverywhere are refused by every route, refusedInTalks by those with a conversation.
var (
	refusedEverywhere = []refusedParameter{
		{"web_search_options", "", "give the model a function that searches"},
		{"use_beam_search", "false", "ask for n choices and choose among them"},
	}
	refusedInTalks = []refusedParameter{
		{"prompt_logprobs", "", "score a prompt with /v1/completions"},
		{"continue_final_message", "false", "continue a prompt with /v1/completions"},
		{"add_generation_prompt", "true", "render a prompt with /v1/completions"},
		{"echo", "false", "put the message in front of the answer yourself"},
		{"truncate_prompt_tokens", "", "send a shorter conversation"},
		{"chat_template", "", "prompts are rendered as Harmony"},
	}
)

func (o *object) refuse(list []refusedParameter) {
	for _, p := range list {
		if v := o.get(p.name); v.Kind() != jsondoc.Null &&
			(p.off == "" || string(bytes.TrimSpace(v.Raw)) != p.off) {
			v.unsupported(p.name, p.instead)
		}
	}
}

// textOnly refuses the modality audio.
func textOnly(o *object) {
	for _, v := range o.list("modalities") {
		if m := v.text(); m != "text" {
			o.get("modalities").unsupported("the modality "+m, "the model writes text only")
		}
	}
}

// withoutEffect are parameters of OpenAI's and vLLM's documents that cannot change an answer here.
var withoutEffect = []string{"user", "metadata", "service_tier", "store", "parallel_tool_calls",
	"prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "safety_identifier",
	"client_metadata", "prediction", "include", "truncation", "stream_options", "request_id",
	"cache_salt", "priority"}

// templateKwargs holds what vLLM gives to a model's template.
const templateKwargs = "chat_template_kwargs"

// nestedMembers are the members that are read of those that hold others; what else they hold is
// named like a member of the request. A schema or a message may hold what it likes.
var nestedMembers = map[string][]string{
	templateKwargs:   {"reasoning_effort"}, // Harmony's template knows no more
	"stream_options": {"include_usage", "include_obfuscation"},
	"reasoning":      {"effort", "summary", "generate_summary", "exclude"},
	"text":           {"format", "verbosity"},
}

// unread lists the members that were not read and that this server does not know.
func (o *object) unread() (names []string) {
	if o == nil {
		return nil
	}
	for _, m := range o.members.List {
		known := o.seen[m.Name] || slices.Contains(withoutEffect, m.Name) ||
			jsondoc.Field{Raw: m.Raw}.Kind() == jsondoc.Null
		if !known {
			names = append(names, m.Name)
		}
	}
	for outer, known := range nestedMembers {
		if !o.seen[outer] || o.get(outer).Kind() != jsondoc.Object {
			continue
		}
		for _, m := range o.object(outer).members.List {
			if !slices.Contains(known, m.Name) {
				names = append(names, outer+"."+m.Name)
			}
		}
	}
	return names
}

// Limits of OpenAI's metadata.
const (
	mostMetadata      = 16
	longestMetaKey    = 64
	longestMetaString = 512
)

// checkMetadata complains about metadata that OpenAI would refuse.
func checkMetadata(o *object) {
	meta := o.object("metadata")
	if meta == nil {
		return
	}
	if n := len(meta.members.List); n > mostMetadata {
		o.get("metadata").invalid(" has %d members, at most %d are possible", n, mostMetadata)
	}
	for _, m := range meta.members.List {
		key := m.Name
		path := meta.at(brief(key))
		if len([]rune(key)) > longestMetaKey {
			o.c.add(invalid(path, "a key of metadata is longer than %d characters",
				longestMetaKey))
		}
		if v := meta.get(key); v.Kind() == jsondoc.Null || len([]rune(v.text())) >
			longestMetaString {
			o.c.add(invalid(path, "%s must be a string of at most %d characters", path,
				longestMetaString))
		}
	}
}
