// Package chat is POST /v1/chat/completions: from events to an answer, complete or in chunks.
//
// What must stay true: the finish reason is tool_calls exactly if there is a call (some agents
// repeat the request without end otherwise); an incomplete call is left out of an answer that is
// not streamed.
package chat

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ossrun/ossrun/runtime/openai/answer"
	"github.com/ossrun/ossrun/runtime/openai/answer/tools"
	"github.com/ossrun/ossrun/runtime/openai/fields"
	"github.com/ossrun/ossrun/runtime/session"
)

type form struct {
	answer.Chunks
	api         API
	req         *chatRequest
	clientNames map[string]tools.ClientName
	choices     []*state
}

type state struct {
	index      int
	reasoning  strings.Builder
	content    strings.Builder
	commentary bool // the content so far is a preamble
	logprobs   []answer.TokenLogprob
	calls      []chatCall
	closed     []bool // calls whose arguments are complete
	sent       []int  // streamed bytes of each call's arguments
}

// API has the route /v1/chat/completions.
type API struct {
	*answer.Driver
	tools *tools.Pool
	store Storer
}

// Storer stores a completion of a client with its messages.
type Storer func(client string, c answer.Completion, messages json.RawMessage) error

// New makes the dialect; tools are the built-in ones.
func New(d *answer.Driver, tools *tools.Pool, store Storer) API { return API{d, tools, store} }

func (p API) Read(o *fields.Object) (*answer.Request, answer.Form) {
	req := Parse(o, p.MaxReasoning)
	var wanted []tools.Requested
	if wanted, req.Ignored = p.tools.ReadRequested(o, &req.offer, false); len(wanted) > 0 {
		req.Start = p.tools.StartHidden(wanted, req.offer.Hosted)
	}
	return &req.Request, &form{api: p, req: req, clientNames: req.offer.ClientNames()}
}

func (c *form) Open(a *answer.Answer) {
	c.Chunks = answer.Chunks{Answer: a, ID: answer.NewID("chatcmpl-"),
		Object: "chat.completion.chunk", Usage: c.req.Usage}
	if ids := c.promptTokens(); ids != nil {
		first := c.Completion([]any{}, c.NoUsage())
		first.PromptTokenIDs = ids
		c.Emit("", first)
	}
	for i := range a.Dones {
		ch := &state{index: i}
		c.choices = append(c.choices, ch)
		c.piece(ch, chatPiece{Role: "assistant", Content: new(string)}, nil)
	}
}

// promptTokens returns the prompt's ids, nil if the client has not requested them.
func (c *form) promptTokens() []int32 {
	if !c.req.ShowIDs {
		return nil
	}
	return c.Turns[0].Result().Prompt
}

func (c *form) Take(choice int, e session.Event) {
	ch := c.choices[choice]
	switch e := e.(type) {
	case session.Prefill:
		c.SendProgress(chatDelta{Index: ch.index}, e)
	case session.Reasoning:
		if c.req.reasoning {
			ch.reasoning.WriteString(e.Text)
			c.piece(ch, chatPiece{chatThought: c.reasoning(e.Text)}, nil)
		}
	case session.Commentary:
		ch.commentary = true
		ch.content.WriteString(e.Text)
		c.piece(ch, chatPiece{Content: &e.Text}, nil)
	case session.Answer:
		c.addAnswer(ch, e)
	case session.CallStart:
		name, n := c.clientNames[e.Name], len(ch.calls)
		call := callOf(name.Custom, cmp.Or(name.Name, e.Name), "")
		if call.ID, call.Type = e.ID, "function"; name.Custom {
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
		call, arguments := ch.calls[e.Index], e.Arguments
		if call.Function != nil {
			arguments = tools.RunnableArguments(arguments)
		}
		if sent := ch.sent[e.Index]; sent < len(arguments) {
			c.arguments(ch, e.Index, arguments[sent:])
		}
		ch.closed[e.Index] = true
		if call.Function != nil {
			call.Function.Arguments = arguments
		} else {
			call.Custom.Input = arguments
		}
	case session.Done:
		if c.FailureOf(e) == nil {
			c.Send(chatDelta{Index: ch.index, FinishReason: new(c.reason(ch)),
				TokenIDs: c.Tokens(ch.index), OwnPart: answer.OwnPartOf(c.Dones[ch.index])})
		}
	}
}

func (c *form) reasoning(text string) chatThought {
	if c.api.ReasoningContent || c.req.otherName {
		return chatThought{OtherName: text}
	}
	return chatThought{Reasoning: text}
}

func (c *form) addAnswer(ch *state, e session.Answer) {
	text := e.Text
	if ch.commentary { // a preamble and the answer share one field
		text, ch.commentary = "\n\n"+text, false
	}
	ch.content.WriteString(text)
	logprobs := answer.WireLogprobs(e.Logprobs)
	ch.logprobs = append(ch.logprobs, logprobs...)
	var wire *chatLogprobs
	if len(logprobs) > 0 && c.req.logprobs {
		wire = &chatLogprobs{Content: logprobs}
	}
	c.piece(ch, chatPiece{Content: &text}, wire)
}

func (c *form) arguments(ch *state, index int, text string) {
	ch.sent[index] += len(text)
	piece := callOf(ch.calls[index].Custom != nil, "", text)
	piece.Index = &index
	c.callPiece(ch, piece)
}

func (c *form) callPiece(ch *state, call chatCall) {
	switch {
	case !c.req.functions:
		c.piece(ch, chatPiece{chatCalls: chatCalls{ToolCalls: []chatCall{call}}}, nil)
	case *call.Index == 0: // the deprecated form has no place for a second call
		c.piece(ch, chatPiece{chatCalls: chatCalls{FunctionCall: call.Function}}, nil)
	}
}

func (c *form) piece(ch *state, piece chatPiece, logprobs *chatLogprobs) {
	c.Send(chatDelta{Index: ch.index, Delta: piece, Logprobs: logprobs})
}

func (c *form) Beat() { c.BeatWith(func(choice int) any { return chatDelta{Index: choice} }) }

func (c *form) reason(ch *state) string {
	switch {
	case c.Dones[ch.index].Cut():
		return "length"
	case slices.Contains(ch.closed, true) && c.req.functions:
		return "function_call"
	case slices.Contains(ch.closed, true):
		return "tool_calls"
	}
	return "stop"
}

// End stores the completion of a stream before its end, so that the client then finds it.
func (c *form) End(usage session.Usage, f *fields.Fault) {
	if f == nil && c.req.store && !slices.Contains(c.Dones, nil) {
		c.Body(usage)
	}
	c.Chunks.End(usage, f)
}

func (c *form) Body(usage session.Usage) any {
	var list []chatChoice
	for _, ch := range c.choices {
		m := chatReply{Role: "assistant", chatThought: c.reasoning(ch.reasoning.String()),
			Annotations: []struct{}{}}
		for i, call := range ch.calls {
			if ch.closed[i] { // an incomplete call cannot be run
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
			TokenIDs: c.Tokens(ch.index), OwnPart: answer.OwnPartOf(c.Dones[ch.index])}
		if c.req.logprobs {
			choice.Logprobs = &chatLogprobs{Content: *answer.OrEmpty(ch.logprobs)}
		}
		list = append(list, choice)
	}
	all := c.Completion(list, c.WireUsage(usage))
	all.Object, all.Metadata = "chat.completion", c.req.metadata
	all.PromptTokenIDs = c.promptTokens()
	if c.req.store {
		if err := c.api.store(c.Exchange.Client, all, c.req.messages); err != nil {
			c.Driver.Log.Error("a completion is not stored", "id", c.ID, "error", err)
			c.Ignore([]string{"store"})
		}
	}
	return all
}
