// Package request makes turns of a request's fields: the conversation, its content, the format of
// the answer, and the parameters that dialects share.
//
// What must stay true: a parameter that the client does not send has OpenAI's default (temperature
// 1, top-p 1, nothing else). One that would change the answer is honoured or refused by its name.
package request

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/harmony/jsondoc"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/sample"
	"github.com/ossrun/ossrun/runtime/session"
)

const (
	maxStops = 32
	// MaxChoices is the most answers to one prompt.
	MaxChoices = 64
)

// Draft is a request while its parameters are read. Its methods are rows of the table, which write
// to it.
type Draft struct {
	answer.Request
	Turn  session.Request // the base of each choice
	Usage bool            // a stream has a last chunk with the usage

	Format     format // of the answer
	formats    int    // number of requested formats
	verbosity  string
	EffortName string // as the client sent it, "" for none
}

// NewDraft is a request without parameters. history is the field of the prompt or conversation;
// bound is the port's limit of reasoning tokens.
func NewDraft(history string, bound int) Draft {
	return Draft{Request: answer.Request{N: 1, History: history}, Format: freeText,
		Turn: session.Request{Params: sample.Defaults(), MaxReasoning: bound}}
}

// Choices returns n turns of one request, each with its own seed.
func Choices(r session.Request, n int) []session.Request {
	list := make([]session.Request, n)
	for i := range list {
		list[i] = r
		list[i].Params.Seed += uint64(i)
	}
	return list
}

// effortLine is a line of a system message that sets the effort, as in the models' card.
var effortLine = regexp.MustCompile(`(?mi)^[ \t]*reasoning:[ \t]*(low|medium|high)[ \t]*\r?$\n?`)

// Instruct sets the turn's instructions, followed by those of the parameters. The effort is that of
// the parameters, else of a line of text.
func (d *Draft) Instruct(text string) {
	if line := effortLine.FindStringSubmatch(text); line != nil {
		d.Turn.Effort = cmp.Or(d.Turn.Effort, strings.ToLower(line[1]))
		text = strings.TrimSpace(effortLine.ReplaceAllString(text, ""))
	}
	d.Turn.Effort = cmp.Or(d.Turn.Effort, "medium")
	d.Turn.Instructions = JoinParagraphs(text, d.verbosity)
	d.Format.ApplyTo(&d.Turn)
}

// Sampling has the rows of sample.Params, except logprobs, which each dialect names differently.
func (d *Draft) Sampling() (rows []fields.Parameter) {
	p := &d.Turn.Params
	for _, n := range sample.Numbers {
		rows = append(rows, fields.Number(n, p))
	}
	return append(rows,
		d.Number("repetition_penalty").WithName("repeat_penalty").WithoutDoc(), // llama.cpp's
		fields.Row("seed integer", func(o *fields.Object, name string) {
			p.Seed = o.Bits(name, p.Seed)
		}),
		fields.Row("logit_bias object", func(o *fields.Object, name string) {
			p.LogitBias = logitBias(o, name)
		}),
		fields.Boolean("ignore_eos", false, &p.IgnoreEOS),
		fields.Row("bad_words strings", func(o *fields.Object, name string) {
			banWords(o, name, p)
		}))
}

func (d *Draft) Number(name string) fields.Parameter {
	return fields.Number(sample.NumberNamed(name), &d.Turn.Params)
}

// Stop has the strings that end an answer.
func (d *Draft) Stop(line string) fields.Parameter {
	return fields.Row(line, func(o *fields.Object, name string) { d.Turn.Stop = stops(o, name) })
}

// guidedLines are vLLM's names of constraints, which OpenAI's routes document.
var guidedLines = []string{"guided_json any", "guided_json_object boolean", "guided_regex string",
	"guided_choice strings", "guided_grammar string", "structured_outputs object"}

// CommonRows has the rows of all OpenAI routes. format is the line of the answer's format.
func (d *Draft) CommonRows(format string) []fields.Parameter {
	rows := append(RefusedEverywhere(), fields.Text("model", &d.Model),
		fields.Row("cache_salt string", func(o *fields.Object, name string) {
			if d.Turn.Salt = o.Text(name); o.Has(name) && d.Turn.Salt == "" {
				o.Get(name).MustBe("a string that is not empty")
			}
		}),
		fields.Boolean("stream", false, &d.Stream),
		fields.Opposite("store", &d.Turn.InMemory), fields.Opposite("detect_loops", &d.AllowLoops),
		fields.Row("stop_token_ids integers", func(o *fields.Object, name string) {
			d.Turn.StopTokens = stopTokens(o, name)
		}), d.Stop("stop text-or-strings"))
	return append(rows, d.Constraints(append(guidedLines, format)...)...)
}

// Choices has the rows of routes with several choices.
func (d *Draft) Choices() []fields.Parameter {
	return []fields.Parameter{fields.Integer("n", 1, MaxChoices, 1, &d.N),
		fields.Row("stream_options object", func(o *fields.Object, name string) {
			options := o.Object(name)
			d.Usage = options.Flag("include_usage")
			d.ContinuousUsage = d.Usage && options.Flag("continuous_usage_stats")
			d.Turn.Counts = d.Turn.Counts || d.ContinuousUsage
			if options != nil && !o.Flag("stream") {
				o.Get(name).Invalid(" needs stream to be true")
			}
		}).WithMembers("include_usage", "include_obfuscation", "continuous_usage_stats"),
		fields.Row("timings_per_token boolean", func(o *fields.Object, name string) {
			d.Timings = o.Boolean(name, false)
			d.Turn.Counts = d.Turn.Counts || d.Timings
		}),
		fields.Boolean("return_token_ids", false, &d.ShowIDs)}
}

// ConversationRows has the rows of OpenAI's routes with a conversation. limits are the lines for
// the limit of all tokens, in order of precedence.
func (d *Draft) ConversationRows(limits ...string) []fields.Parameter {
	bound := fields.Row("max_reasoning_tokens integer -1", func(o *fields.Object, name string) {
		if n := o.Integer(name, -1, math.MaxInt32, 0); n > 0 {
			d.Turn.MaxReasoning = n
		} else if o.Has(name) { // 0 is no reasoning, -1 no bound
			d.Turn.MaxReasoning = -1 - n
		}
	})
	rows := append(d.Limit(limits...), bound,
		bound.WithName("thinking_token_budget").WithoutDoc(), // vLLM's
		bound.WithName("thinking_budget_tokens").WithoutDoc(),
		bound.WithName("reasoning_budget_tokens").WithoutDoc(), // llama.cpp's, as the one before
		fields.Row("reasoning_effort effort", func(o *fields.Object, name string) {
			kwargs := o.Object("chat_template_kwargs")
			d.SetEffort(o.Get(name), o.Object("reasoning").Get("effort"), kwargs.Get(name))
			if d.EffortName == "" && !kwargs.Boolean("enable_thinking", true) {
				d.EffortName, d.Turn.Effort, d.Turn.MaxReasoning = "none", "low", -1
			}
		}),
		fields.Row("verbosity low|medium|high", func(o *fields.Object, name string) {
			v, ok := firstNonNull(o.Get(name), o.Object("text").Get(name)), true
			if v.Kind() != jsondoc.Null {
				d.verbosity, ok = verbosities[v.Text()]
			}
			if !ok {
				v.MustBe("low, medium or high")
			}
		}),
		// arguments of other models' chat templates; these have a meaning in Harmony
		fields.Row("chat_template_kwargs object", nil).WithMembers("reasoning_effort",
			"enable_thinking"),
		fields.Refused("prompt_logprobs", "", "score a prompt with /v1/completions"),
		fields.Refused("allowed_token_ids", "", "bound tokens with /v1/completions"),
		fields.Refused("continue_final_message", "false", "continue a prompt with /v1/completions"),
		fields.Refused("add_generation_prompt", "true", "render a prompt with /v1/completions"),
		fields.Refused("echo", "false", "put the message in front of the answer yourself"),
		fields.Refused("truncate_prompt_tokens", "", "send a shorter conversation"),
		fields.Refused("chat_template", "", "prompts are rendered as Harmony"))
	return rows
}

// RefusedEverywhere are refused by every route of OpenAI's or Anthropic's form.
func RefusedEverywhere() []fields.Parameter {
	return []fields.Parameter{
		fields.Refused("web_search_options", "", "give the model a function that searches"),
		fields.Refused("include_stop_str_in_output", "false", "add the stop text yourself"),
		fields.Refused("logprob_token_ids", "", "ask for the most probable tokens"),
		fields.Refused("documents", "[]", "put their text into a message"),
		fields.Refused("use_beam_search", "false", "ask for n choices and choose among them")}
}

// Limit is the limit of all tokens, under the first of its names that is present. Some clients send
// -1 for "no limit".
func (d *Draft) Limit(lines ...string) (rows []fields.Parameter) {
	done := false
	for _, line := range lines {
		rows = append(rows, fields.Row(line, func(o *fields.Object, name string) {
			if done || !o.Has(name) {
				return
			}
			done = true
			n := o.Integer(name, -1, math.MaxInt32, 0)
			if n == 0 {
				o.Get(name).Invalid(" must be at least 1")
			}
			d.Turn.MaxTokens = max(n, 0)
		}))
	}
	return rows
}

// logitBias maps token ids to the numbers added to their logits.
func logitBias(o *fields.Object, name string) map[int32]float32 {
	bias := o.Object(name)
	if bias == nil || len(bias.Members()) == 0 {
		return nil
	}
	m := make(map[int32]float32, len(bias.Members()))
	for _, b := range bias.Members() {
		key := b.Name
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil || id < 0 || id >= token.VocabSize {
			o.AddFault(fields.Invalid(bias.PathOf(key),
				"logit_bias has the key %q, which is not a token id "+
					"of 0 to %d", key, token.VocabSize-1))
			return nil
		}
		m[int32(id)] = float32(bias.Number(key, -100, 100, 0))
	}
	return m
}

func stops(o *fields.Object, name string) []string {
	if !o.Has(name) {
		return nil
	}
	v := o.Get(name)
	if v.Kind() == jsondoc.String {
		return NotEmpty([]string{v.Text()})
	}
	if v.Kind() != jsondoc.Array {
		v.WrongType("a string or an array of strings")
		return nil
	}
	list := fields.TextsOf(v.List())
	if len(list) > maxStops {
		v.Invalid(" has %d strings, at most %d are possible", len(list), maxStops)
	}
	return NotEmpty(list)
}

// stopTokens reads vLLM's stop_token_ids, without those that end every turn anyway.
func stopTokens(o *fields.Object, name string) []int32 {
	list := o.List(name)
	if len(list) > maxStops {
		o.Get(name).Invalid(" has %d ids, at most %d are possible", len(list), maxStops)
	}
	return slices.DeleteFunc(fields.IDsOf(list), func(id int32) bool {
		return id == token.Return || id == token.Call || id == token.EndOfText
	})
}

// banWords forbids vLLM's bad_words: their tokens at the start of a text and after a space. A word
// of several tokens could not be forbidden without its parts.
func banWords(o *fields.Object, name string, p *sample.Params) {
	for _, v := range o.List(name) {
		word := strings.TrimLeft(v.Text(), " ")
		for _, spelling := range []string{word, " " + word} {
			ids := token.Get().Encode(nil, spelling)
			if word == "" || len(ids) != 1 {
				v.Unsupported(fmt.Sprintf("the bad word %q, which is not one token,",
					fields.Brief(word)), "words of one token can be banned, or use logit_bias")
				return
			}
			if p.LogitBias == nil {
				p.LogitBias = map[int32]float32{}
			}
			p.LogitBias[ids[0]] = -100
		}
	}
}

// verbosities are the instructions for verbosity (chat) or text.verbosity (responses); medium is
// the model's default.
var verbosities = map[string]string{"low": "Verbosity: low. Keep the final answer short.",
	"medium": "", "high": "Verbosity: high. Make the final answer detailed."}

// firstNonNull is the first value that is not null, else the last.
func firstNonNull(values ...fields.Value) fields.Value {
	for _, v := range values[:len(values)-1] {
		if v.Kind() != jsondoc.Null {
			return v
		}
	}
	return values[len(values)-1]
}

func JoinParagraphs(texts ...string) string { return strings.Join(NotEmpty(texts), "\n\n") }

func NotEmpty(list []string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// ReasoningMembers are the members of reasoning that any dialect reads.
var ReasoningMembers = []string{"effort", "summary", "generate_summary", "exclude"}

// minimalReasoning is the most tokens of reasoning with the effort minimal.
const minimalReasoning = 64

// SetEffort maps OpenAI's seven levels of effort, the first that is sent in any of a request's
// places, onto the model's three, and bounds for the lowest.
func (d *Draft) SetEffort(places ...fields.Value) {
	v, turn := firstNonNull(places...), &d.Turn
	if v.Kind() == jsondoc.Null {
		return
	}
	switch d.EffortName, turn.Effort = strings.ToLower(v.Text()), "low"; d.EffortName {
	case "none":
		turn.MaxReasoning = -1
	case "minimal":
		if turn.MaxReasoning == 0 || turn.MaxReasoning > minimalReasoning {
			turn.MaxReasoning = minimalReasoning
		}
	case "low":
	case "medium":
		turn.Effort = "medium"
	case "high", "xhigh", "max":
		turn.Effort = "high"
	default:
		v.MustBe("one of none, minimal, low, medium, high, xhigh, max")
	}
}

// Limits of OpenAI's metadata.
const (
	maxMetadata   = 16
	maxMetaKey    = 64
	maxMetaString = 512
)

// Metadata is a copy of the checked metadata, which is echoed unchanged and outlives the body.
func Metadata(o *fields.Object) json.RawMessage {
	meta := o.Object("metadata")
	if meta == nil {
		return json.RawMessage("{}")
	}
	if n := len(meta.Members()); n > maxMetadata {
		meta.Value().Invalid(" has %d members, at most %d are possible", n, maxMetadata)
	}
	for _, m := range meta.Members() {
		key := m.Name
		path := meta.PathOf(fields.Brief(key))
		if len([]rune(key)) > maxMetaKey {
			o.AddFault(fields.Invalid(path, "a key of metadata is longer than %d characters",
				maxMetaKey))
		}
		if v := meta.Get(key); v.Kind() == jsondoc.Null || len([]rune(v.Text())) >
			maxMetaString {
			o.AddFault(fields.Invalid(path, "%s must be a string of at most %d characters", path,
				maxMetaString))
		}
	}
	return slices.Clone(meta.Value().Raw)
}
