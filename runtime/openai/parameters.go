// The parameters that the routes share: sampling, stop strings, limits, effort; those that are
// refused because nothing here can honour them, and members that nobody reads.
//
// What must stay true: a parameter that the client does not send has OpenAI's default (temperature
// 1, top-p 1, nothing else). One that would change the answer is honoured or refused by its name;
// one that this server does not know is left out and named in the X-Ossrun-Ignored header, so that
// a misspelt parameter is seen.

package openai

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
)

const (
	maxStops   = 32
	maxChoices = 64
)

// readRequest reads what every route has. history is the field that holds what was said before;
// format and nested are those of readFormat.
func readRequest(o *object, history string, format value, nested string) request {
	o.refuse(refusedEverywhere)
	checkMetadata(o)
	return request{model: o.text("model"), n: 1, stream: o.flag("stream"), history: history,
		format: readFormat(o, format, nested), loops: !o.boolean("detect_loops", true)}
}

// choicesRequest is what requests for chat completions and for completions have in common.
type choicesRequest struct {
	request
	usage    bool // stream: a last chunk with the usage
	logprobs bool
}

func readChoices(o *object, history string) choicesRequest {
	r := choicesRequest{request: readRequest(o, history, o.get("response_format"), "json_schema"),
		usage: o.object("stream_options").flag("include_usage")}
	r.n = o.integer("n", 1, maxChoices, 1)
	r.ids = o.flag("return_token_ids")
	return r
}

// fill reads the parameters of a turn in a conversation. bound is the port's limit of reasoning
// tokens; limits are the names of the limit of all tokens.
func (r *request) fill(turn *session.Request, o *object, bound int, limits ...string) {
	turn.Effort = effort(o)
	turn.MaxTokens = tokenLimit(o, limits...)
	o.refuse(refusedInTalks)
	turn.Stop, turn.StopTokens = stops(o), stopTokens(o)
	turn.MaxReasoning = reasoningLimit(o, bound)
	turn.Instructions = joinParagraphs(turn.Instructions, verbosity(o))
	r.format.into(turn)
}

// sampling reads what sample.Params holds, but for logprobs, which the two APIs ask for in
// different words.
func sampling(o *object) sample.Params {
	p := sample.Defaults()
	number := func(name string, low, high float64, to *float32) {
		*to = float32(o.number(name, low, high, float64(*to)))
	}
	number("temperature", 0, 2, &p.Temperature)
	number("top_p", 0, 1, &p.TopP)
	number("min_p", 0, 1, &p.MinP)
	p.TopK = max(0, o.integer("top_k", -1, math.MaxInt32, p.TopK)) // 0 and -1 both mean no limit
	number("presence_penalty", -2, 2, &p.PresencePenalty)
	number("frequency_penalty", -2, 2, &p.FrequencyPenalty)
	number("repetition_penalty", 0.01, 100, &p.RepetitionPenalty)
	p.MinTokens = o.integer("min_tokens", 0, math.MaxInt32, 0)
	p.IgnoreEOS = o.flag("ignore_eos")
	p.LogitBias = logitBias(o)
	banWords(o, &p)
	p.Seed = member(o, "seed", jsondoc.Field.Bits, p.Seed)
	return p
}

// logitBias is a map from token id to what is added to its logit.
func logitBias(o *object) map[int32]float32 {
	bias := o.object("logit_bias")
	if bias == nil || len(bias.members.List) == 0 {
		return nil
	}
	m := make(map[int32]float32, len(bias.members.List))
	for _, b := range bias.members.List {
		key := b.Name
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil || id < 0 || id >= token.VocabSize {
			o.c.add(invalid(bias.at(key), "logit_bias has the key %q, which is not a token id of "+
				"0 to %d", key, token.VocabSize-1))
			return nil
		}
		m[int32(id)] = float32(bias.number(key, -100, 100, 0))
	}
	return m
}

// stops reads a string or an array of strings.
func stops(o *object) []string { return stopList(o, "stop") }

// stopList is stops under another name.
func stopList(o *object, name string) []string {
	if !o.has(name) {
		return nil
	}
	v := o.get(name)
	if v.Kind() == jsondoc.String {
		return notEmpty([]string{v.text()})
	}
	if v.Kind() != jsondoc.Array {
		v.wrong("a string or an array of strings")
		return nil
	}
	list := textsOf(v.list())
	if len(list) > maxStops {
		v.invalid(" has %d strings, at most %d are possible", len(list), maxStops)
	}
	return notEmpty(list)
}

// stopTokens reads vLLM's stop_token_ids. Those that end every turn anyway are left out.
func stopTokens(o *object) (ids []int32) {
	list := o.list("stop_token_ids")
	if len(list) > maxStops {
		o.get("stop_token_ids").invalid(" has %d ids, at most %d are possible", len(list), maxStops)
	}
	for _, v := range list {
		if id := v.tokenID(); id != token.Return && id != token.Call && id != token.EndOfText {
			ids = append(ids, id)
		}
	}
	return ids
}

// banWords forbids vLLM's bad_words: their tokens at the start of a text and behind a space. A word
// of several tokens could not be forbidden without its parts.
func banWords(o *object, p *sample.Params) {
	for _, v := range o.list("bad_words") {
		word := strings.TrimLeft(v.text(), " ")
		for _, spelling := range []string{word, " " + word} {
			ids := token.Get().Encode(nil, spelling)
			if word == "" || len(ids) != 1 {
				v.unsupported(fmt.Sprintf("the bad word %q, which is not one token,", brief(word)),
					"words of one token can be banned, or use logit_bias")
				return
			}
			if p.LogitBias == nil {
				p.LogitBias = map[int32]float32{}
			}
			p.LogitBias[ids[0]] = -100
		}
	}
}

// verbosity is what the model is told of verbosity (chat) or text.verbosity (responses); medium is
// what it does by itself.
func verbosity(o *object) string {
	v := given(o.get("verbosity"), o.object("text").get("verbosity"))
	if v.Kind() == jsondoc.Null {
		return ""
	}
	switch v.text() {
	case "low":
		return "Verbosity: low. Keep the final answer short."
	case "medium":
	case "high":
		return "Verbosity: high. Make the final answer detailed."
	default:
		v.must("low, medium or high")
	}
	return ""
}

// given is the first value that is there, else the last.
func given(values ...value) value {
	for _, v := range values[:len(values)-1] {
		if v.Kind() != jsondoc.Null {
			return v
		}
	}
	return values[len(values)-1]
}

func joinParagraphs(texts ...string) string { return strings.Join(notEmpty(texts), "\n\n") }

func notEmpty(list []string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// tokenLimit reads the first of the names that is there. -1 is what some clients send for "no
// limit".
func tokenLimit(o *object, names ...string) int {
	for _, name := range names {
		if !o.has(name) {
			continue
		}
		n := o.integer(name, -1, math.MaxInt32, 0)
		if n == 0 {
			o.get(name).invalid(" must be at least 1")
		}
		return max(n, 0)
	}
	return 0
}

// reasoningLimit is session.Request.MaxReasoning: a client's 0 is no reasoning, -1 is no bound.
// bound is that of clients that say nothing.
func reasoningLimit(o *object, bound int) int {
	if !o.has("max_reasoning_tokens") {
		return bound
	}
	switch n := o.integer("max_reasoning_tokens", -1, math.MaxInt32, -1); n {
	case -1:
		return 0
	case 0:
		return -1
	default:
		return n
	}
}

// effort reads the reasoning effort wherever clients put it and maps OpenAI's seven levels onto the
// model's three.
func effort(o *object) string {
	v := given(o.get("reasoning_effort"), o.object("reasoning").get("effort"),
		o.object(templateKwargs).get("reasoning_effort"))
	if v.Kind() == jsondoc.Null {
		return "medium"
	}
	return effortLevel(v)
}

func effortLevel(v value) string {
	switch strings.ToLower(v.text()) {
	case "none", "minimal", "low":
		return "low"
	case "medium":
		return "medium"
	case "high", "xhigh", "max":
		return "high"
	}
	v.must("one of none, minimal, low, medium, high, xhigh, max")
	return ""
}

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
