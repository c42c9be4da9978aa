// From a turn's events to output items and the events of their stream.
//
// One item is open at a time. What must stay true, for streamed and whole answers alike, since both
// come from here: every item that is added is done exactly once (Codex would run a command twice),
// deltas stand between the opening and the closing of their part, and the finished response holds
// the very items that were done.

package openai

import (
	"strings"

	"github.com/ossrun/ossrun/runtime/session"
)

// composer builds the items. send delivers an event of the stream; it must encode it before it
// returns.
type composer struct {
	response *response
	send     func(kind string, e stamped)
	text     strings.Builder // of the open item
	logprobs []tokenLogprob  // of the open item
	open     outputItem      // nil: none; else the last of answer.Output
	sent     int             // bytes of the open call's arguments
}

func (c *composer) take(e session.Event) {
	switch e := e.(type) {
	case session.Reasoning:
		if _, ok := c.open.(*reasoningItem); !ok {
			c.begin(&reasoningItem{ID: newID("rs_"), Type: "reasoning", Summary: []struct{}{},
				Content: []contentPart{}, Status: "in_progress"})
		}
		c.text.WriteString(e.Text)
		c.send("response.reasoning_text.delta", &textDeltaEvent{place: c.place(), Delta: e.Text})
	case session.Commentary:
		c.message("commentary", e.Text, nil)
	case session.Answer:
		c.message("final_answer", e.Text, wireLogprobs(e.Logprobs))
	case session.CallStart:
		c.begin(&callItem{ID: newID("fc_"), Type: "function_call", CallID: e.ID, Name: e.Name,
			Status: "in_progress"})
	case session.CallArguments:
		c.arguments(e.Text)
	case session.CallEnd:
		whole := runnable(e.Arguments)
		if c.sent < len(whole) {
			c.arguments(whole[c.sent:])
		}
		if call, ok := c.open.(*callItem); ok {
			call.Arguments = whole
		}
		c.close("completed")
	}
}

// message adds text to the message of a phase, opening it if need be.
func (c *composer) message(phase, text string, logprobs []tokenLogprob) {
	if m, ok := c.open.(*messageItem); !ok || m.Phase != phase {
		c.begin(&messageItem{ID: newID("msg_"), Type: "message", Role: "assistant", Phase: phase,
			Content: []contentPart{}, Status: "in_progress"})
	}
	c.text.WriteString(text)
	c.logprobs = append(c.logprobs, logprobs...)
	c.send("response.output_text.delta", &textDeltaEvent{place: c.place(), Delta: text,
		Logprobs: orEmpty(logprobs)})
}

func (c *composer) arguments(text string) {
	call, ok := c.open.(*callItem)
	if !ok {
		return
	}
	call.Arguments += text
	c.sent += len(text)
	c.send("response.function_call_arguments.delta", &argumentsDeltaEvent{ItemID: call.ID,
		OutputIndex: c.index(), Delta: text})
}

// begin opens an item, and its part if it has one.
func (c *composer) begin(item outputItem) {
	c.close("completed")
	c.response.Output = append(c.response.Output, item)
	c.open, c.sent, c.logprobs = item, 0, nil
	c.text.Reset()
	c.send("response.output_item.added", &itemEvent{OutputIndex: c.index(), Item: item})
	if part, ok := c.part(); ok {
		c.send("response.content_part.added", &partEvent{place: c.place(), Part: part})
	}
}

// close ends the open item with the status completed or incomplete.
func (c *composer) close(status string) {
	if c.open == nil {
		return
	}
	part, _ := c.part()
	switch item := c.open.(type) {
	case *reasoningItem:
		c.send("response.reasoning_text.done", &textDoneEvent{place: c.place(), Text: part.Text})
		c.send("response.content_part.done", &partEvent{place: c.place(), Part: part})
		sealed := seal(part.Text)
		item.Content, item.Encrypted, item.Status = []contentPart{part}, &sealed, status
	case *messageItem:
		c.send("response.output_text.done", &textDoneEvent{place: c.place(), Text: part.Text,
			Logprobs: part.Logprobs})
		c.send("response.content_part.done", &partEvent{place: c.place(), Part: part})
		item.Content, item.Status = []contentPart{part}, status
	case *callItem:
		c.send("response.function_call_arguments.done", &argumentsDoneEvent{ItemID: item.ID,
			OutputIndex: c.index(), Name: item.Name, Arguments: item.Arguments})
		item.Status = status
	}
	c.send("response.output_item.done", &itemEvent{OutputIndex: c.index(), Item: c.open})
	c.open = nil
}

// part is the open item's only part as far as it goes; calls have none.
func (c *composer) part() (contentPart, bool) {
	switch c.open.(type) {
	case *reasoningItem:
		return reasoningText(c.text.String()), true
	case *messageItem:
		return outputText(c.text.String(), c.logprobs), true
	}
	return contentPart{}, false
}

func (c *composer) index() int { return len(c.response.Output) - 1 }

func (c *composer) place() place { return place{ItemID: c.open.itemID(), OutputIndex: c.index()} }

func orEmpty(list []tokenLogprob) *[]tokenLogprob {
	if list == nil {
		list = []tokenLogprob{}
	}
	return &list
}
