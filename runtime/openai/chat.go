// POST /v1/chat/completions: from events to an answer, whole or in chunks.
//
// What must stay true: a stream ends in data: [DONE] whatever happens; the finish reason is tool_calls exactly if
// there is a call (some agents repeat the request without end otherwise); a chunk's id never changes.

package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ossrun/ossrun/runtime/session"
)

func (p *port) chat(w http.ResponseWriter, r *http.Request) {
	body, f := readBody(w, r)
	if f != nil {
		writeFault(w, f)
		return
	}
	req, f := parseChat(body)
	if f != nil {
		writeFault(w, f)
		return
	}
	p.boundReasoning(body, &req.turn)
	runner, err := p.models.Get(r.Context(), req.model)
	if err != nil {
		writeFault(w, unavailable(err))
		return
	}
	noteIgnored(w, req.ignoredTools)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	turns, err := startTurns(ctx, cancel, runner, choices(req.turn, req.n))
	if err != nil {
		writeFault(w, faultOf(err, "messages"))
		return
	}
	noteRelaxed(w, append(req.format.relaxed, turns[0].Result().Relaxed...))
	c := &chatAnswer{req: req, turnsAnswer: turnsAnswer{port: p, runner: runner, w: w, ctx: r.Context(), cancel: cancel, history: "messages",
		id: newID("chatcmpl-"), created: time.Now().Unix(), model: echo(req.model, runner)}}
	for i := range turns {
		ch := &choice{index: i}
		c.choices, c.ends = append(c.choices, ch), append(c.ends, &ch.ending)
	}
	if req.stream {
		c.streamed(turns)
		return
	}
	c.whole(turns)
}

// choices are n requests that differ in their seed.
func choices(r session.Request, n int) []session.Request {
	list := make([]session.Request, n)
	for i := range list {
		list[i] = r
		list[i].Params.Seed += uint64(i)
	}
	return list
}

// chatAnswer is one request's answer in the making.
type chatAnswer struct {
	turnsAnswer
	req     *chatRequest
	choices []*choice
}

// choice gathers one turn.
type choice struct {
	index      int
	reasoning  strings.Builder
	content    strings.Builder
	commentary bool // the content so far is a preamble
	logprobs   []tokenLogprob
	calls      []chatCall
	closed     []bool // calls whose arguments are complete
	sent       []int  // bytes of each call's arguments that have been streamed
	ending
}

func (c *chatAnswer) whole(turns []session.Turn) {
	patient := patientWriter{w: c.w}
	follow := follower{turns: turns, cancel: c.cancel, silence: c.port.silence, batch: c.take, quiet: patient.quiet, whole: true}
	err := follow.run()
	usage := c.finish(sharedPrompt)
	if err != nil {
		noteError(c.w, "cancelled, the client is gone: "+err.Error())
		return
	}
	if f := c.fault(); f != nil {
		writeFault(c.w, f)
		return
	}
	answer := chatCompletion{ID: c.id, Object: "chat.completion", Created: c.created, Model: c.model, Usage: wireUsage(usage)}
	for _, ch := range c.choices {
		answer.Choices = append(answer.Choices, ch.whole(c.req))
	}
	writeJSON(c.w, http.StatusOK, answer)
}

func (ch *choice) whole(req *chatRequest) chatChoice {
	m := chatReply{Role: "assistant", Annotations: []struct{}{}}
	if req.reasoning {
		m.Reasoning = ch.reasoning.String()
	}
	for i, call := range ch.calls {
		if ch.closed[i] { // one that was cut off has no arguments that could be run
			m.ToolCalls = append(m.ToolCalls, call)
		}
	}
	if ch.content.Len() > 0 || len(m.ToolCalls) == 0 {
		text := ch.content.String()
		m.Content = &text
	}
	return chatChoice{Index: ch.index, Message: m, Logprobs: wantedLogprobs(req, ch.logprobs), FinishReason: ch.reason()}
}

func wantedLogprobs(req *chatRequest, list []tokenLogprob) *chatLogprobs {
	if req.turn.Params.Logprobs < 0 {
		return nil
	}
	if list == nil {
		list = []tokenLogprob{}
	}
	return &chatLogprobs{Content: list}
}

// reason is the finish reason in OpenAI's words.
func (ch *choice) reason() string {
	switch {
	case ch.done.Finish == session.FinishLength:
		return "length"
	case slices.Contains(ch.closed, true):
		return "tool_calls"
	}
	return "stop"
}

func (c *chatAnswer) streamed(turns []session.Turn) {
	defer c.port.pace.enter()()
	c.out = startEvents(c.w, c.cancel)
	for _, ch := range c.choices {
		c.piece(ch, chatPiece{Role: "assistant", Content: new(string)}, nil)
	}
	_ = c.out.flush() // a client that is gone already: the turns are cancelled, and followed to their end all the same
	follow := follower{turns: turns, cancel: c.cancel, silence: c.port.silence, batch: c.take, quiet: c.quiet, pace: c.port.pace}
	err := follow.run()
	c.end(err, c.finish(sharedPrompt), c.req.usage, func(usage json.RawMessage) any { return c.chunk([]chatDelta{}, usage) })
}

// quiet keeps the connection alive: a comment for proxies, and a chunk without content for clients whose timer only
// data resets.
func (c *chatAnswer) quiet() error {
	c.out.comment("keep-alive")
	for _, ch := range c.choices {
		if ch.done == nil {
			c.piece(ch, chatPiece{}, nil)
			break
		}
	}
	return c.out.flush()
}

func (c *chatAnswer) chunk(choices []chatDelta, usage json.RawMessage) chatChunk {
	if usage == nil && c.req.usage {
		usage = json.RawMessage("null")
	}
	return chatChunk{ID: c.id, Object: "chat.completion.chunk", Created: c.created, Model: c.model, Choices: choices, Usage: usage}
}

func (c *chatAnswer) piece(ch *choice, piece chatPiece, logprobs *chatLogprobs) {
	if c.out != nil {
		c.out.event("", c.chunk([]chatDelta{{Index: ch.index, Delta: piece, Logprobs: logprobs}}, nil))
	}
}

// take applies a batch of events.
func (c *chatAnswer) take(batch []arrival) error {
	for _, a := range batch {
		c.event(c.choices[a.choice], c.req.format.shown(a.event))
	}
	if c.out == nil {
		return nil
	}
	return c.out.flush()
}

func (c *chatAnswer) event(ch *choice, e session.Event) {
	switch e := e.(type) {
	case session.Reasoning:
		if c.req.reasoning {
			ch.reasoning.WriteString(e.Text)
			c.piece(ch, chatPiece{Reasoning: e.Text}, nil)
		}
	case session.Commentary:
		ch.commentary = true
		ch.content.WriteString(e.Text)
		c.piece(ch, chatPiece{Content: &e.Text}, nil)
	case session.Answer:
		text := e.Text
		if ch.commentary { // a preamble and the answer share one field
			text, ch.commentary = "\n\n"+text, false
		}
		ch.content.WriteString(text)
		logprobs := wireLogprobs(e.Logprobs)
		ch.logprobs = append(ch.logprobs, logprobs...)
		var shown *chatLogprobs
		if len(logprobs) > 0 {
			shown = wantedLogprobs(c.req, logprobs)
		}
		c.piece(ch, chatPiece{Content: &text}, shown)
	case session.CallStart:
		ch.calls = append(ch.calls, chatCall{ID: e.ID, Type: "function", Function: chatFunction{Name: e.Name}})
		ch.closed, ch.sent = append(ch.closed, false), append(ch.sent, 0)
		c.piece(ch, chatPiece{ToolCalls: []chatCallPiece{{Index: len(ch.calls) - 1, ID: e.ID, Type: "function",
			Function: chatFunctionPiece{Name: e.Name}}}}, nil)
	case session.CallArguments:
		if e.Index < len(ch.calls) {
			c.arguments(ch, e.Index, e.Text)
		}
	case session.CallEnd:
		if e.Index >= len(ch.calls) {
			return
		}
		whole := runnable(e.Arguments)
		if sent := ch.sent[e.Index]; sent < len(whole) {
			c.arguments(ch, e.Index, whole[sent:])
		}
		ch.calls[e.Index].Function.Arguments, ch.closed[e.Index] = whole, true
	case session.Done:
		ch.done = &e
		if c.out != nil && failure(c.ctx, &e, c.history) == nil {
			reason := ch.reason()
			c.out.event("", c.chunk([]chatDelta{{Index: ch.index, FinishReason: &reason}}, nil))
		}
	}
}

func (c *chatAnswer) arguments(ch *choice, index int, text string) {
	ch.sent[index] += len(text)
	ch.calls[index].Function.Arguments += text
	c.piece(ch, chatPiece{ToolCalls: []chatCallPiece{{Index: index, Function: chatFunctionPiece{Arguments: text}}}}, nil)
}

// runnable is the arguments of a call of a function without parameters: clients parse them as JSON.
func runnable(arguments string) string {
	if strings.TrimSpace(arguments) == "" {
		return "{}"
	}
	return arguments
}
