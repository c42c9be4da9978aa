// The parameters that the routes share: sampling, stop strings, limits, effort; those that are
// refused because nothing here can honour them, and members that nobody reads.
//
// What must stay true: a parameter that the client does not send has OpenAI's default (temperature
// 1, top-p 1, nothing else). One that would change the answer is honoured or refused by its name;
// one that this server does not know is left out and named in the X-Ossrun-Ignored header, so that
// a misspelt parameter is seen.

package answer

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
	MaxChoices = 64
)

// ReadRequest reads what every route has. history is the field that holds what was said before;
// format and nested are those of readFormat.
func ReadRequest(o *Object, history string, format Value, nested string) Request {
	o.Refuse(RefusedEverywhere)
	CheckMetadata(o)
	return Request{Model: o.Text("model"), N: 1, Stream: o.Flag("stream"), History: history,
		Format: readFormat(o, format, nested), Loops: !o.Boolean("detect_loops", true)}
}

// ChoicesRequest is what requests for chat completions and for completions have in common.
type ChoicesRequest struct {
	Request
	Usage    bool // stream: a last chunk with the usage
	Logprobs bool
}

// ReadChoices reads what ChoicesRequest holds; history is the field of what is continued.
func ReadChoices(o *Object, history string) ChoicesRequest {
	r := ChoicesRequest{Request: ReadRequest(o, history, o.Get("response_format"), "json_schema"),
		Usage: o.Object("stream_options").Flag("include_usage")}
	r.N = o.Integer("n", 1, MaxChoices, 1)
	r.ShowIDs = o.Flag("return_token_ids")
	return r
}

// Fill reads the parameters of a turn in a conversation. bound is the port's limit of reasoning
// tokens; limits are the names of the limit of all tokens.
func (r *Request) Fill(turn *session.Request, o *Object, bound int, limits ...string) {
	turn.Effort = effort(o)
	turn.MaxTokens = TokenLimit(o, limits...)
	o.Refuse(RefusedInTalks)
	turn.Stop, turn.StopTokens = Stops(o), StopTokens(o)
	turn.MaxReasoning = reasoningLimit(o, bound)
	turn.Instructions = JoinParagraphs(turn.Instructions, verbosity(o))
	r.Format.Into(turn)
}

// Sampling reads what sample.Params holds, but for logprobs, which the two APIs ask for in
// different words.
func Sampling(o *Object) sample.Params {
	p := sample.Defaults()
	number := func(name string, low, high float64, to *float32) {
		*to = float32(o.Number(name, low, high, float64(*to)))
	}
	number("temperature", 0, 2, &p.Temperature)
	number("top_p", 0, 1, &p.TopP)
	number("min_p", 0, 1, &p.MinP)
	p.TopK = max(0, o.Integer("top_k", -1, math.MaxInt32, p.TopK)) // 0 and -1 both mean no limit
	number("presence_penalty", -2, 2, &p.PresencePenalty)
	number("frequency_penalty", -2, 2, &p.FrequencyPenalty)
	number("repetition_penalty", 0.01, 100, &p.RepetitionPenalty)
	p.MinTokens = o.Integer("min_tokens", 0, math.MaxInt32, 0)
	p.IgnoreEOS = o.Flag("ignore_eos")
	p.LogitBias = logitBias(o)
	banWords(o, &p)
	p.Seed = member(o, "seed", jsondoc.Field.Bits, p.Seed)
	return p
}

// logitBias is a map from token id to what is added to its logit.
func logitBias(o *Object) map[int32]float32 {
	bias := o.Object("logit_bias")
	if bias == nil || len(bias.members.List) == 0 {
		return nil
	}
	m := make(map[int32]float32, len(bias.members.List))
	for _, b := range bias.members.List {
		key := b.Name
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil || id < 0 || id >= token.VocabSize {
			o.c.add(Invalid(bias.At(key), "logit_bias has the key %q, which is not a token id of "+
				"0 to %d", key, token.VocabSize-1))
			return nil
		}
		m[int32(id)] = float32(bias.Number(key, -100, 100, 0))
	}
	return m
}

// Stops reads a string or an array of strings.
func Stops(o *Object) []string { return StopList(o, "stop") }

// StopList is stops under another name.
func StopList(o *Object, name string) []string {
	if !o.Has(name) {
		return nil
	}
	v := o.Get(name)
	if v.Kind() == jsondoc.String {
		return NotEmpty([]string{v.Text()})
	}
	if v.Kind() != jsondoc.Array {
		v.Wrong("a string or an array of strings")
		return nil
	}
	list := TextsOf(v.List())
	if len(list) > maxStops {
		v.Invalid(" has %d strings, at most %d are possible", len(list), maxStops)
	}
	return NotEmpty(list)
}

// StopTokens reads vLLM's stop_token_ids. Those that end every turn anyway are left out.
func StopTokens(o *Object) (ids []int32) {
	list := o.List("stop_token_ids")
	if len(list) > maxStops {
		o.Get("stop_token_ids").Invalid(" has %d ids, at most %d are possible", len(list), maxStops)
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
func banWords(o *Object, p *sample.Params) {
	for _, v := range o.List("bad_words") {
		word := strings.TrimLeft(v.Text(), " ")
		for _, spelling := range []string{word, " " + word} {
			ids := token.Get().Encode(nil, spelling)
			if word == "" || len(ids) != 1 {
				v.Unsupported(fmt.Sprintf("the bad word %q, which is not one token,", Brief(word)),
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
func verbosity(o *Object) string {
	v := given(o.Get("verbosity"), o.Object("text").Get("verbosity"))
	if v.Kind() == jsondoc.Null {
		return ""
	}
	switch v.Text() {
	case "low":
		return "Verbosity: low. Keep the final answer short."
	case "medium":
	case "high":
		return "Verbosity: high. Make the final answer detailed."
	default:
		v.Must("low, medium or high")
	}
	return ""
}

// given is the first value that is there, else the last.
func given(values ...Value) Value {
	for _, v := range values[:len(values)-1] {
		if v.Kind() != jsondoc.Null {
			return v
		}
	}
	return values[len(values)-1]
}

// JoinParagraphs joins the texts that are not empty.
func JoinParagraphs(texts ...string) string { return strings.Join(NotEmpty(texts), "\n\n") }

// NotEmpty is the list without its empty texts.
func NotEmpty(list []string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// TokenLimit reads the first of the names that is there. -1 is what some clients send for "no
// limit".
func TokenLimit(o *Object, names ...string) int {
	for _, name := range names {
		if !o.Has(name) {
			continue
		}
		n := o.Integer(name, -1, math.MaxInt32, 0)
		if n == 0 {
			o.Get(name).Invalid(" must be at least 1")
		}
		return max(n, 0)
	}
	return 0
}

// reasoningLimit is session.Request.MaxReasoning: a client's 0 is no reasoning, -1 is no bound.
// bound is that of clients that say nothing.
func reasoningLimit(o *Object, bound int) int {
	if !o.Has("max_reasoning_tokens") {
		return bound
	}
	switch n := o.Integer("max_reasoning_tokens", -1, math.MaxInt32, -1); n {
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
func effort(o *Object) string {
	v := given(o.Get("reasoning_effort"), o.Object("reasoning").Get("effort"),
		o.Object(templateKwargs).Get("reasoning_effort"))
	if v.Kind() == jsondoc.Null {
		return "medium"
	}
	return EffortLevel(v)
}

// EffortLevel maps OpenAI's seven levels of effort onto the model's three.
func EffortLevel(v Value) string {
	switch strings.ToLower(v.Text()) {
	case "none", "minimal", "low":
		return "low"
	case "medium":
		return "medium"
	case "high", "xhigh", "max":
		return "high"
	}
	v.Must("one of none, minimal, low, medium, high, xhigh, max")
	return ""
}

// refusedParameter would change the answer. off is its value, as JSON, that asks for nothing.
type refusedParameter struct{ Name, off, instead string }

// RefusedEverywhere are refused by every route, refusedInTalks by those with a conversation.
var (
	RefusedEverywhere = []refusedParameter{
		{"web_search_options", "", "give the model a function that searches"},
		{"use_beam_search", "false", "ask for n choices and choose among them"},
	}
	RefusedInTalks = []refusedParameter{
		{"prompt_logprobs", "", "score a prompt with /v1/completions"},
		{"continue_final_message", "false", "continue a prompt with /v1/completions"},
		{"add_generation_prompt", "true", "render a prompt with /v1/completions"},
		{"echo", "false", "put the message in front of the answer yourself"},
		{"truncate_prompt_tokens", "", "send a shorter conversation"},
		{"chat_template", "", "prompts are rendered as Harmony"},
	}
)

// Refuse complains about the parameters of the list that ask for something.
func (o *Object) Refuse(list []refusedParameter) {
	for _, p := range list {
		if v := o.Get(p.Name); v.Kind() != jsondoc.Null &&
			(p.off == "" || string(bytes.TrimSpace(v.Raw)) != p.off) {
			v.Unsupported(p.Name, p.instead)
		}
	}
}

// WithoutEffect are parameters of OpenAI's and vLLM's documents that cannot change an answer here.
var WithoutEffect = []string{"user", "metadata", "service_tier", "store", "parallel_tool_calls",
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

// Unread lists the members that were not read and that this server does not know.
func (o *Object) Unread() (names []string) {
	if o == nil {
		return nil
	}
	for _, m := range o.members.List {
		known := o.seen[m.Name] || slices.Contains(WithoutEffect, m.Name) ||
			jsondoc.Field{Raw: m.Raw}.Kind() == jsondoc.Null
		if !known {
			names = append(names, m.Name)
		}
	}
	for outer, known := range nestedMembers {
		if !o.seen[outer] || o.Get(outer).Kind() != jsondoc.Object {
			continue
		}
		for _, m := range o.Object(outer).members.List {
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

// CheckMetadata holds metadata to OpenAI's limits.
func CheckMetadata(o *Object) {
	meta := o.Object("metadata")
	if meta == nil {
		return
	}
	if n := len(meta.members.List); n > mostMetadata {
		o.Get("metadata").Invalid(" has %d members, at most %d are possible", n, mostMetadata)
	}
	for _, m := range meta.members.List {
		key := m.Name
		path := meta.At(Brief(key))
		if len([]rune(key)) > longestMetaKey {
			o.c.add(Invalid(path, "a key of metadata is longer than %d characters",
				longestMetaKey))
		}
		if v := meta.Get(key); v.Kind() == jsondoc.Null || len([]rune(v.Text())) >
			longestMetaString {
			o.c.add(Invalid(path, "%s must be a string of at most %d characters", path,
				longestMetaString))
		}
	}
}
