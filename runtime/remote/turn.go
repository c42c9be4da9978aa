// A turn as a port streams it: from chunks to events.

package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/ossrun/ossrun/harmony"
	"github.com/ossrun/ossrun/runtime/remote/client"
	"github.com/ossrun/ossrun/runtime/session"
)

// maxCalls bounds the calls of one turn that a port may send.
const maxCalls = 128

type turn struct {
	ctx    context.Context
	port   *Port
	stream *client.Stream
	began  time.Time
	first  time.Time // when the first and the latest token arrived
	latest time.Time

	ready      []session.Event // to be returned by Next
	calls      []*openCall
	finish     string
	usage      session.Usage
	usageKnown bool // usage is the port's
	form       *jsonschema.Resolved
	result     session.Result
	done       bool
}

type openCall struct {
	session.Call
	text    strings.Builder
	started bool
}

// Next blocks for the next event; it returns false after Done was delivered.
func (t *turn) Next() (session.Event, bool) {
	for {
		if len(t.ready) > 0 {
			e := t.ready[0]
			t.ready = t.ready[1:]
			return e, true
		}
		if t.done {
			return nil, false
		}
		var c client.Chunk
		if err := t.stream.Into(&c); err != nil {
			t.end(err)
			continue
		}
		t.addChunk(c)
	}
}

func (t *turn) addChunk(c client.Chunk) {
	if p := c.Progress; p != nil {
		t.ready = append(t.ready, session.Prefill{Done: p.Processed, Total: p.Total,
			Cached: p.Cache, Took: time.Duration(p.Time) * time.Millisecond})
		return
	}
	if u := c.Usage; u != nil && u.Completion > 0 {
		t.usageKnown = true
		t.usage = session.Usage{Prompt: u.Prompt, Completion: u.Completion,
			Cached: u.OfPrompt.Cached, Reasoning: u.OfCompletion.Reasoning}
	}
	if len(c.Choices) == 0 {
		return
	}
	d := c.Choices[0].Delta
	if c.Choices[0].Finish != "" {
		t.finish = c.Choices[0].Finish
	}
	n := len(t.ready)
	field, thought := "reasoning", d.Reasoning
	if thought == "" && d.ReasoningContent != "" {
		field, thought = "reasoning_content", d.ReasoningContent
	}
	if thought != "" {
		t.port.reasoning.Store(field)
		t.result.Reasoning += thought
		t.ready = append(t.ready, session.Reasoning{Text: thought})
	}
	if text := d.Content + d.Refusal; text != "" {
		t.result.Answer += text
		t.ready = append(t.ready, session.Answer{Text: text})
	}
	for i, p := range d.Calls {
		t.addCallPiece(i, p)
	}
	if len(t.ready) > n {
		t.latest = time.Now()
		if t.first.IsZero() {
			t.first = t.latest
		}
		if !t.usageKnown {
			t.usage.Completion++
		}
	}
}

// addCallPiece adds to a call. Some ports index calls, others send each call complete.
func (t *turn) addCallPiece(position int, p client.Call) {
	index := position
	if p.Index != nil {
		index = *p.Index
	} else if p.ID != "" {
		index = len(t.calls)
	}
	if index < 0 || index > len(t.calls) || index >= maxCalls {
		return
	}
	if index == len(t.calls) {
		t.calls = append(t.calls, &openCall{})
	}
	c := t.calls[index]
	c.ID = cmp.Or(c.ID, p.ID)
	c.Name += p.Function.Name
	c.text.WriteString(p.Function.Arguments)
	if c.Name == "" {
		return
	}
	if !c.started {
		c.started = true
		c.ID = cmp.Or(c.ID, fmt.Sprintf("call_%d", len(t.calls)))
		c.Recipient, _ = recipientOf(c.Name, "")
		t.ready = append(t.ready, session.CallStart{Index: index, ID: c.ID, Name: c.Name,
			Recipient: c.Recipient})
	}
	if c.Recipient != "python" && p.Function.Arguments != "" {
		t.ready = append(t.ready, session.CallArguments{Index: index, Text: p.Function.Arguments})
	}
}

// end closes the turn at the stream's end, for any reason.
func (t *turn) end(err error) {
	t.done = true
	_ = t.stream.Close() // it has been read, or is useless
	done := session.Done{Finish: session.FinishStop}
	switch {
	case t.ctx.Err() != nil:
		done.Finish = session.FinishCancelled
	case errors.Is(err, io.EOF) && (t.finish != "" || t.stream.Complete()):
		unnamed := func(c *openCall) bool { return !c.started }
		if done.Finish = t.finishReason(); done.Finish == session.FinishToolCalls &&
			slices.ContainsFunc(t.calls, unnamed) {
			done.Finish, done.Err = session.FinishError, errors.New("the server sent a call "+
				"without a name")
		}
	case errors.Is(err, io.EOF):
		done.Finish, done.Err = session.FinishError, errBroken
	default:
		done.Finish, done.Err = session.FinishError, broken(err)
	}
	if done.Finish == session.FinishStop {
		if err := check(t.form, t.result.Answer); err != nil {
			done.Finish, done.Err = session.FinishError, err
		}
	}
	if !t.usageKnown && done.Finish != session.FinishCancelled &&
		done.Finish != session.FinishError {
		t.port.reportOnce("the server does not report token counts, so context use is an estimate")
	}
	t.addMessages(done.Finish == session.FinishToolCalls)
	done.Usage = t.usage
	done.Timing.Prompt, done.Timing.Cached = t.usage.Prompt, t.usage.Cached
	done.Timing.Generated = t.usage.Completion
	if !t.first.IsZero() {
		done.Timing.TTFT, done.Timing.Decode = t.first.Sub(t.began), t.latest.Sub(t.first)
	}
	t.result.Done = done
	t.ready = append(t.ready, done)
}

var errBroken = errors.New("the connection closed before the answer was complete")

// broken reduces a stream's error to its cause.
func broken(err error) error {
	var reported *client.Error
	var network net.Error
	switch {
	case errors.As(err, &reported):
		return reported
	case errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF):
		return errBroken
	}
	return fmt.Errorf("the server's answer cannot be read: %w", err)
}

func (t *turn) finishReason() session.Finish {
	if len(t.calls) > 0 && t.finish != "length" {
		return session.FinishToolCalls
	}
	if t.finish == "length" {
		return session.FinishLength
	}
	return session.FinishStop
}

// addMessages ends complete calls and adds the turn to its result's messages.
func (t *turn) addMessages(called bool) {
	r := &t.result
	if r.Reasoning != "" {
		r.Messages = append(r.Messages, session.AssistantReasoning(r.Reasoning))
	}
	if !called {
		if r.Answer != "" {
			r.Messages = append(r.Messages, session.AssistantAnswer(r.Answer))
		}
		return
	}
	if r.Answer != "" { // text before the calls
		r.Commentary = r.Answer
		r.Messages = append(r.Messages, session.AssistantCommentary(r.Answer))
		r.Answer = ""
	}
	for i, c := range t.calls {
		c.Recipient, c.Arguments = recipientOf(c.Name, c.text.String())
		c.Call.Name = strings.TrimPrefix(c.Name, "functions.")
		if c.Recipient == "python" {
			t.ready = append(t.ready, session.CallArguments{Index: i, Text: c.Arguments})
		}
		t.ready = append(t.ready, session.CallEnd{Index: i, Arguments: c.Arguments})
		r.Calls = append(r.Calls, c.Call)
		m := session.Message{CallID: c.ID, Message: harmony.Text(harmony.RoleAssistant,
			c.Arguments).WithChannel(harmony.ChannelCommentary).WithRecipient(c.Recipient)}
		r.Messages = append(r.Messages, m)
	}
}

// Result is the result so far; complete once Next has returned Done.
func (t *turn) Result() session.Result { return t.result }

// Sampled is nil: a port sends no tokens to resume from.
func (t *turn) Sampled() []int32 { return nil }
