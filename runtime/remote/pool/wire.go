// Requests to /v1/completions with vLLM's parameters, and their answers.

package pool

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ossrun/ossrun/harmony/token"
	"github.com/ossrun/ossrun/runtime/engine"
	"github.com/ossrun/ossrun/runtime/remote/client"
)

func (s *stream) body(from *server) map[string]any {
	p, generated := s.r.Params, s.generated()
	b := map[string]any{
		"model": from.model, "prompt": s.ids, "max_tokens": s.maxLen - len(s.ids),
		"stream": true, "stream_options": map[string]bool{"include_usage": true},
		"top_p": p.TopP,
		// random numbers must not repeat after further tokens
		"seed":                int64(p.Seed+uint64(generated)) & (1<<53 - 1),
		"skip_special_tokens": false, "return_token_ids": true,
	}
	optional := func(name string, value any, set bool) {
		if set {
			b[name] = value
		}
	}
	maps.Copy(b, p.NonDefaults())
	delete(b, "min_tokens") // some are generated already
	optional("cache_salt", s.r.Salt, s.r.Salt != "")
	optional("ignore_eos", true, p.IgnoreEOS)
	optional("min_tokens", p.MinTokens-generated, p.MinTokens > generated)
	optional("structured_outputs", map[string]string{"grammar": s.rules}, s.rules != "")
	var stops []int32
	for _, id := range s.r.Stop {
		if (!p.IgnoreEOS || !isEnd(id)) && (s.rules == "" || id == s.ender) {
			stops = append(stops, id)
		}
	}
	optional("stop_token_ids", stops, len(stops) > 0)
	if from.idsInLogprobs || p.Logprobs >= 0 {
		b["logprobs"], b["return_tokens_as_token_ids"] = max(p.Logprobs, 0), true
	}
	bias := map[string]float32{}
	for id, value := range p.LogitBias {
		bias[strconv.Itoa(int(id))] = value
	}
	for id := token.StartOfText; s.rules != "" && id <= token.Call; id++ {
		if id != s.ender { // some servers read its name as text
			bias[strconv.Itoa(int(id))] = -100
		}
	}
	if s.isSingle() {
		b["max_tokens"] = 1
		delete(b, "min_tokens") // the grammar may allow only an end
	}
	if s.only != nil {
		b["allowed_token_ids"] = s.only
	} else {
		for _, id := range s.banned {
			bias[strconv.Itoa(int(id))] = -100
		}
	}
	optional("logit_bias", bias, len(bias) > 0)
	return b
}

// scorePrompt asks a server for the prompt's logprobs, once; vLLM does not stream them.
func (s *stream) scorePrompt() error {
	s.r.ScorePrompt = false
	top := max(s.r.PromptTop, 0)
	var answer struct {
		Choices []struct {
			Prompt []map[string]struct {
				Logprob float32
				Rank    *int
			} `json:"prompt_logprobs"`
		}
	}
	err := s.onAnyServer(func(from *server) error {
		b := map[string]any{"model": from.model, "prompt": s.r.Prompt, "max_tokens": 1,
			"temperature": 0, "prompt_logprobs": top}
		if s.r.Salt != "" {
			b["cache_salt"] = s.r.Salt
		}
		return from.client.Call(s.ctx, "POST", "/v1/completions", b, &answer)
	})
	if err != nil {
		return err
	}
	if len(answer.Choices) != 1 || len(answer.Choices[0].Prompt) != len(s.r.Prompt) {
		return errors.New("the upstream server gives no prompt_logprobs")
	}
	list := make([]engine.SampledToken, len(s.r.Prompt))
	for i, given := range answer.Choices[0].Prompt {
		list[i].ID = s.r.Prompt[i]
		if i == 0 {
			continue // it has no context
		}
		list[i].Logprob = given[strconv.Itoa(int(list[i].ID))].Logprob
		rivals := make([]engine.TokenLogprob, 0, len(given))
		for name, l := range given {
			id, err := strconv.Atoi(name)
			if err != nil || id < 0 || id >= token.VocabSize {
				return fmt.Errorf("%q stands among prompt_logprobs and is no token", name)
			}
			if l.Rank == nil || *l.Rank <= top {
				rivals = append(rivals, engine.TokenLogprob{ID: int32(id), Logprob: l.Logprob})
			}
		}
		list[i].Top = mostProbable(rivals, top)
	}
	s.mu.Lock()
	s.prompt = list
	s.mu.Unlock()
	return nil
}

type chunk struct {
	Choices []choice
	Usage   client.Usage
}

type choice struct {
	TokenIDs     []int32 `json:"token_ids"`
	FinishReason string  `json:"finish_reason"`
	StopReason   any     `json:"stop_reason"` // a token's id, a text or null
	Logprobs     *struct {
		Tokens   []string
		Logprobs []*float32            `json:"token_logprobs"`
		Top      []map[string]*float32 `json:"top_logprobs"`
	}
}

// stoppedAt returns the stop token that ended the choice.
func (c *choice) stoppedAt() (int32, bool) {
	n, ok := c.StopReason.(float64)
	return int32(n), ok && n >= 0 && n < token.VocabSize
}

func (c *choice) tokens(asLogs bool, logprobs int) ([]engine.SampledToken, error) {
	ids := c.TokenIDs
	if asLogs {
		var err error
		if ids, err = c.idsFromNames(); err != nil {
			return nil, err
		}
	}
	list := make([]engine.SampledToken, len(ids))
	for i, id := range ids {
		list[i].ID = id
		l := c.Logprobs
		if logprobs < 0 || l == nil || i >= len(l.Logprobs) || l.Logprobs[i] == nil {
			continue
		}
		list[i].Logprob = *l.Logprobs[i]
		if i >= len(l.Top) {
			continue
		}
		var rivals []engine.TokenLogprob
		for name, value := range l.Top[i] {
			id, err := tokenOfName(name)
			if err != nil {
				return nil, err
			}
			if value != nil {
				rivals = append(rivals, engine.TokenLogprob{ID: id, Logprob: *value})
			}
		}
		list[i].Top = mostProbable(rivals, logprobs)
	}
	return list, nil
}

// idsFromNames reads ids from the names of logprobs: token_id:123.
func (c *choice) idsFromNames() (ids []int32, err error) {
	if c.Logprobs == nil {
		return nil, nil
	}
	for _, name := range c.Logprobs.Tokens {
		id, err := tokenOfName(name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func tokenOfName(name string) (int32, error) {
	digits, ok := strings.CutPrefix(name, "token_id:")
	id, err := strconv.Atoi(digits)
	if !ok || err != nil || id < 0 || id >= token.VocabSize {
		return 0, fmt.Errorf("%q stands among logprobs and is no token_id", name)
	}
	return int32(id), nil
}

// mostProbable returns the n most probable, lower ids first among equals.
func mostProbable(list []engine.TokenLogprob, n int) []engine.TokenLogprob {
	slices.SortFunc(list, func(a, b engine.TokenLogprob) int {
		return cmp.Or(cmp.Compare(b.Logprob, a.Logprob), cmp.Compare(a.ID, b.ID))
	})
	return list[:min(n, len(list))]
}
