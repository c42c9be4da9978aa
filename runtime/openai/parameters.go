// The parameters that chat completions and responses share: sampling, stop strings, effort, tools.
//
// What must stay true: what a client does not send is OpenAI's default (temperature 1, top-p 1, nothing else), and a
// parameter that would change the answer and cannot be honoured is refused, never silently dropped. Parameters that
// cannot change the answer (user, metadata, service_tier, ...) are simply not read.

package openai

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/sample"
)

const (
	maxStops   = 32
	maxChoices = 64
)

// sampling reads what sample.Params holds, but for logprobs, which the two APIs ask for in different words.
func sampling(o *object) sample.Params {
	p := sample.Defaults()
	p.Temperature = float32(o.number("temperature", 0, 2, float64(p.Temperature)))
	p.TopP = float32(o.number("top_p", 0, 1, float64(p.TopP)))
	p.MinP = float32(o.number("min_p", 0, 1, float64(p.MinP)))
	p.TopK = max(0, o.integer("top_k", -1, math.MaxInt32, p.TopK)) // 0 and -1 both mean no limit
	p.PresencePenalty = float32(o.number("presence_penalty", -2, 2, float64(p.PresencePenalty)))
	p.FrequencyPenalty = float32(o.number("frequency_penalty", -2, 2, float64(p.FrequencyPenalty)))
	p.RepetitionPenalty = float32(o.number("repetition_penalty", 0.01, 100, float64(p.RepetitionPenalty)))
	p.MinTokens = o.integer("min_tokens", 0, math.MaxInt32, 0)
	p.IgnoreEOS = o.boolean("ignore_eos", false)
	p.LogitBias = logitBias(o)
	if seed, given := o.seed("seed"); given {
		p.Seed = seed
	}
	return p
}

// logitBias is a map from token id to what is added to its logit.
func logitBias(o *object) map[int32]float32 {
	bias := o.object("logit_bias")
	if bias == nil || len(bias.members) == 0 {
		return nil
	}
	m := make(map[int32]float32, len(bias.members))
	for key := range bias.members {
		id, err := strconv.ParseInt(key, 10, 32)
		if err != nil || id < 0 || id >= token.VocabSize {
			o.c.add(invalid(bias.at(key), "logit_bias has the key %q, which is not a token id of 0 to %d", key, token.VocabSize-1))
			return nil
		}
		m[int32(id)] = float32(bias.number(key, -100, 100, 0))
	}
	return m
}

// stops reads a string or an array of strings.
func stops(o *object) []string {
	if !o.has("stop") {
		return nil
	}
	v := o.get("stop")
	if v.kind() == '"' {
		return notEmpty([]string{v.text()})
	}
	if v.kind() != '[' {
		v.wrong("a string or an array of strings")
		return nil
	}
	var list []string
	for _, s := range v.list() {
		list = append(list, s.text())
	}
	if len(list) > maxStops {
		o.c.add(invalid("stop", "stop has %d strings, at most %d are possible", len(list), maxStops))
	}
	return notEmpty(list)
}

func notEmpty(list []string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// tokenLimit reads the first of the names that is there. -1 is what some clients send for "no limit".
func tokenLimit(o *object, names ...string) int {
	for _, name := range names {
		if !o.has(name) {
			continue
		}
		n := o.integer(name, -1, math.MaxInt32, 0)
		if n == 0 {
			o.c.add(invalid(o.at(name), "%s must be at least 1", name))
		}
		return max(n, 0)
	}
	return 0
}

// effort reads the reasoning effort wherever clients put it and maps OpenAI's seven levels onto the model's three.
func effort(o *object) string {
	for _, v := range []value{o.get("reasoning_effort"), o.object("reasoning").get("effort"),
		o.object("chat_template_kwargs").get("reasoning_effort")} {
		if v.kind() == 'n' {
			continue
		}
		level := v.text()
		switch strings.ToLower(level) {
		case "none", "minimal", "low":
			return "low"
		case "medium":
			return "medium"
		case "high", "xhigh", "max":
			return "high"
		}
		o.c.add(invalid(v.path, "%s is %q, it must be one of none, minimal, low, medium, high, xhigh, max", v.path, level))
		return ""
	}
	return "medium"
}

// function is a tool the client runs.
type function struct {
	name        string
	description *string
	parameters  json.RawMessage // nil: takes none
	strict      *bool
}

// offers reads tools and tool_choice. choice is what the answer echoes; ignored are the types of tools that this
// server cannot offer. Clients such as Codex send those along with the functions they need, so they are no fault.
func offers(o *object) (functions []function, choice string, ignored []string) {
	for _, v := range o.list("tools") {
		t := v.object()
		if kind := t.text("type"); kind != "function" {
			if kind == "" {
				t.complain(missing(t.at("type")))
			}
			ignored = append(ignored, kind)
			continue
		}
		f := t
		if t.has("function") { // chat completions nest, responses do not
			f = t.object("function")
		}
		functions = append(functions, readFunction(f))
	}
	choice, names := toolChoice(o)
	switch {
	case names != nil:
		functions = slices.DeleteFunc(functions, func(f function) bool { return !slices.Contains(names, f.name) })
	case choice == "none":
		functions = nil
	}
	return functions, choice, ignored
}

func readFunction(o *object) function {
	f := function{name: o.text("name")}
	if !toolName(f.name) {
		o.complain(invalid(o.at("name"), "%s is %q, it must be 1 to 128 letters, digits, or any of _-.:/", o.at("name"), f.name))
	}
	if o.has("description") {
		d := o.text("description")
		f.description = &d
	}
	if o.has("parameters") {
		if v := o.get("parameters"); v.kind() == '{' {
			f.parameters = v.raw
		} else {
			v.wrong("an object")
		}
	}
	if o.has("strict") {
		s := o.boolean("strict", false)
		f.strict = &s
	}
	return f
}

// toolName tells whether a name can stand in a Harmony header as one word.
func toolName(s string) bool {
	if len(s) == 0 || len(s) > 128 {
		return false
	}
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_-.:/", r):
		default:
			return false
		}
	}
	return true
}

// toolChoice reads auto, none, and the list of allowed tools; names is nil where all are allowed.
func toolChoice(o *object) (choice string, names []string) {
	if !o.has("tool_choice") {
		return "auto", nil
	}
	v := o.get("tool_choice")
	if v.kind() == '"' {
		switch choice := v.text(); choice {
		case "auto", "none":
			return choice, nil
		case "required":
			v.c.add(unsupported(v.path, `tool_choice "required"`, `use "auto" and ask for the call in the instructions`))
		default:
			v.c.add(invalid(v.path, `tool_choice is %q, it must be "auto", "none" or an object`, choice))
		}
		return "auto", nil
	}
	c := v.object()
	switch kind := c.text("type"); kind {
	case "allowed_tools":
		if c.has("allowed_tools") {
			c = c.object("allowed_tools")
		}
		if c.text("mode") == "required" {
			v.c.add(unsupported(c.at("mode"), `tool_choice with mode "required"`, `use mode "auto"`))
		}
		names = []string{}
		for _, t := range c.list("tools") {
			tool := t.object()
			if tool.has("function") {
				tool = tool.object("function")
			}
			names = append(names, tool.text("name"))
		}
		return "auto", names
	case "":
		c.complain(missing(c.at("type")))
	default:
		v.c.add(unsupported(v.path, fmt.Sprintf("tool_choice of type %q", kind), `use "auto", or offer only that tool`))
	}
	return "auto", nil
}

// descriptions is how the session wants functions.
func descriptions(functions []function) []harmony.ToolDescription {
	list := make([]harmony.ToolDescription, len(functions))
	for i, f := range functions {
		list[i] = harmony.ToolDescription{Name: f.name, Parameters: f.parameters}
		if f.description != nil {
			list[i].Description = *f.description
		}
	}
	return list
}

// complain adds a fault; a nil object has nobody to tell, because its own absence was the complaint.
func (o *object) complain(f *fault) {
	if o != nil {
		o.c.add(f)
	}
}
