// POST /v1/completions: a prompt that is continued as text.
//
// It is for tools that write Harmony themselves and for measuring: nothing is rendered, masked or parsed, unless a form is
// asked for. What must stay true: choice i*n+k is the k-th of prompt i; a stream ends in data: [DONE] whatever happens;
// the text never holds a special token's name, but where echo repeats the client's own words.

package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ossrun/ossrun/runtime/session"
)

type textCompletion struct {
	ID      string          `json:"id"`
	Object  string          `json:"object"` // text_completion
	Created int64           `json:"created"`
	Model   string          `json:"model"`
	Choices []textChoice    `json:"choices"`
	Usage   json.RawMessage `json:"usage,omitempty"` // of a stream with include_usage: null in all but the last chunk
}

type textChoice struct {
	Index        int           `json:"index"`
	Text         string        `json:"text"`
	Logprobs     *textLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
}

// textLogprobs are lists of one length: an entry a token.
type textLogprobs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []float32            `json:"token_logprobs"`
	TopLogprobs   []map[string]float32 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"` // in characters of the choice's text
}

func (p *port) completions(w http.ResponseWriter, r *http.Request) {
	body, f := readBody(w, r)
	if f != nil {
		writeFault(w, f)
		return
	}
	req, f := parseCompletion(body)
	if f != nil {
		writeFault(w, f)
		return
	}
	runner, err := p.models.Get(r.Context(), req.model)
	if err != nil {
		writeFault(w, unavailable(err))
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	var turns []session.Turn
	if !req.nothing {
		if turns, err = startTurns(ctx, cancel, runner, req.requests()); err != nil {
			writeFault(w, faultOf(err, "prompt"))
			return
		}
	}
	noteRelaxed(w, req.format.relaxed)
	c := &textAnswer{req: req, turnsAnswer: turnsAnswer{port: p, runner: runner, w: w, ctx: r.Context(), cancel: cancel, history: "prompt",
		id: newID("cmpl-"), created: time.Now().Unix(), model: echo(req.model, runner)}}
	for i := range len(req.prompts) * req.n {
		ch := &textPart{index: i}
		c.choices, c.ends = append(c.choices, ch), append(c.ends, &ch.ending)
	}
	if req.stream {
		c.streamed(turns)
		return
	}
	c.whole(turns)
}

// textAnswer is one request's answer in the making.
type textAnswer struct {
	turnsAnswer
	req     *completionRequest
	choices []*textPart
}

// textPart gathers one turn; chars is how many characters of its text have come.
type textPart struct {
	index    int
	text     strings.Builder
	chars    int
	logprobs textLogprobs
	ending
}

func (c *textAnswer) whole(turns []session.Turn) {
	c.echo()
	follow := follower{turns: turns, cancel: c.cancel, silence: c.port.silence, batch: c.take}
	_ = follow.run() // take does not fail without a stream
	usage := c.finish(c.count)
	if f := c.fault(); f != nil {
		writeFault(c.w, f)
		return
	}
	u, _ := marshal(wireUsage(usage)) // integers only: it cannot fail
	answer := textCompletion{ID: c.id, Object: "text_completion", Created: c.created, Model: c.model, Usage: u}
	for _, ch := range c.choices {
		reason := ch.reason()
		choice := textChoice{Index: ch.index, Text: ch.text.String(), FinishReason: &reason}
		if c.req.logprobs {
			choice.Logprobs = &ch.logprobs
		}
		answer.Choices = append(answer.Choices, choice)
	}
	writeJSON(c.w, http.StatusOK, answer)
}

func (c *textAnswer) streamed(turns []session.Turn) {
	c.out = startEvents(c.w, c.cancel)
	c.echo()
	_ = c.out.flush() // a client that is gone already: the turns are cancelled, and followed to their end all the same
	follow := follower{turns: turns, cancel: c.cancel, silence: c.port.silence, batch: c.take, quiet: c.quiet}
	err := follow.run()
	c.end(err, c.finish(c.count), c.req.usage, func(usage json.RawMessage) any { return c.chunk([]textChoice{}, usage) })
}

// count adds a choice's tokens: each prompt counts once, whatever n is, and nothing of a plain text is reasoning.
func (c *textAnswer) count(all, u session.Usage, choice int) session.Usage {
	all.Completion += u.Completion
	if choice%c.req.n == 0 {
		all.Prompt += u.Prompt
		all.Cached += u.Cached
	}
	return all
}

// echo begins every choice with its prompt, where the client asks for that; a request for no tokens ends with it.
func (c *textAnswer) echo() {
	for _, ch := range c.choices {
		if c.req.echo {
			c.piece(ch, c.req.prompts[ch.index/c.req.n].shown(), nil)
		}
		if c.req.nothing {
			ids := c.req.prompts[ch.index/c.req.n].ids
			c.event(ch, session.Done{Finish: session.FinishLength, Usage: session.Usage{Prompt: len(ids)}})
		}
	}
}

// quiet keeps the connection alive as in chat: a comment, and a piece without text.
func (c *textAnswer) quiet() error {
	c.out.comment("keep-alive")
	for _, ch := range c.choices {
		if ch.done == nil {
			c.out.event("", c.chunk([]textChoice{{Index: ch.index}}, nil))
			break
		}
	}
	return c.out.flush()
}

func (c *textAnswer) take(batch []arrival) error {
	for _, a := range batch {
		c.event(c.choices[a.choice], a.event)
	}
	if c.out == nil {
		return nil
	}
	return c.out.flush()
}

func (c *textAnswer) event(ch *textPart, e session.Event) {
	switch e := e.(type) {
	case session.Answer:
		c.piece(ch, e.Text, e.Logprobs)
	case session.Done:
		ch.done = &e
		if c.out != nil && failure(c.ctx, &e, c.history) == nil {
			reason := ch.reason()
			c.out.event("", c.chunk([]textChoice{{Index: ch.index, FinishReason: &reason}}, nil))
		}
	}
}

// piece adds text to a choice.
func (c *textAnswer) piece(ch *textPart, text string, logprobs []session.TokenLogprob) {
	var more textLogprobs
	at := ch.chars
	for _, l := range logprobs {
		top := make(map[string]float32, len(l.Top)+1)
		for _, t := range l.Top {
			top[t.Token] = finite(t.Logprob)
		}
		top[l.Token] = finite(l.Logprob)
		more.Tokens = append(more.Tokens, l.Token)
		more.TokenLogprobs = append(more.TokenLogprobs, finite(l.Logprob))
		more.TopLogprobs = append(more.TopLogprobs, top)
		more.TextOffset = append(more.TextOffset, at)
		at += utf8.RuneCount(l.Bytes)
	}
	ch.text.WriteString(text)
	ch.chars += utf8.RuneCountInString(text)
	ch.logprobs.Tokens = append(ch.logprobs.Tokens, more.Tokens...)
	ch.logprobs.TokenLogprobs = append(ch.logprobs.TokenLogprobs, more.TokenLogprobs...)
	ch.logprobs.TopLogprobs = append(ch.logprobs.TopLogprobs, more.TopLogprobs...)
	ch.logprobs.TextOffset = append(ch.logprobs.TextOffset, more.TextOffset...)
	if c.out == nil {
		return
	}
	choice := textChoice{Index: ch.index, Text: text}
	if c.req.logprobs && len(logprobs) > 0 {
		choice.Logprobs = &more
	}
	c.out.event("", c.chunk([]textChoice{choice}, nil))
}

func (c *textAnswer) chunk(choices []textChoice, usage json.RawMessage) textCompletion {
	if usage == nil && c.req.usage {
		usage = json.RawMessage("null")
	}
	return textCompletion{ID: c.id, Object: "text_completion", Created: c.created, Model: c.model, Choices: choices, Usage: usage}
}

func (ch *textPart) reason() string {
	if ch.done.Finish == session.FinishLength {
		return "length"
	}
	return "stop"
}
