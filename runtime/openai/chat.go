// POST /v1/chat/completions: from events to an answer, whole or in chunks.
//
// What must stay true: the finish reason is tool_calls exactly if there is a call (some agents
// repeat the request without end otherwise); a call that was cut off is left out of a whole answer.

package openai

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/runtime/session"
)

type chatForm struct {
	chunks
	req     *chatRequest
	choices []*chatState
}

// chatState gathers one choice.
type chatState struct {
	index      int
	reasoning  strings.Builder
	content    strings.Builder
	commentary bool // the content so far is a preamble
	logprobs   []tokenLogprob
	calls      []chatCall
	closed     []bool // calls whose arguments are complete
	sent       []int  // bytes of each call's arguments that have been streamed
}

// chatAPI has the route /v1/chat/completions.
type chatAPI struct {
	*driver
	tools *keptTools
}

func newChatAPI(d *driver, tools *keptTools) chatAPI { return chatAPI{d, tools} }

func (p chatAPI) read(o *object) (*request, form) {
	req := parseChat(o, p.MaxReasoning)
	var wanted []wantedTool
	if wanted, req.ignored = p.tools.wanted(o, req.offer, false); len(wanted) > 0 {
		req.start = p.tools.startQuietly(wanted, req.offer.hosted)
	}
	return &req.request, &chatForm{req: req}
}

func (c *chatForm) open(a *answer) {
	c.chunks = chunks{answer: a, id: newID("chatcmpl-"), object: "chat.completion.chunk",
		usage: c.req.usage}
	if ids := c.promptTokens(); ids != nil {
		first := c.completion([]any{}, c.noUsage())
		first.PromptTokenIDs = ids
		c.emit("", first)
	}
	for i := range a.dones {
		ch := &chatState{index: i}
		c.choices = append(c.choices, ch)
		c.piece(ch, chatPiece{Role: "assistant", Content: new(string)}, nil)
	}
}

// promptTokens are the ids that all choices continue, nil if the client has not asked for them.
func (c *chatForm) promptTokens() []int32 {
	if !c.req.ids {
		return nil
	}
	return c.turns[0].Result().Prompt
}

func (c *chatForm) take(choice int, e session.Event) {
	ch := c.choices[choice]
	switch e := e.(type) {
	case session.Reasoning:
		if c.req.reasoning {
			ch.reasoning.WriteString(e.Text)
			c.piece(ch, chatPiece{chatThought: c.thought(e.Text)}, nil)
		}
	case session.Commentary:
		ch.commentary = true
		ch.content.WriteString(e.Text)
		c.piece(ch, chatPiece{Content: &e.Text}, nil)
	case session.Answer:
		c.answered(ch, e)
	case session.CallStart:
		shown, n := c.req.names[e.Name], len(ch.calls)
		call := callOf(shown.custom, cmp.Or(shown.name, e.Name), "")
		if call.ID, call.Type = e.ID, "function"; shown.custom {
			call.Type = "custom"
		}
		ch.calls = append(ch.calls, call)
		ch.closed, ch.sent = append(ch.closed, false), append(ch.sent, 0)
		call.Index = &n
		c.callPiece(ch, call)
	case session.CallArguments:
		if e.Index < len(ch.calls) {
			c.arguments(ch, e.Index, e.Text)
		}
	case session.CallEnd:
		if e.Index >= len(ch.calls) {
			return
		}
		call, whole := ch.calls[e.Index], e.Arguments
		if call.Function != nil {
			whole = runnable(whole)
		}
		if sent := ch.sent[e.Index]; sent < len(whole) {
			c.arguments(ch, e.Index, whole[sent:])
		}
		ch.closed[e.Index] = true
		if call.Function != nil {
			call.Function.Arguments = whole
		} else {
			call.Custom.Input = whole
		}
	case session.Done:
		if c.failureOf(e) == nil {
			c.send(chatDelta{Index: ch.index, FinishReason: new(c.reason(ch)),
				TokenIDs: c.tokens(ch.index), Own: ownPartOf(c.dones[ch.index])})
		}
	}
}

func (c *chatForm) thought(text string) chatThought {
	if c.driver.ReasoningContent {
		return chatThought{OtherName: text}
	}
	return chatThought{Reasoning: text}
}

func (c *chatForm) answered(ch *chatState, e session.Answer) {
	text := e.Text
	if ch.commentary { // a preamble and the answer share one field
		text, ch.commentary = "\n\n"+text, false
	}
	ch.content.WriteString(text)
	logprobs := wireLogprobs(e.Logprobs)
	ch.logprobs = append(ch.logprobs, logprobs...)
	var shown *chatLogprobs
	if len(logprobs) > 0 && c.req.logprobs {
		shown = &chatLogprobs{Content: logprobs}
	}
	c.piece(ch, chatPiece{Content: &text}, shown)
}

func (c *chatForm) arguments(ch *chatState, index int, text string) {
	ch.sent[index] += len(text)
	piece := callOf(ch.calls[index].Custom != nil, "", text)
	piece.Index = &index
	c.callPiece(ch, piece)
}

func (c *chatForm) callPiece(ch *chatState, call chatCall) {
	switch {
	case !c.req.functions:
		c.piece(ch, chatPiece{chatCalls: chatCalls{ToolCalls: []chatCall{call}}}, nil)
	case *call.Index == 0: // the deprecated form has no place for a second call
		c.piece(ch, chatPiece{chatCalls: chatCalls{FunctionCall: call.Function}}, nil)
	}
}

func (c *chatForm) piece(ch *chatState, piece chatPiece, logprobs *chatLogprobs) {
	c.send(chatDelta{Index: ch.index, Delta: piece, Logprobs: logprobs})
}

func (c *chatForm) beat() { c.beatWith(func(choice int) any { return chatDelta{Index: choice} }) }

func (c *chatForm) reason(ch *chatState) string {
	switch {
	case c.dones[ch.index].Cut():
		return "length"
	case slices.Contains(ch.closed, true) && c.req.functions:
		return "function_call"
	case slices.Contains(ch.closed, true):
		return "tool_calls"
	}
	return "stop"
}

func (c *chatForm) whole(usage session.Usage) any {
	c.object = "chat.completion"
	var list []chatChoice
	for _, ch := range c.choices {
		m := chatReply{Role: "assistant", chatThought: c.thought(ch.reasoning.String()),
			Annotations: []struct{}{}}
		for i, call := range ch.calls {
			if ch.closed[i] { // one that was cut off has no arguments that could be run
				m.ToolCalls = append(m.ToolCalls, call)
			}
		}
		called := len(m.ToolCalls) > 0
		if called && c.req.functions {
			m.FunctionCall, m.ToolCalls = m.ToolCalls[0].Function, nil
		}
		if ch.content.Len() > 0 || !called {
			m.Content = new(ch.content.String())
		}
		choice := chatChoice{Index: ch.index, Message: m, FinishReason: c.reason(ch),
			TokenIDs: c.tokens(ch.index), Own: ownPartOf(c.dones[ch.index])}
		if c.req.logprobs {
			choice.Logprobs = &chatLogprobs{Content: *orEmpty(ch.logprobs)}
		}
		list = append(list, choice)
	}
	all := c.completion(list, c.wireUsage(usage))
	all.PromptTokenIDs = c.promptTokens()
	return all
}
