// A request's sampling parameters. The names and the ranges are those of OpenAI's and vLLM's
// requests, so that the port passes them through; Check names the first value out of range.

package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// MaxTopLogprobs is the most rivals a token can be reported with.
const MaxTopLogprobs = 20

// biasLimit is the bias that is not added: -100 bans a token, +100 allows only such tokens.
const biasLimit = 100

// Params says how the next token is chosen. The zero value is greedy. Steps apply in this order:
//
//  1. RepetitionPenalty r over the tokens of prompt and answer: a positive logit is divided by r,
//     another multiplied.
//  2. FrequencyPenalty f and PresencePenalty p over the n times a token is in the
//     answer: logit - f*n - p.
//  3. LogitBias is added; -100 bans the token, +100 leaves only the tokens that have it.
//  4. The mask of allowed tokens, and the stop ids until MinTokens tokens are generated.
//  5. Temperature divides the logits; 0 takes the highest, of equals the lowest id.
//  6. TopK keeps the k most probable; of equals the lower ids.
//  7. TopP keeps the fewest of those, most probable first, that hold at least this share
//     of their probability.
//  8. MinP keeps those at least MinP times as probable as the most probable one.
//
// One token always remains: if the mask leaves only tokens that a request banned, the mask wins.
type Params struct {
	Temperature float32 // 0 is greedy
	TopP        float32 // 0..1; 1 is off, 0 the most probable token only
	MinP        float32 // 0..1; 0 is off
	TopK        int     // 0 and below is off

	PresencePenalty   float32 // 0 is off
	FrequencyPenalty  float32 // 0 is off
	RepetitionPenalty float32 // 1 is off, and so is 0
	LogitBias         map[int32]float32

	Seed      uint64 // same seed, same text
	Logprobs  int    // -1: none; 0..20: the token's own, and so many rivals
	MinTokens int    // no stop id is chosen before so many tokens
	IgnoreEOS bool   // the scheduler continues after the model's end tokens
}

// Defaults are OpenAI's for gpt-oss: temperature 1, top-p 1, nothing else. The seed is drawn each
// time, since a request without a seed must not repeat the text of the previous one.
func Defaults() Params {
	return Params{Temperature: 1, TopP: 1, RepetitionPenalty: 1, Seed: rand.Uint64(), Logprobs: -1}
}

// Number is one of Params that is a number: its name in requests, its range, the values that change
// nothing, and its field, a *float32 or an *int.
type Number struct {
	Name      string
	Low, High float64
	Neutral   []float64
	Field     func(*Params) any
}

// Unbounded is the High of a whole number that has none.
const Unbounded = math.MaxInt32

// Numbers are all of them, for reading requests, for Check, and for requests to remote models.
var Numbers = []Number{
	{"temperature", 0, 2, nil, func(p *Params) any { return &p.Temperature }},
	{"top_p", 0, 1, []float64{1}, func(p *Params) any { return &p.TopP }},
	{"min_p", 0, 1, []float64{0}, func(p *Params) any { return &p.MinP }},
	{"top_k", -1, Unbounded, []float64{-1, 0}, func(p *Params) any { return &p.TopK }},
	{"presence_penalty", -2, 2, []float64{0}, func(p *Params) any { return &p.PresencePenalty }},
	{"frequency_penalty", -2, 2, []float64{0}, func(p *Params) any { return &p.FrequencyPenalty }},
	{"repetition_penalty", 0.01, 100, []float64{0, 1},
		func(p *Params) any { return &p.RepetitionPenalty }},
	{"min_tokens", 0, Unbounded, []float64{0}, func(p *Params) any { return &p.MinTokens }},
}

// NumberNamed is the one with a name, which must be one of them.
func NumberNamed(name string) Number {
	return Numbers[slices.IndexFunc(Numbers, func(n Number) bool { return n.Name == name })]
}

func (n Number) value(p *Params) float64 {
	if v, ok := n.Field(p).(*int); ok {
		return float64(*v)
	}
	return float64(*n.Field(p).(*float32))
}

func (n Number) check(p *Params) error {
	low, high, v := float64(float32(n.Low)), float64(float32(n.High)), n.value(p)
	if v >= low && v <= high || slices.Contains(n.Neutral, v) {
		return nil
	}
	return &ParamError{n.Name, fmt.Sprintf("must be between %v and %v, got %v", n.Low, n.High, v)}
}

// NonDefaults are the numbers that change something, by their names.
func (p Params) NonDefaults() map[string]any {
	values := map[string]any{}
	for _, n := range Numbers {
		if v := n.value(&p); slices.Contains(n.Neutral, v) {
			continue
		}
		switch to := n.Field(&p).(type) {
		case *int:
			values[n.Name] = *to
		case *float32:
			values[n.Name] = *to
		}
	}
	return values
}

// ParamError is a value out of range. Param is the name that OpenAI and vLLM use.
type ParamError struct{ Param, Msg string }

func (e *ParamError) Error() string { return e.Param + ": " + e.Msg }

// Check returns a *ParamError for the first value that sampling over vocab tokens cannot use.
func (p Params) Check(vocab int) error {
	for _, n := range Numbers {
		if err := n.check(&p); err != nil {
			return err
		}
	}
	if p.Logprobs < -1 || p.Logprobs > MaxTopLogprobs {
		return &ParamError{"top_logprobs", fmt.Sprintf("must be between 0 and %d, got %d",
			MaxTopLogprobs, p.Logprobs)}
	}
	for id, b := range p.LogitBias {
		if id < 0 || int(id) >= vocab {
			return &ParamError{"logit_bias", fmt.Sprintf("token %d is not in the vocabulary of %d",
				id, vocab)}
		}
		if !(b >= -biasLimit && b <= biasLimit) {
			return &ParamError{"logit_bias", fmt.Sprintf("token %d: must be between -100 and "+
				"100, got %v", id, b)}
		}
	}
	return nil
}
