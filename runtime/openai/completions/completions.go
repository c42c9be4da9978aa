// Package completions is POST /v1/completions: a prompt that is continued as text.
//
// It is for tools that write Harmony themselves and for measuring: nothing is rendered, masked or
// parsed, unless a form is requested. What must stay true: choice i*n+k is the k-th of prompt i;
// the text never holds a special token's name, except if echo repeats the client's own text.
package completions

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/session"
)

type textChoice struct {
	Index        int           `json:"index"`
	Text         string        `json:"text"`
	Logprobs     *textLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
	// vLLM's, if the client asks for ids. In a stream the first chunk has the prompt's, and each
	// has those of its piece.
	PromptTokenIDs []int32 `json:"prompt_token_ids,omitempty"`
	TokenIDs       []int32 `json:"token_ids,omitempty"`
	// vLLM's: of each token of the prompt, by id; the first has none
	PromptLogprobs []map[string]promptLogprob `json:"prompt_logprobs,omitempty"`
}

// textLogprobs are lists of one length: an entry a token.
type textLogprobs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []*float32           `json:"token_logprobs"`
	TopLogprobs   []map[string]float32 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"` // in characters of the choice's text
}

func (l *textLogprobs) add(next textLogprobs) {
	l.Tokens = append(l.Tokens, next.Tokens...)
	l.TokenLogprobs = append(l.TokenLogprobs, next.TokenLogprobs...)
	l.TopLogprobs = append(l.TopLogprobs, next.TopLogprobs...)
	l.TextOffset = append(l.TextOffset, next.TextOffset...)
}

type promptLogprob struct {
	Logprob float32 `json:"logprob"`
	Rank    int     `json:"rank,omitempty"` // 1 is the most probable; 0: below the listed ones
	Token   string  `json:"decoded_token"`
}

func wirePromptLogprobs(ids []int32, list []session.TokenLogprob) []map[string]promptLogprob {
	out := make([]map[string]promptLogprob, len(list))
	for i, l := range list {
		if i == 0 {
			continue
		}
		out[i] = map[string]promptLogprob{
			strconv.Itoa(int(ids[i])): {Logprob: answer.Finite(l.Logprob), Token: l.Token}}
		for rank, t := range l.Top {
			out[i][strconv.Itoa(int(t.ID))] = promptLogprob{answer.Finite(t.Logprob), rank + 1,
				t.Token}
		}
	}
	return out
}

type form struct {
	answer.Chunks
	req     *completionRequest
	choices []*state
}

type state struct {
	text     strings.Builder
	chars    int
	logprobs textLogprobs
	prompt   []map[string]promptLogprob
	first    bool // the next logprobs begin with the prompt's first token
	ids      int  // number of ids sent

	logprobSum float64 // sum of the sampled tokens' logprobs
	sampled    int
}

// score is the criterion of best_of: the logprob per token.
func (s *state) score() float64 {
	if s.sampled == 0 {
		return math.Inf(-1) // no token was sampled
	}
	return s.logprobSum / float64(s.sampled)
}

func (c *form) Open(a *answer.Answer) {
	c.Chunks = answer.Chunks{Answer: a, ID: answer.NewID("cmpl-"), Object: "text_completion",
		Usage: c.req.Usage}
	for i := range a.Dones {
		c.choices = append(c.choices, &state{})
		if c.req.echo && !c.req.Turns[i].ScorePrompt {
			c.piece(i, c.req.prompts[i/c.req.N].echoText(), nil, nil)
		}
	}
}

func (c *form) Take(choice int, e session.Event) {
	switch e := e.(type) {
	case session.PromptScored:
		if c.req.echo {
			c.choices[choice].first = true
			c.piece(choice, c.req.prompts[choice/c.req.N].echoText(), e.Logprobs, nil)
		}
		if c.req.promptTop >= 0 {
			c.choices[choice].prompt = wirePromptLogprobs(c.req.Turns[choice].Prompt, e.Logprobs)
		}
	case session.Answer:
		for _, l := range e.Logprobs {
			c.choices[choice].logprobSum += float64(answer.Finite(l.Logprob))
			c.choices[choice].sampled++
		}
		c.piece(choice, e.Text, e.Logprobs, e.Tokens)
	case session.Done:
		if c.FailureOf(e) == nil {
			last := textChoice{Index: choice, FinishReason: c.reason(choice)}
			if all := c.Tokens(choice); len(all) > c.choices[choice].ids {
				c.showTokens(&last, all[c.choices[choice].ids:])
			}
			c.Send(last)
		}
	}
}

// piece adds text to a choice. ids are its tokens, empty for the prompt's.
func (c *form) piece(choice int, text string, logprobs []session.TokenLogprob, ids []int32) {
	ch := c.choices[choice]
	var lists textLogprobs
	offset := ch.chars
	for i, l := range logprobs {
		var logprob *float32 // the prompt's first token has none
		var top map[string]float32
		if i > 0 || !ch.first {
			logprob, top = new(float32), make(map[string]float32, len(l.Top)+1)
			*logprob = answer.Finite(l.Logprob)
			for _, t := range l.Top[:min(len(l.Top), c.req.Turns[choice].Params.Logprobs)] {
				top[c.name(t)] = answer.Finite(t.Logprob)
			}
			top[c.name(l)] = *logprob
		}
		lists.add(textLogprobs{[]string{c.name(l)}, []*float32{logprob}, []map[string]float32{top},
			[]int{offset}})
		offset += utf8.RuneCount(l.Bytes)
	}
	ch.first = false
	ch.text.WriteString(text)
	ch.chars += utf8.RuneCountInString(text)
	ch.logprobs.add(lists)
	piece := textChoice{Index: choice, Text: text}
	if c.req.logprobs && len(logprobs) > 0 {
		piece.Logprobs = &lists
	}
	c.showTokens(&piece, ids)
	c.Send(piece)
}

func (c *form) name(l session.TokenLogprob) string {
	if c.req.idNames {
		return "token_id:" + strconv.Itoa(int(l.ID))
	}
	return l.Token
}

// showTokens adds ids to a choice if the client has requested them, and the prompt's ids before the
// first ones.
func (c *form) showTokens(choice *textChoice, ids []int32) {
	if !c.req.ShowIDs || len(ids) == 0 {
		return
	}
	sent := &c.choices[choice.Index].ids
	if *sent == 0 {
		choice.PromptTokenIDs = c.req.Turns[choice.Index].Prompt
	}
	*sent += len(ids)
	choice.TokenIDs = ids
}

func (c *form) Beat() { c.BeatWith(func(choice int) any { return textChoice{Index: choice} }) }

func (c *form) reason(choice int) *string {
	reason := "stop"
	if c.Dones[choice].Finish == session.FinishLength {
		reason = "length"
	}
	return &reason
}

func (c *form) Body(usage session.Usage) any {
	var list []textChoice
	for _, i := range c.best() {
		ch := c.choices[i]
		choice := textChoice{Index: len(list), Text: ch.text.String(), FinishReason: c.reason(i)}
		if c.req.logprobs {
			choice.Logprobs = &ch.logprobs
		}
		choice.PromptLogprobs = ch.prompt
		if c.req.ShowIDs {
			choice.PromptTokenIDs, choice.TokenIDs = c.req.Turns[i].Prompt, c.Tokens(i)
		}
		list = append(list, choice)
	}
	return c.Completion(list, answer.WireUsage(usage))
}

// best selects the choices of the answer: for each prompt as many as the client wants, sorted by
// score if more were generated.
func (c *form) best() (list []int) {
	for first := 0; first < len(c.choices); first += c.req.N {
		order := make([]int, c.req.N)
		for i := range order {
			order[i] = first + i
		}
		if c.req.sentChoices < c.req.N {
			slices.SortStableFunc(order, func(a, b int) int {
				return cmp.Compare(c.choices[b].score(), c.choices[a].score())
			})
		}
		list = append(list, order[:c.req.sentChoices]...)
	}
	return list
}
